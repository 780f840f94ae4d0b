"""Custom kinds as their CRD has them: defaults filled in, unknown fields dropped, every fault found.

A CRD's schema is compiled once into Nodes; an object then costs what it holds, not what its schema could hold. What is
shared with the stored object is taken as checked (the real server calls it ratcheting), so a status write is cheap.
Source: kubernetes v1.36.1 staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/schema (defaulting, pruning,
listtype), k8s.io/kube-openapi pkg/validation; the words of the faults are theirs."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from extender.api.errors import Fault
from extender.api.meta import Json, Kind
from extender.cluster import manifests

Check = Callable[[Any], str]  # what is wrong with a value, "" for nothing; `{path}` stands for its path

_ABSENT: Any = object()
_RANGES = {"int32": 2**31, "int64": 2**63}


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One place in a schema."""

    type: str
    properties: Mapping[str, Node]
    additional: Node | None
    keeps_unknown: bool
    items: Node | None
    required: tuple[str, ...]
    defaults: tuple[tuple[str, Any], ...]
    nullable: bool
    int_or_string: bool
    keys: tuple[str, ...]  # the fields that tell the items of a list apart; ("",) where the whole item does
    checks: tuple[Check, ...]


# --- compiling --------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def compiled(kind: Kind) -> Node:
    return node(manifests.version_of(kind)["schema"]["openAPIV3Schema"])


def node(schema: Json) -> Node:
    properties = {name: node(each) for name, each in (schema.get("properties") or {}).items()}
    additional = schema.get("additionalProperties")
    keys: tuple[str, ...] = ()
    if schema.get("x-kubernetes-list-type") == "map":
        keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
    elif schema.get("x-kubernetes-list-type") == "set":
        keys = ("",)
    return Node(
        type=schema.get("type", ""),
        properties=properties,
        additional=node(additional) if isinstance(additional, dict) else None,
        keeps_unknown=bool(schema.get("x-kubernetes-preserve-unknown-fields")) or additional is True,
        items=node(schema["items"]) if isinstance(schema.get("items"), dict) else None,
        required=tuple(schema.get("required") or ()),
        defaults=tuple((n, each["default"]) for n, each in (schema.get("properties") or {}).items() if "default" in each),
        nullable=bool(schema.get("nullable")),
        int_or_string=bool(schema.get("x-kubernetes-int-or-string")),
        keys=keys,
        checks=tuple(_checks(schema)),
    )


def _checks(schema: Json) -> Iterator[Check]:
    for word, make in _CHECKS.items():
        if word in schema:
            yield make(schema[word])
    for rule in schema.get("x-kubernetes-validations") or ():
        yield _cel(rule["rule"], rule["message"])


def _minimum(limit: float) -> Check:
    message = f"{{path}} in body should be greater than or equal to {limit}"
    return lambda v: f"Invalid value: {v}: {message}" if _number(v) and v < limit else ""


def _maximum(limit: float) -> Check:
    message = f"{{path}} in body should be less than or equal to {limit}"
    return lambda v: f"Invalid value: {v}: {message}" if _number(v) and v > limit else ""


def _min_length(limit: int) -> Check:
    message = f"{{path}} in body should be at least {limit} chars long"
    return lambda v: f"Invalid value: {_shown(v)}: {message}" if isinstance(v, str) and len(v) < limit else ""


def _max_length(limit: int) -> Check:
    return lambda v: f"Too long: may not be more than {limit} bytes" if isinstance(v, str) and len(v) > limit else ""


def _min_items(limit: int) -> Check:
    message = f"{{path}} in body should have at least {limit} items"
    return lambda v: f"Invalid value: {len(v)}: {message}" if isinstance(v, list) and len(v) < limit else ""


def _max_items(limit: int) -> Check:
    return lambda v: f"Too many: {len(v)}: must have at most {limit} items" if isinstance(v, list) and len(v) > limit else ""


def _pattern(pattern: str) -> Check:
    # In RE2 `$` is the end of the text, in Python also the place before a last line feed.
    search = lru_cache(maxsize=4096)(re.compile(re.sub(r"\$$", r"\\Z", pattern)).search)
    return lambda v: (
        f"Invalid value: {_shown(v)}: {{path}} in body should match '{pattern}'" if isinstance(v, str) and not search(v) else ""
    )


def _enum(allowed: list[Any]) -> Check:
    words = ", ".join(_shown(each) for each in allowed)
    return lambda v: "" if v in allowed else f"Unsupported value: {_shown(v)}: supported values: {words}"


def _format(name: str) -> Check:
    if name in _RANGES:
        limit = _RANGES[name]
        return lambda v: (
            f"Invalid value: {v}: {{path}} in body must be of type {name}: {_shown(v)}"
            if isinstance(v, int) and not -limit <= v < limit else ""
        )  # fmt: skip
    if name == "date-time":
        message = "{path} in body must be of type date-time"
        return lambda v: f"Invalid value: {_shown(v)}: {message}: {_shown(v)}" if _no_time(v) else ""
    return lambda _: ""


_CHECKS: dict[str, Callable[[Any], Check]] = {
    "minimum": _minimum, "maximum": _maximum, "minLength": _min_length, "maxLength": _max_length, "minItems": _min_items,
    "maxItems": _max_items, "pattern": _pattern, "enum": _enum, "format": _format,
}  # fmt: skip


def _no_time(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        return "T" not in value.upper() or dt.datetime.fromisoformat(value.replace("Z", "+00:00")).tzinfo is None
    except ValueError:
        return True


def _cel(rule: str, message: str) -> Check:
    """The rules of our CRDs count which of some fields there are: `has(self.a) || has(self.b)`, `... + ... <= 1`."""
    fields = re.findall(r"has\(self\.(\w+)\)", rule)
    if re.fullmatch(r"has\(self\.\w+\)( \|\| has\(self\.\w+\))*", rule):

        def holds(count: int) -> bool:
            return count >= 1
    elif re.fullmatch(r"\(has\(self\.\w+\) \? 1 : 0\)( \+ \(has\(self\.\w+\) \? 1 : 0\))* <= 1", rule):

        def holds(count: int) -> bool:
            return count <= 1
    else:
        raise NotImplementedError(f"schema.py cannot judge the CEL rule: {rule}")
    return lambda v: f"Invalid value: {message}" if isinstance(v, dict) and not holds(sum(f in v for f in fields)) else ""


# --- completing -------------------------------------------------------------------------------------------------------


def completed(kind: Kind, new: Json, old: Json | None) -> Json:
    """The object pruned and with its defaults; apiVersion, kind and metadata as they are."""
    root = compiled(kind)
    result = {}
    for name, value in new.items():
        if name in ("apiVersion", "kind", "metadata"):
            result[name] = value
        elif name in root.properties and (value is not None or root.properties[name].nullable):
            result[name] = _complete(root.properties[name], value, old.get(name) if old is not None else None)
    for name, default in root.defaults:
        result.setdefault(name, default)
    return result


def _complete(place: Node, value: Any, old: Any) -> Any:
    """Whatever changes is a copy: the rest stays shared."""
    if value is old and value is not None:
        return value
    if isinstance(value, dict):
        return _complete_object(place, value, old if isinstance(old, dict) else {})
    if isinstance(value, list) and place.items is not None:
        before = old if isinstance(old, list) and len(old) == len(value) else [None] * len(value)
        return [_complete(place.items, item, was) for item, was in zip(value, before, strict=True)]
    return value


def _complete_object(place: Node, value: Json, old: Json) -> Json:
    if place.type and place.type != "object":
        return value
    result = {}
    for name, item in value.items():
        inner = place.properties.get(name, place.additional)
        if inner is None:
            if place.keeps_unknown:
                result[name] = item
        elif item is not None or inner.nullable:
            result[name] = _complete(inner, item, old.get(name))
    for name, default in place.defaults:
        if name not in result:
            # A default may be an object, and have defaults inside.
            result[name] = _complete(place.properties[name], default, None)
    return result


# --- checking ---------------------------------------------------------------------------------------------------------


def faults(kind: Kind, new: Json, old: Json | None) -> list[Fault]:
    """Every fault; of an update only those in what it changes."""
    root = compiled(kind)
    found: list[Fault] = [Fault(name, "Required value") for name in root.required if name not in new]
    for name, place in root.properties.items():
        if name in new and name not in ("apiVersion", "kind", "metadata"):
            _find(place, new[name], old.get(name, _ABSENT) if old is not None else _ABSENT, name, found)
    return found


def _find(place: Node, value: Any, old: Any, path: str, found: list[Fault]) -> None:
    if old is not _ABSENT and (value is old or value == old):
        return
    if not _right_type(place, value):
        name = type_name(value)
        wanted = "integer,string" if place.int_or_string else place.type
        found.append(Fault(path, f'Invalid value: "{name}": {path} in body must be of type {wanted}: "{name}"'))
        return
    found.extend(Fault(path, message.replace("{path}", path)) for check in place.checks if (message := check(value)))
    if isinstance(value, dict):
        found.extend(Fault(f"{path}.{name}", "Required value") for name in place.required if name not in value)
        before = old if isinstance(old, dict) else {}
        for name, item in value.items():
            inner = place.properties.get(name, place.additional)
            if inner is not None:
                _find(inner, item, before.get(name, _ABSENT), f"{path}.{name}", found)
    elif isinstance(value, list):
        if place.items is not None:
            for i, item in enumerate(value):
                _find(place.items, item, _ABSENT, f"{path}[{i}]", found)
        if place.keys:
            _find_twins(place, value, path, found)


def _find_twins(place: Node, items: list[Any], path: str, found: list[Fault]) -> None:
    seen = set()
    for i, item in enumerate(items):
        if place.keys == ("",):
            mark, shown = _shown(item), _shown(item)
        elif isinstance(item, dict):
            mark = _shown([item.get(name) for name in place.keys])
            shown = json.dumps({name: item.get(name) for name in place.keys}, separators=(",", ":"))
        else:
            continue
        if mark in seen:
            found.append(Fault(f"{path}[{i}]", f"Duplicate value: {shown}"))
        seen.add(mark)


def _right_type(place: Node, value: Any) -> bool:
    if value is None:
        return place.nullable
    if place.int_or_string:
        return isinstance(value, (int, str)) and not isinstance(value, bool)
    match place.type:
        case "object":
            return isinstance(value, dict)
        case "array":
            return isinstance(value, list)
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return _number(value) and (isinstance(value, int) or value.is_integer())
        case "number":
            return _number(value)
    return True


def type_name(value: Any) -> str:
    """The JSON type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    names = {dict: "object", list: "array", str: "string", int: "integer", float: "number"}
    return names.get(type(value), type(value).__name__)


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    return json.dumps(value, default=str)
