"""The manifests as objects."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import yaml

from extender.api.meta import Json

MANIFESTS = Path(__file__).resolve().parents[2] / "manifests"
CHART = MANIFESTS / "chart"
PARTS = ("rbac", "deploy", "webhooks")  # what base/ puts together, besides the CRDs


def documents(text: str) -> list[Json]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [document for document in yaml.load_all(text, loader) if document is not None]


def objects(folder: Path) -> list[Json]:
    """Of all files of a folder but its kustomization."""
    files = (file for file in sorted(folder.glob("*.yaml")) if file.name != "kustomization.yaml")
    return [obj for file in files for obj in documents(file.read_text())]


@cache
def installed() -> tuple[Json, ...]:
    """What base/ installs, the CRDs aside. Not to be changed."""
    return tuple(obj for part in PARTS for file in resources(MANIFESTS / part) for obj in documents(file.read_text()))


def resources(folder: Path) -> list[Path]:
    """The files that a kustomization names."""
    (kustomization,) = documents((folder / "kustomization.yaml").read_text())
    return [folder / name for name in kustomization.get("resources", ()) if (folder / name).is_file()]


def of_kind(objs: Iterable[Json], kind: str) -> dict[str, Json]:
    return {obj["metadata"]["name"]: obj for obj in objs if obj["kind"] == kind}


def pods(objs: Iterable[Json]) -> Iterator[tuple[str, Json]]:
    """Name and pod spec of every workload."""
    for obj in objs:
        if obj["kind"] == "Pod":
            yield obj["metadata"]["name"], obj["spec"]
        elif obj["kind"] in ("Deployment", "DaemonSet", "StatefulSet", "Job"):
            yield obj["metadata"]["name"], obj["spec"]["template"]["spec"]


def arguments(container: Json, environ: Mapping[str, str]) -> list[str]:
    """Those of a container as its program sees them: $(NAME) stands for a variable."""
    words = [*container.get("command", ())[1:], *container.get("args", ())]
    for name, value in environ.items():
        words = [word.replace(f"$({name})", value) for word in words]
    return words


def without_descriptions(value: object) -> object:
    """A schema without what is only for people; a property that is called `description` stays."""
    if isinstance(value, dict):
        return {key: without_descriptions(each) for key, each in value.items()
                if key != "description" or not isinstance(each, str)}  # fmt: skip
    if isinstance(value, list):
        return [without_descriptions(each) for each in value]
    return value


def shown(obj: object) -> str:
    return json.dumps(obj, indent=1, sort_keys=True)
