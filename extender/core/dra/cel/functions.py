"""Functions and methods by name. Each gets its own name, then the values (of a method first what it is called on).

Source: the CEL specification; cel-go ext/strings, ext/sets; k8s.io/apiserver v0.36.1, pkg/cel/library."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import Any

from extender.api import quantity
from extender.api.boolean import parse_bool
from extender.api.errors import InvalidObject
from extender.api.pattern import expression
from extender.core.dra.cel.operators import OPERATORS, Function, integer, ordered, plus
from extender.core.dra.cel.values import (
    CelError,
    Optional,
    Quantity,
    Semver,
    Value,
    no_overload,
    same,
    semver,
    type_name,
)


def _typed(*types: type, body: Callable[..., Value]) -> Function:
    """A function of values of exactly these types; a bool is no int."""

    def checked(name: str, *values: Value) -> Value:
        fits = len(values) == len(types) and all(
            isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool))
            for value, wanted in zip(values, types, strict=True)
        )
        if not fits:
            raise no_overload(name, *values)
        return body(*values)

    return checked


# --- conversions -------------------------------------------------------------------------------------------------------------


def _to_int(name: str, value: Value, *, unsigned: bool = False) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise no_overload(name, value)
    try:
        return integer(int(value), unsigned=unsigned)
    except (ValueError, OverflowError):
        raise CelError(f"{value!r} is no {name}") from None


def _to_double(name: str, value: Value) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise no_overload(name, value)
    try:
        return float(value)
    except ValueError:
        raise CelError(f"{value!r} is no double") from None


def _to_string(name: str, value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}" if value != int(value) else str(int(value))
    if isinstance(value, (int, str)):
        return str(value)
    if isinstance(value, bytes):
        return value.decode()
    raise no_overload(name, value)


def _to_bool(name: str, value: Value) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and (read := parse_bool(value)) is not None:
        return read
    raise no_overload(name, value)


def _size(name: str, value: Value) -> int:
    if not isinstance(value, (str, bytes, list, dict)):
        raise no_overload(name, value)
    return len(value)


# --- quantities and versions -------------------------------------------------------------------------------------------------


def _quantity(text: str) -> Quantity:
    try:
        return Quantity(quantity.nanos(text))
    except InvalidObject as error:
        raise CelError(str(error)) from None


def _is_quantity(text: str) -> bool:
    try:
        quantity.nanos(text)
    except InvalidObject:
        return False
    return True


def _whole(value: Quantity) -> int:
    if value.nanos % quantity.NANO:
        raise CelError("the quantity is no integer")
    return integer(value.nanos // quantity.NANO)


def _version(text: str, loose: bool = False) -> Semver:
    found = semver(text, loose=loose)
    if found is None:
        raise CelError(f"{text!r} is no semantic version such as 1.2.3")
    return found


def _compared(a: Any, b: Any) -> int:
    return int(a > b) - int(a < b)


def _of_either(body: Callable[[Any, Any], Value]) -> Function:
    """Two quantities or two versions."""

    def checked(name: str, *values: Value) -> Value:
        if len(values) != 2 or type(values[0]) is not type(values[1]) or not isinstance(values[0], (Quantity, Semver)):
            raise no_overload(name, *values)
        return body(*values)

    return checked


def _moved(sign: int) -> Function:
    def checked(name: str, *values: Value) -> Value:
        match values:
            case (Quantity(a), Quantity(b)):
                return Quantity(a + sign * b)
            case (Quantity(a), int(b)) if not isinstance(b, bool):
                return Quantity(a + sign * b * quantity.NANO)
        raise no_overload(name, *values)

    return checked


# --- texts and lists -----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def _pattern(text: str) -> Any:
    try:
        return expression(text)
    except InvalidObject as error:
        raise CelError(str(error)) from None


def _substring(text: str, start: int, *end: int) -> str:
    last = end[0] if end else len(text)
    if not 0 <= start <= last <= len(text):
        raise CelError(f"index out of range: {start}, {last}")
    return text[start:last]


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise CelError(f"index out of range: {index}")
    return text[index : index + 1]


def _split(text: str, separator: str, *limit: int) -> list[str]:
    most = limit[0] if limit else -1
    if most == 0:
        return []
    if not separator:
        parts = list(text)
        return parts if most < 0 or len(parts) <= most else [*parts[: most - 1], "".join(parts[most - 1 :])]
    return text.split(separator, most - 1 if most > 0 else -1)


def _with_optional(first: tuple[type, ...], last: type, body: Callable[..., Value]) -> Function:
    """A function whose last argument may be left out."""

    def checked(name: str, *values: Value) -> Value:
        types = (*first, last) if len(values) > len(first) else first
        return _typed(*types, body=body)(name, *values)

    return checked


def _joined(items: list[Value], separator: str = "") -> str:
    if not all(isinstance(item, str) for item in items):
        raise no_overload("join", *items)
    return separator.join(items)


def _index_of(name: str, whole: Value, part: Value) -> int:
    if isinstance(whole, str) and isinstance(part, str):
        return whole.find(part)
    if isinstance(whole, list):
        return next((i for i, item in enumerate(whole) if same(item, part)), -1)
    raise no_overload(name, whole, part)


def _last_index_of(name: str, whole: Value, part: Value) -> int:
    if isinstance(whole, str) and isinstance(part, str):
        return whole.rfind(part)
    if isinstance(whole, list):
        return next((i for i in reversed(range(len(whole))) if same(whole[i], part)), -1)
    raise no_overload(name, whole, part)


def _sum(items: list[Value]) -> Value:
    if not items:
        return 0
    total = items[0]
    for item in items[1:]:
        total = plus("sum", total, item)
    return total


def _extreme(choose: Callable[[Any], Any]) -> Callable[[list[Value]], Value]:
    def found(items: list[Value]) -> Value:
        if not items:
            raise CelError("an empty list has neither smallest nor largest")
        for item in items[1:]:
            ordered(operator.lt)("min", items[0], item)
        return choose(items)

    return found


def _is_sorted(items: list[Value]) -> bool:
    return all(ordered(operator.le)("isSorted", a, b) for a, b in pairwise(items))


def _contains_all(whole: list[Value], part: list[Value]) -> bool:
    return all(any(same(item, other) for other in whole) for item in part)


def _includes(name: str, whole: Value, part: Value) -> bool:
    """Lists hold it; anything else is it."""
    del name
    return any(same(item, part) for item in whole) if isinstance(whole, list) else same(whole, part)


def _value_of(optional: Optional) -> Value:
    if not optional.there:
        raise CelError("the optional has no value")
    return optional.value


FUNCTIONS: dict[str, Function] = {
    **OPERATORS,
    "int": _to_int, "uint": lambda name, value: _to_int(name, value, unsigned=True), "double": _to_double,
    "string": _to_string, "bool": _to_bool, "dyn": lambda _, value: value,
    "type": lambda _, value: type_name(value),
    "size": _size,
    "matches": _typed(str, str, body=lambda text, pattern: _pattern(pattern).search(text) is not None),
    "quantity": _typed(str, body=_quantity), "isQuantity": _typed(str, body=_is_quantity),
    "semver": _with_optional((str,), bool, _version),
    "isSemver": _with_optional((str,), bool, lambda text, loose=False: semver(text, loose=loose) is not None),
    "optional.of": lambda _, value: Optional(True, value),
    "optional.none": lambda _: Optional(False),
    "sets.contains": _typed(list, list, body=_contains_all),
    "sets.equivalent": _typed(list, list, body=lambda a, b: _contains_all(a, b) and _contains_all(b, a)),
    "sets.intersects": _typed(list, list, body=lambda a, b: any(same(x, y) for x in a for y in b)),
}  # fmt: skip

METHODS: dict[str, Function] = {
    "size": _size,
    "startsWith": _typed(str, str, body=str.startswith), "endsWith": _typed(str, str, body=str.endswith),
    "contains": _typed(str, str, body=lambda text, part: part in text), "matches": FUNCTIONS["matches"],
    "find": _typed(str, str, body=lambda text, pattern: (_pattern(pattern).search(text) or [""])[0]),
    "lowerAscii": _typed(str, body=lambda text: "".join(c.lower() if c.isascii() else c for c in text)),
    "upperAscii": _typed(str, body=lambda text: "".join(c.upper() if c.isascii() else c for c in text)),
    "trim": _typed(str, body=str.strip), "charAt": _typed(str, int, body=_char_at),
    "substring": _with_optional((str, int), int, _substring), "split": _with_optional((str, str), int, _split),
    "replace": _with_optional((str, str, str), int, str.replace), "join": _with_optional((list,), str, _joined),
    "indexOf": _index_of, "lastIndexOf": _last_index_of, "includes": _includes,
    "sum": _typed(list, body=_sum), "min": _typed(list, body=_extreme(min)), "max": _typed(list, body=_extreme(max)),
    "isSorted": _typed(list, body=_is_sorted),
    "compareTo": _of_either(_compared),
    "isGreaterThan": _of_either(operator.gt), "isLessThan": _of_either(operator.lt),
    "sign": _typed(Quantity, body=lambda value: _compared(value.nanos, 0)),
    "isInteger": _typed(Quantity, body=lambda value: value.nanos % quantity.NANO == 0),
    "asInteger": _typed(Quantity, body=_whole),
    "asApproximateFloat": _typed(Quantity, body=lambda value: value.nanos / quantity.NANO),
    "add": _moved(1), "sub": _moved(-1),
    "major": _typed(Semver, body=lambda version: version.numbers[0]),
    "minor": _typed(Semver, body=lambda version: version.numbers[1]),
    "patch": _typed(Semver, body=lambda version: version.numbers[2]),
    "hasValue": _typed(Optional, body=lambda optional: optional.there), "value": _typed(Optional, body=_value_of),
}  # fmt: skip
