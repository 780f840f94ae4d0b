"""Where the manifests of this distribution are, installed or in a checkout, and the CRDs among them."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import yaml

from extender.api.meta import Json, Kind

_PACKAGE = Path(__file__).resolve().parent.parent


def folder() -> Path:
    """The wheel carries the manifests inside the package, a checkout beside it."""
    installed = _PACKAGE / "manifests"
    return installed if installed.is_dir() else _PACKAGE.parent / "manifests"


def crd_path(kind: Kind) -> Path:
    return folder() / "crds" / f"{kind.group}_{kind.plural}.yaml"


@lru_cache(maxsize=64)
def crd(kind: Kind) -> Json:
    """The CustomResourceDefinition of a kind of ours: printer columns, short names, schema. Not to be changed."""
    loaded: Json = yaml.load(crd_path(kind).read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return loaded


def version_of(kind: Kind) -> Json:
    """The entry of `spec.versions` that serves the kind."""
    return next(version for version in crd(kind)["spec"]["versions"] if version["name"] == kind.version)
