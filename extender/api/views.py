"""Frozen views of API objects: small msgspec structs with only the fields we use, read from JSON dicts or bytes.

A view is for reading; writes are patches of the JSON, because writing through a view would drop what it does not know.
`view(Pod, obj)` turns a dict into a view, `decode(Pod, raw)` bytes. Both raise InvalidObject with the field path."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from extender.api.errors import InvalidObject
from extender.api.meta import Key, Time, parse_time

V = TypeVar("V", bound="View")
Quantities = dict[str, str | int | float]
_NO_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class View(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """Base of every view: camelCase names, unknown fields dropped."""


class OwnerReference(View, frozen=True):
    kind: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    controller: bool | None = False


class Metadata(View, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None
    finalizers: tuple[str, ...] | None = None

    @property
    def key(self) -> Key:
        return Key(self.namespace, self.name)

    @property
    def created(self) -> Time:
        return parse_time(self.creation_timestamp) or 0.0

    def label(self, name: str) -> str | None:
        return self.labels.get(name) if self.labels else None

    def annotation(self, name: str) -> str | None:
        return self.annotations.get(name) if self.annotations else None

    @property
    def controller(self) -> OwnerReference | None:
        return next((owner for owner in self.owner_references or () if owner.controller), None)


def view(cls: type[V], obj: Mapping[str, Any]) -> V:
    """JSON dict -> view. A null stands for an absent field, as in Go. Raises InvalidObject naming object and field."""
    try:
        return msgspec.convert(obj, cls)
    except msgspec.ValidationError as error:
        if "got `null`" in str(error) and (bare := _without_nulls(obj)) != obj:
            return view(cls, bare)
        raise _unreadable(cls, error, obj) from None


def view_as_written(cls: type[V], obj: Mapping[str, Any]) -> V:
    """The same for objects whose readers look at the JSON itself: a null stands for nothing where the view does not say so."""
    try:
        return msgspec.convert(obj, cls)
    except msgspec.ValidationError as error:
        raise _unreadable(cls, error, obj) from None


def decode(cls: type[V], raw: bytes) -> V:
    """JSON bytes -> view, with the same meaning and the same errors."""
    try:
        return msgspec.json.decode(raw, type=cls)
    except _NO_JSON:
        try:
            obj = msgspec.json.decode(raw)
        except _NO_JSON as error:
            why = "nested too deeply" if isinstance(error, RecursionError) else str(error)
            raise InvalidObject(why, path="(whole object)", subject="object") from None
    return view(cls, obj)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value]
    return value


def _unreadable(cls: type[V], error: msgspec.ValidationError, obj: Any) -> InvalidObject:
    message, _, at = str(error).partition(" - at `$")
    if not isinstance(obj, Mapping):
        return InvalidObject(message, path="(whole object)", subject="object")
    path = at.strip("`.") or "(whole object)"
    while "[...]" in path and (key := _entry_at_fault(cls, str(error), obj, path.partition("[...]")[0])) is not None:
        path = path.replace("[...]", f"[{key}]", 1)
    meta = obj.get("metadata")
    name = "/".join(str(meta[part]) for part in ("namespace", "name") if meta.get(part)) if isinstance(meta, Mapping) else ""
    return InvalidObject(message, path=path, subject=f"{obj.get('kind', 'object')} {name}".strip())


def _entry_at_fault(cls: type[V], message: str, obj: Mapping[str, Any], map_path: str) -> str | None:
    """msgspec does not say which entry of a map it could not read: the one with which alone it says the same."""
    lone = copy.deepcopy(dict(obj))
    parent: Any = None
    found: Any = lone
    for step in re.findall(r"[^.\[\]]+", map_path):
        parent, last = found, int(step) if isinstance(found, list) else step
        found = found[last]
    for key, value in list(found.items()) if parent is not None else ():
        parent[last] = {key: value}
        try:
            msgspec.convert(lone, cls)
        except msgspec.ValidationError as error:
            if str(error) == message:
                return str(key)
    return None
