"""Values of CEL in Python: bool, int, Unsigned, float, str, bytes, None, list, dict, Quantity, Semver, Optional."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import total_ordering
from typing import Any

from extender.api.errors import PumiceError

Value = Any
INT64 = range(-(2**63), 2**63)
UINT64 = range(2**64)
_IDENTIFIER = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_VERSION = re.compile(
    r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)"
    rf"(?:-({_IDENTIFIER}(?:\.{_IDENTIFIER})*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)
_LOOSE_VERSION = re.compile(r"v?([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?(.*)", re.DOTALL)


class CelError(PumiceError):
    """An expression that cannot be read, or that has no value for this device."""


class Unsigned(int):
    """A uint: equal to the same int, but not to be added to one."""


class Domains(dict[str, dict[str, Value]]):
    """Attributes or capacities by domain: a domain that there is not is empty, instead of an error."""


@dataclass(frozen=True, slots=True, order=True)
class Quantity:
    nanos: int


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Semver:
    """A semantic version 2.0.0; what it was built from (`+...`) does not count."""

    numbers: tuple[int, int, int]
    before: tuple[str, ...] = ()  # pre-release parts; a version without any is later than one with some

    @property
    def _rank(self) -> tuple[tuple[int, int, int], bool, tuple[tuple[bool, int, str], ...]]:
        parts = tuple((not part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in self.before)
        return self.numbers, not self.before, parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Semver) and self._rank == other._rank

    def __hash__(self) -> int:
        return hash(self._rank)

    def __lt__(self, other: Semver) -> bool:
        return self._rank < other._rank


@dataclass(frozen=True, slots=True)
class Optional:
    """A value that may be missing."""

    there: bool
    value: Value = None


def semver(text: str, *, loose: bool = False) -> Semver | None:
    """A version, None where it is none. `loose`: `v1.2` and `01.2` are taken as 1.2.0."""
    if loose and (rough := _LOOSE_VERSION.fullmatch(text)):
        text = ".".join(str(int(number or 0)) for number in rough.groups()[:3]) + rough[4]
    found = _VERSION.fullmatch(text)
    if found is None:
        return None
    return Semver((int(found[1]), int(found[2]), int(found[3])), tuple(found[4].split(".")) if found[4] else ())


def is_number(value: Value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def same(a: Value, b: Value) -> bool:
    """CEL's ==: numbers by value whatever their types; otherwise values of different types are different."""
    if is_number(a) or is_number(b):
        return is_number(a) and is_number(b) and bool(a == b)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return isinstance(b, dict) and len(a) == len(b) and all(key in b and same(value, b[key]) for key, value in a.items())
    if isinstance(a, Optional) and isinstance(b, Optional):
        return a.there == b.there and same(a.value, b.value)
    return type(a) is type(b) and bool(a == b)


def type_name(value: Value) -> str:
    names = {
        bool: "bool", int: "int", Unsigned: "uint", float: "double", str: "string", bytes: "bytes", list: "list",
        dict: "map", Domains: "map", Quantity: "Quantity", Semver: "Semver", Optional: "optional", type(None): "null",
    }  # fmt: skip
    return names.get(type(value), type(value).__name__)


def no_overload(what: str, *values: Value) -> CelError:
    return CelError(f"{what} is not defined for {', '.join(map(type_name, values))}")
