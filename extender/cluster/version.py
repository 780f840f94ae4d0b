"""Which build this is: the version of the distribution, the commit it was made from, the Python it runs on."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import dataclass
from importlib import metadata

DISTRIBUTION = "pumice"
COMMIT = "PUMICE_GIT_COMMIT"  # set by whoever builds an image


@dataclass(frozen=True, slots=True)
class Build:
    version: str
    commit: str
    python: str


def build() -> Build:
    try:
        distribution = metadata.distribution(DISTRIBUTION)
    except metadata.PackageNotFoundError:  # run from a source tree that was never installed
        return Build("unknown", os.environ.get(COMMIT, "unknown"), platform.python_version())
    return Build(distribution.version, os.environ.get(COMMIT) or _commit(distribution), platform.python_version())


def version_text(program: str) -> str:
    now = build()
    return f"{program} {now.version}, git commit {now.commit}, Python {now.python}"


def _commit(distribution: metadata.Distribution) -> str:
    """pip notes it where it installed from version control (PEP 610)."""
    noted = distribution.read_text("direct_url.json")
    found = (json.loads(noted).get("vcs_info") or {}).get("commit_id") if noted else None
    return str(found or "unknown")
