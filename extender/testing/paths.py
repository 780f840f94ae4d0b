"""Dotted paths into objects and the predicates that stories use: `status.conditions[type=PodScheduled].message`, matches ..."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

_STEP = re.compile(r"[^.\[\]]+|\[[^\]]*\]")


class _Missing:
    def __repr__(self) -> str:
        return "nothing"


MISSING: Any = _Missing()


def steps(path: str) -> list[str]:
    """`a.b[c/d.e][0]` -> a, b, [c/d.e], [0]."""
    return _STEP.findall(path)


def values_at(obj: Any, path: str) -> list[Any]:
    """What is at the path: one value (MISSING where there is none), or one for each item where `[*]` is in it."""
    found = [obj]
    for step in steps(path):
        found = [inner for value in found for inner in _into(value, step)]
    return found or [MISSING]


def _into(value: Any, step: str) -> list[Any]:
    if not step.startswith("["):
        return [value[step]] if isinstance(value, Mapping) and step in value else [MISSING]
    inner = step[1:-1]
    if isinstance(value, list):
        return _items(value, inner)
    return [value[inner]] if isinstance(value, Mapping) and inner in value else [MISSING]


def _items(value: list[Any], which: str) -> list[Any]:
    if which == "*":
        return list(value)
    if which.isdigit():
        return [value[int(which)]] if int(which) < len(value) else [MISSING]
    key, _, wanted = which.partition("=")
    return [item for item in value if isinstance(item, Mapping) and str(item.get(key)) == wanted][:1] or [MISSING]


def related(field: str, other: str) -> bool:
    """The same field, or one is above the other. List indexes that only one of them names do not matter."""
    one, two = steps(field), steps(other)
    return all(a == b or {a, b} <= {"[*]"} for a, b in zip(one, two, strict=False))


def _keys(value: Any) -> set[str]:
    return set(value) if isinstance(value, Mapping) else set()


def _order(item: Any) -> str:
    return f"{type(item).__name__} {item!r}"


def _empty(value: Any) -> bool:
    return value is MISSING or value is None or value in ("", [], {})


def _length(value: Any) -> int:
    return 0 if value is MISSING or value is None else len(value)


def _between(value: Any, limits: list[float]) -> bool:
    numbers = value if isinstance(value, list) else [value]
    return all(isinstance(n, int | float) and limits[0] <= n <= limits[1] for n in numbers)


def _number(value: Any) -> float:
    return 0.0 if _empty(value) else float(value)


PREDICATES: dict[str, Callable[[Any, Any], bool]] = {
    "equals": lambda value, want: bool(value == want),
    "notEquals": lambda value, want: bool(value != want),
    "matches": lambda value, want: value is not MISSING and re.search(want, str(value)) is not None,
    "contains": lambda value, want: not _empty(value) and want in value,
    "absent": lambda value, want: (value is MISSING or value is None) == bool(want),
    "absentOr": lambda value, want: value is MISSING or value == want,
    "emptyOr": lambda value, want: _empty(value) or value == want,
    "atMost": lambda value, want: _number(value) <= want,
    "atLeast": lambda value, want: _number(value) >= want,
    "lengthAtMost": lambda value, want: _length(value) <= want,
    "equalsUnordered": lambda value, want: isinstance(value, list) and sorted(value, key=_order) == sorted(want, key=_order),
    "keysInclude": lambda value, want: set(want) <= _keys(value),
    "keysExclude": lambda value, want: not set(want) & _keys(value),
    "keysEqual": lambda value, want: set(want) == _keys(value),
    "allBetween": _between,
}  # fmt: skip


_OF_ALL = ("equalsUnordered", "allBetween")  # about all that `[*]` finds, taken together


def fault(obj: Any, check: Mapping[str, Any]) -> str | None:
    """What is wrong with the object by a check `{path, <predicate>}`; None where the predicate holds for all it finds."""
    name = next((key for key in check if key in PREDICATES), None)
    if name is None:
        raise ValueError(f"no predicate in {dict(check)}; known: {', '.join(PREDICATES)}")
    values = values_at(obj, check["path"])
    for value in [values] if name in _OF_ALL and "[*]" in steps(check["path"]) else values:
        if not PREDICATES[name](value, check[name]):
            return f"{check['path']}: want {name} {check[name]!r}, got {value!r}"
    return None
