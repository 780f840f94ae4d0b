"""Fields that a manifest has and its kind has not, annotations that nobody reads: a person has mistyped them.

An API server drops such a field, and keeps such an annotation, without a word. The CRDs say what our kinds have; the pod
template within that of Job also says what every Pod has."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import Any

from extender.api import labels, meta
from extender.api.errors import nearest
from extender.api.grouping import number_of_pods
from extender.api.meta import annotations_of, kind_of
from extender.cluster import schema
from extender.cluster.metadata import is_custom
from extender.ctl.arranging import TEMPLATES, pods_of
from extender.ctl.found import Found

_OURS = "pumice.io"
_OF_PODS = (labels.RUN_SECONDS, labels.EXIT_CODE)
_KNOWN = frozenset(word for word in vars(labels).values() if isinstance(word, str) and "/" in word)
_ALIKE = 0.85  # to a word of the same group that somebody reads; Volcano has more of them than we do


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


# --- annotations ----------------------------------------------------------------------------------------------------------


def unread_notes(found: Found) -> Iterator[str]:
    """A line for each annotation that is mistyped, that stands where nobody looks for it, or is no number where one is read."""
    pods = {path: pod.get("metadata") for path, pod in pods_of(found.manifest)}
    for path, metadata in ({"": found.manifest["metadata"]} | pods).items():
        notes = annotations_of({"metadata": metadata}) if isinstance(metadata, dict) else {}
        for note in notes if isinstance(notes, dict) else ():
            wrong = _wrong(str(note), of_pod=path in pods, of_object=not path)
            if note == labels.GROUP_MIN_MEMBER and number_of_pods(str(notes[note])) is None:
                wrong = f"'{notes[note]}' is no number of pods: it counts as 1"
            if wrong:
                yield f"{found.where}: {found.subject}: {path}metadata.annotations[{note}]: {wrong}"


def _wrong(note: str, *, of_pod: bool, of_object: bool) -> str:
    if note in _OF_PODS and not of_pod:
        return "is looked for in pods and pod templates only; write it into the template's metadata"
    if note == labels.ARRIVES_AFTER and not of_object:
        return "is looked for in the metadata of the object itself only"
    if note == labels.SCHEDULE:
        return "is a label, and no annotation"
    if note in _KNOWN:
        return ""
    group, _, word = note.rpartition("/")
    if group == _OURS:
        return f"nobody reads it{nearest(word, _words(_OURS, (*_OF_PODS, labels.ARRIVES_AFTER)))}"
    alike = difflib.get_close_matches(word, _words(group, _KNOWN), n=1, cutoff=_ALIKE)
    return f"nobody reads it; did you mean '{alike[0]}'?" if alike else ""


def _words(group: str, notes: Iterable[str]) -> list[str]:
    """What stands behind the slash in those of the group."""
    return sorted(word for there, _, word in (note.rpartition("/") for note in notes) if there == group)
