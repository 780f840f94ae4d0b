"""Fields that a manifest has and its kind has not: an API server drops them without a word, a person has mistyped them.

The CRDs say what our kinds have; the pod template within that of Job also says what every Pod has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from extender.api import meta
from extender.api.errors import nearest
from extender.api.meta import kind_of
from extender.cluster import schema
from extender.cluster.metadata import is_custom
from extender.ctl.arranging import TEMPLATES
from extender.ctl.loading import Found


def unknown_fields(found: Found) -> Iterator[str]:
    """A line for each: where it is, its path, the nearest name that is known."""
    kind = kind_of(found.manifest)
    if is_custom(kind):
        root = schema.compiled(kind)
        parts = [(name, root.properties[name], found.manifest[name]) for name in ("spec",) if name in found.manifest]
        parts = [part for part in parts if part[0] in root.properties]
        top = [name for name in found.manifest if name not in root.properties]
    else:
        path = ("spec",) if kind == meta.POD else (*TEMPLATES[kind], "spec") if kind in TEMPLATES else ()
        value: Any = found.manifest
        for part in path:
            value = value.get(part) if isinstance(value, dict) else None
        parts, top = ([(".".join(path), _pod_spec(), value)] if path else []), []
    for name in top:
        yield _line(found, name, root.properties)
    for name, place, value in parts:
        yield from _walk(found, place, value, name)


def _pod_spec() -> schema.Node:
    tasks = schema.compiled(meta.JOB).properties["spec"].properties["tasks"].items
    assert tasks is not None
    return tasks.properties["template"].properties["spec"]


def _walk(found: Found, place: schema.Node, value: Any, path: str) -> Iterator[str]:
    if isinstance(value, list) and place.items is not None:
        for i, item in enumerate(value):
            yield from _walk(found, place.items, item, f"{path}[{i}]")
    elif isinstance(value, dict) and (place.properties or place.additional is not None):
        for name, item in value.items():
            inner = place.properties.get(name, place.additional)
            if inner is not None:
                yield from _walk(found, inner, item, f"{path}.{name}")
            elif not place.keeps_unknown:
                yield _line(found, f"{path}.{name}", place.properties)


def _line(found: Found, path: str, known: Iterable[str]) -> str:
    near = nearest(path.rsplit(".", 1)[-1], known)
    return f"{found.where}: {found.subject}: {path}: unknown field, passed over" + (near if "did you mean" in near else "")
