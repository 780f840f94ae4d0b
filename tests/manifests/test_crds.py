"""The CRDs are Volcano's: same fields, types, defaults, enums, rules, printer columns, names and subresources.

Upstream's are looked for where PUMICE_CRDS says, else in ../shared/volcano/crds."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from extender.api.meta import KINDS
from tests.manifests.reading import MANIFESTS, documents, shown, without_descriptions

OURS = sorted((MANIFESTS / "crds").glob("*.yaml"))
THEIRS = Path(os.environ.get("PUMICE_CRDS") or MANIFESTS.parents[1] / "shared" / "volcano" / "crds")
_CLIENT_SIDE = 262144  # bytes of all annotations of an object; `kubectl apply` keeps the whole object in one

needs_theirs = pytest.mark.skipif(not THEIRS.is_dir(), reason=f"no CRDs to compare with in {THEIRS}; set PUMICE_CRDS")


@needs_theirs
def test_every_crd_of_volcano_is_there() -> None:
    assert [file.name for file in OURS] == sorted(file.name for file in THEIRS.glob("*.yaml"))


@needs_theirs
@pytest.mark.parametrize("file", OURS, ids=lambda file: file.stem)
def test_a_crd_is_the_same_but_for_descriptions(file: Path) -> None:
    (ours,), (theirs,) = documents(file.read_text()), documents((THEIRS / file.name).read_text())
    assert ours["metadata"]["name"] == theirs["metadata"]["name"]
    assert shown(without_descriptions(ours["spec"])) == shown(without_descriptions(theirs["spec"]))


@pytest.mark.parametrize("file", OURS, ids=lambda file: file.stem)
def test_a_crd_is_that_of_its_kind(file: Path) -> None:
    """What the code believes about a kind is what the API server will do."""
    (crd,) = documents(file.read_text())
    names, group = crd["spec"]["names"], crd["spec"]["group"]
    (kind,) = [each for each in KINDS if (each.group, each.name) == (group, names["kind"])]
    (version,) = [each for each in crd["spec"]["versions"] if each["storage"]]
    assert (kind.plural, kind.version) == (names["plural"], version["name"])
    assert kind.namespaced == (crd["spec"]["scope"] == "Namespaced")
    assert kind.status_subresource == ("status" in (version.get("subresources") or {}))


@pytest.mark.parametrize("file", OURS, ids=lambda file: file.stem)
def test_a_crd_is_small_enough_for_kubectl_apply(file: Path) -> None:
    (crd,) = documents(file.read_text())
    assert len(json.dumps(crd, separators=(",", ":")).encode()) < _CLIENT_SIDE
