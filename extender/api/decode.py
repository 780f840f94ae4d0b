"""Raw JSON against the shape its kind has: wrong types become faults by field path, what is left is safe to read.

A webhook sees objects before and after the schema looked at them, so a handler may rely on nothing. `decode` reads as
Kubernetes' own decoder does: unknown fields and nulls are dropped, a quantity, a duration or a number out of range is
refused. (A null among the items of a list is refused too: the schemas do, and no patch would fit it.)

`differences` compares two decoded objects as Kubernetes' semantic equality does: an empty list is a missing one, "1000m"
is "1", a zero is a missing field unless the type tells them apart (Maybe), and an object without content is a missing one
only where it is Inline.
Source: k8s.io/apimachinery v0.36.1 pkg/api/equality and runtime/serializer/json."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from extender.api import duration, quantity
from extender.api.errors import Fault, InvalidObject
from extender.api.meta import parse_time


@dataclass(frozen=True, slots=True)
class Scalar:
    """A leaf: `fault` says what is wrong with a value ("" where nothing is), `zero` stands for a missing one."""

    name: str
    fault: Callable[[Any], str]
    zero: Any = None
    canonical: Callable[[Any], Any] = lambda value: value


@dataclass(frozen=True, slots=True)
class MapOf:
    """An object with free keys."""

    values: Shape


@dataclass(frozen=True, slots=True)
class ListOf:
    items: Shape


@dataclass(frozen=True, slots=True)
class Maybe:
    """A leaf whose zero is not the same as its absence (a pointer in Go)."""

    scalar: Scalar


class Inline(dict[str, "Shape"]):
    """Fields of an object that is there even if nobody writes it (no pointer in Go): left out it is as one without content."""


Shape = Scalar | Maybe | MapOf | ListOf | Mapping[str, "Shape"]


def _typed(kind: type, name: str) -> Callable[[Any], str]:
    return lambda value: "" if type(value) is kind else f"must be {name}, not {_words(value)}"


def _words(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    shown = repr(value) if isinstance(value, str | int | float) else ""
    return f"{names.get(type(value), 'null')} ({shown[:80]})" if shown else names.get(type(value), "null")


def _integer(bits: int) -> Callable[[Any], str]:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def fault(value: Any) -> str:
        if type(value) is not int:
            return f"must be an integer, not {_words(value)}"
        return "" if low <= value <= high else f"{value} does not fit into {bits} bits"

    return fault


def _quantity_fault(value: Any) -> str:
    try:
        quantity.nanos(value)
    except InvalidObject as error:
        return str(error)
    return ""


def _duration_fault(value: Any) -> str:
    if not isinstance(value, str):
        return f"must be a duration such as 30s, 10m or 1h30m, not {_words(value)}"
    try:
        duration.nanoseconds(value)
    except InvalidObject as error:
        return str(error)
    return ""


def _number_or(what: str) -> Callable[[Any], str]:
    def fault(value: Any) -> str:
        if type(value) in (int, str):
            return "" if isinstance(value, str) else _integer(32)(value)
        return f"must be a number or {what}, not {_words(value)}"

    return fault


def _time_fault(value: Any) -> str:
    try:
        parse_time(value if isinstance(value, str) else _words(value))
    except InvalidObject as error:
        return str(error)
    return ""


def _base64_fault(value: Any) -> str:
    if not isinstance(value, str):
        return f"must be base64 text, not {_words(value)}"
    try:
        base64.b64decode(value.replace("\n", "").replace("\r", ""), validate=True)
    except ValueError:
        return f"{_words(value)} is not base64"
    return ""


TEXT = Scalar("text", _typed(str, "a string"), "")
FLAG = Scalar("flag", _typed(bool, "true or false"), False)
INT32 = Scalar("int32", _integer(32), 0)
INT64 = Scalar("int64", _integer(64), 0)
QUANTITY = Scalar("quantity", _quantity_fault, "0", quantity.nanos)
DURATION = Scalar("duration", _duration_fault, None, duration.nanoseconds)
PORT = Scalar("port", _number_or("the name of a port"), 0)
AMOUNT = Scalar("amount", _number_or("a percentage such as 25%"))
TIME = Scalar("time", _time_fault)
BASE64 = Scalar("base64", _base64_fault, "")


def fields(kind: Shape, names: str) -> dict[str, Shape]:
    """The same shape for several names."""
    return dict.fromkeys(names.split(), kind)


def decode(value: Any, shape: Shape, path: str = "") -> tuple[Any, list[Fault]]:
    """The readable part of `value`, and what is wrong with the rest. A wrong part is left out."""
    faults: list[Fault] = []
    return _decoded(value, shape, path, faults), faults


def _decoded(value: Any, shape: Shape, path: str, faults: list[Fault]) -> Any:
    if isinstance(shape, Maybe):
        shape = shape.scalar
    if isinstance(shape, Scalar):
        wrong = shape.fault(value)
        if wrong:
            faults.append(Fault(path, wrong))
        return shape.zero if wrong else value
    if isinstance(shape, ListOf):
        if not isinstance(value, list):
            faults.append(Fault(path, f"must be a list, not {_words(value)}"))
            return []
        return [_decoded(item, shape.items, f"{path}[{index}]", faults) for index, item in enumerate(value)]
    if not isinstance(value, dict):
        faults.append(Fault(path, f"must be an object, not {_words(value)}"))
        return {}
    if isinstance(shape, MapOf):
        return {key: _map_value(item, shape.values, child(path, key), faults) for key, item in value.items()}
    return {
        key: _decoded(item, shape[key], child(path, key), faults)
        for key, item in value.items()
        if key in shape and item is not None
    }


def _map_value(item: Any, shape: Shape, path: str, faults: list[Fault]) -> Any:
    return empty(shape) if item is None else _decoded(item, shape, path, faults)


def empty(shape: Shape) -> Any:
    """What null means for a value of this shape."""
    if isinstance(shape, Maybe):
        shape = shape.scalar
    if isinstance(shape, Scalar):
        return shape.zero
    return [] if isinstance(shape, ListOf) else {}


def child(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def differences(before: Any, after: Any, shape: Shape, path: str = "") -> Iterator[str]:
    """The field paths at which two decoded values differ in meaning; the deepest that name the change."""
    if isinstance(shape, Scalar | Maybe):
        if _meaning(before, shape) != _meaning(after, shape):
            yield path
    elif isinstance(shape, ListOf):
        old, new = before or [], after or []
        if len(old) != len(new):
            yield path
        else:
            for index, pair in enumerate(zip(old, new, strict=True)):
                yield from differences(*pair, shape.items, f"{path}[{index}]")
    else:
        old, new = before or {}, after or {}
        for key in dict.fromkeys((*old, *new)):
            inner = shape.values if isinstance(shape, MapOf) else shape[key]
            noticed = isinstance(shape, MapOf) or (isinstance(inner, Mapping) and not isinstance(inner, Inline))
            if noticed and (key in old) != (key in new):
                yield child(path, key)
            else:
                yield from differences(old.get(key), new.get(key), inner, child(path, key))


def _meaning(value: Any, shape: Scalar | Maybe) -> Any:
    if isinstance(shape, Maybe):
        return None if value is None else (True, shape.scalar.canonical(value))
    if value is None or value == shape.zero:
        return None
    return shape.canonical(value)
