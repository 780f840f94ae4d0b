"""Quantities ("1500m", "2Gi", "1e3") <-> exact integers, as Kubernetes reads and writes them.

The exact value is held in nano-units, which is Kubernetes' own resolution: what is finer is rounded away from zero.
Source: k8s.io/apimachinery v0.36.1, pkg/api/resource, ParseQuantity and Quantity.CanonicalizeBytes."""

from __future__ import annotations

import re
from functools import lru_cache

from extender.api.errors import InvalidObject

NANO = 10**9
MAX = 2**63 - 1  # Kubernetes caps amounts here

_SYNTAX = re.compile(r"^([+-]?)(\d+\.?\d*|\.\d+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d{1,9})?$")
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}


def nanos(quantity: str | int | float, path: str = "") -> int:
    """The exact value in nano-units. Raises InvalidObject naming `path`."""
    if isinstance(quantity, bool) or not isinstance(quantity, (str, int, float)):
        raise InvalidObject(f"quantity must be a string or a number, not {quantity!r}", path=path)
    value = _parse(str(quantity))
    if value is None:
        raise InvalidObject(f"'{quantity}' is not a quantity (such as 500m, 2, 1.5Gi, 1e3)", path=path)
    return value


@lru_cache(maxsize=8192)
def _parse(text: str) -> int | None:
    found = _SYNTAX.match(text)
    if not found:
        return None
    sign, digits, suffix = found.group(1), found.group(2), found.group(3) or ""
    whole, _, fraction = digits.partition(".")
    mantissa = int((whole + fraction) or "0")
    if not mantissa:
        return 0
    scale = 9 - len(fraction)
    if suffix in _BINARY:
        mantissa *= _BINARY[suffix]
    elif suffix in _DECIMAL:
        scale += _DECIMAL[suffix]
    else:
        scale += int(suffix[1:])
    if scale + len(str(mantissa)) > 60:
        value = MAX * NANO
    elif scale >= 0:
        value = mantissa * 10**scale
    elif -scale > len(str(mantissa)):
        value = 1
    else:
        value = -(-mantissa // 10**-scale)
    value = min(value, MAX * NANO)
    return -value if sign == "-" else value


def _away_from_zero(value: int, unit: int) -> int:
    return -(-value // unit) if value >= 0 else value // unit


def milli(quantity: str | int | float, path: str = "") -> int:
    """Thousandths, rounded away from zero: cpu and extended resources. `milli("250m") == 250`."""
    return max(min(_away_from_zero(nanos(quantity, path), 10**6), MAX), -MAX)


def units(quantity: str | int | float, path: str = "") -> int:
    """Whole units, rounded away from zero: bytes of memory, numbers of pods. `units("1Ki") == 1024`."""
    return _away_from_zero(nanos(quantity, path), NANO)


def format_milli(amount: int) -> str:
    """Thousandths -> canonical decimal text: 1500 -> "1500m", 2000 -> "2", 3000000 -> "3k"."""
    return format_nanos(amount * 10**6)


def format_bytes(amount: int) -> str:
    """Units -> canonical binary text: 2147483648 -> "2Gi", 1000 -> "1000"."""
    return format_nanos(amount * NANO, binary=True)


def format_nanos(amount: int, *, binary: bool = False) -> str:
    """Nano-units -> canonical text: the largest suffix that leaves an integer mantissa.

    Binary suffixes are used only where `binary` is set and the amount is at least 1024 whole units, as Kubernetes does."""
    if amount == 0:
        return "0"
    sign, rest = ("-", -amount) if amount < 0 else ("", amount)
    if binary and rest % NANO == 0 and rest // NANO >= 1024:
        rest //= NANO
        suffix = ""
        for name, factor in _BINARY.items():
            if rest % factor == 0:
                suffix = name
        return f"{sign}{rest // _BINARY.get(suffix, 1)}{suffix}"
    exponent = -9
    while rest % 1000 == 0 and exponent < 18:
        rest, exponent = rest // 1000, exponent + 3
    return f"{sign}{rest}{_DECIMAL_SUFFIX[exponent]}"
