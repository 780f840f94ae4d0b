"""Resource groups: which pods get which nodes, tolerations and scheduler (the file of --admission-conf).

Upstream reads the fields of a toleration in lower case and so never sees `tolerationSeconds`; here both spellings count."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from extender.api.decode import TEXT, ListOf, decode
from extender.api.errors import ConfError, Fault
from extender.api.labels import RESOURCE_GROUP
from extender.api.meta import Json
from extender.api.shapes import AFFINITY, TEXT_MAP, TEXTS, TOLERATION, Fields
from extender.api.yaml_text import only_document


@dataclass(frozen=True, slots=True)
class ResourceGroup:
    """One entry. `key` says how pods are recognised: by `namespace`, by `annotation`, or ("") by annotation or by name."""

    name: str = ""
    key: str = ""
    values: tuple[str, ...] = ()
    scheduler_name: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Json, ...] = ()
    affinity: Json | None = None  # None also where its JSON cannot be read, as upstream

    def holds(self, namespace: str, annotations: Mapping[str, str]) -> bool:
        if self.key == "namespace":
            return namespace in self.values
        if self.key not in ("", "annotation"):
            return False
        if self.key == "" and self.name and annotations.get(RESOURCE_GROUP) == self.name:
            return True
        wanted = (pair for value in self.values for pair in _pairs(value))
        return any(annotations.get(key) == value for key, value in wanted)


def _pairs(fragment: str) -> list[tuple[str, str]]:
    """`key: value` as YAML reads it; nothing where it is something else."""
    try:
        mapping = only_document(fragment)
    except yaml.YAMLError:
        return []
    return [(str(key), str(value)) for key, value in mapping.items()] if isinstance(mapping, dict) else []


_TOLERATION: Fields = {**TOLERATION, "tolerationseconds": TOLERATION["tolerationSeconds"]}
_FILE: Fields = {
    "resourceGroups": ListOf({
        "resourceGroup": TEXT, "object": {"key": TEXT, "value": TEXTS}, "schedulerName": TEXT, "labels": TEXT_MAP,
        "tolerations": ListOf(_TOLERATION), "affinity": TEXT,
    }),
}  # fmt: skip


def resource_groups(text: str) -> tuple[ResourceGroup, ...]:
    """The groups of an admission configuration, in the order of the file. Raises ConfError naming every bad field."""
    try:
        document = only_document(text)
    except yaml.YAMLError as error:
        raise ConfError(f"admission configuration: not YAML: {error}") from None
    read, faults = decode({} if document is None else document, _FILE)
    if faults:
        raise ConfError(f"admission configuration: {'; '.join(map(str, faults))}")
    return tuple(_group(entry) for entry in read.get("resourceGroups", []))


def _group(entry: Json) -> ResourceGroup:
    by = entry.get("object", {})
    return ResourceGroup(
        name=entry.get("resourceGroup", ""),
        key=by.get("key", ""),
        values=tuple(by.get("value", [])),
        scheduler_name=entry.get("schedulerName", ""),
        labels=entry.get("labels", {}),
        tolerations=tuple(map(_toleration, entry.get("tolerations", []))),
        affinity=_affinity(entry.get("affinity", "")),
    )


def _toleration(entry: Json) -> Json:
    return {("tolerationSeconds" if key == "tolerationseconds" else key): value for key, value in entry.items()}


def _affinity(text: str) -> Json | None:
    faults: list[Fault] = []
    value: Any = None
    try:
        value, faults = decode(json.loads(text), AFFINITY) if text else (None, [])
    except ValueError:
        return None
    return None if faults else value
