"""Frozen views of API objects: small msgspec structs with only the fields we use, read from JSON dicts or bytes.

A view is for reading; writes are patches of the JSON, because writing through a view would drop what it does not know.
`view(Pod, obj)` turns a dict into a view, `decode(Pod, raw)` bytes. Both raise InvalidObject with the field path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from extender.api.errors import InvalidObject
from extender.api.meta import Key, Time, parse_time

V = TypeVar("V", bound="View")
Quantities = dict[str, str | int | float]


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
    """JSON dict -> view. Raises InvalidObject naming the field."""
    try:
        return msgspec.convert(obj, cls)
    except msgspec.ValidationError as error:
        raise _unreadable(error, obj) from None


def decode(cls: type[V], raw: bytes) -> V:
    """JSON bytes -> view. Raises InvalidObject naming the field."""
    try:
        return msgspec.json.decode(raw, type=cls)
    except msgspec.DecodeError as error:
        raise _unreadable(error, {}) from None


def _unreadable(error: Exception, obj: Mapping[str, Any]) -> InvalidObject:
    message, _, path = str(error).partition(" - at `$")
    meta = obj.get("metadata")
    name = meta.get("name", "") if isinstance(meta, Mapping) else ""
    subject = f"{obj.get('kind', 'object')} {name}".strip()
    return InvalidObject(message, path=path.strip("`.") or "(whole object)", subject=subject)
