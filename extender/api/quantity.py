"""Quantities ("1500m", "2Gi", "1e3") <-> exact integers, as Kubernetes reads and writes them.

The exact value is held in nano-units, which is Kubernetes' own resolution: what is finer is rounded away from zero.
Source: k8s.io/apimachinery v0.36.1, pkg/api/resource, ParseQuantity and Quantity.CanonicalizeBytes. Where that code
loses the value we keep it:

* an amount past int64 is held at the largest one (there Value() wraps around, or answers 0 for "100E");
* a negative fraction is rounded away from zero in every notation (there "-1.3Ki" goes towards zero);
* "1000E" is written as such (there as "1"), exponents past int32 are refused (there they wrap around);
* a number has digits, as its grammar and the CRDs' schemas ask (there "m", "+" and "." are read as 0)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from extender.api.errors import InvalidObject

NANO = 10**9
MAX = 2**63 - 1  # Kubernetes caps amounts here

_SYNTAX = re.compile(r"([+-]?)([0-9]+\.?[0-9]*|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?")
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_LARGEST_EXPONENT = 2**31 - 1
_LONGEST = 1000  # characters; what is longer was not written by anyone who meant an amount
_INT64_DIGITS = 18  # so many decimal digits always fit an int64


class _Number(NamedTuple):
    """What was written: (-1)**negative * int(digits + fraction) * 2**binary * 10**(decimal - len(fraction))."""

    negative: bool
    digits: str  # without leading zeros
    fraction: str
    binary: int  # 0 for the decimal notations
    decimal: int
    by_exponent: bool  # written as 1e3, not as 1k


def nanos(quantity: str | int | float, path: str = "") -> int:
    """The exact value in nano-units. Raises InvalidObject naming `path`."""
    if type(quantity) is str and (value := _parse(quantity)) is not None:  # as nearly all are written
        return value
    return _nanos(_text(quantity, path), path)


def milli(quantity: str | int | float, path: str = "") -> int:
    """Thousandths, rounded away from zero: cpu and extended resources. `milli("250m") == 250`."""
    return max(min(_away_from_zero(nanos(quantity, path), 10**6), MAX), -MAX)


def units(quantity: str | int | float, path: str = "") -> int:
    """Whole units, rounded away from zero: bytes of memory, numbers of pods. `units("1Ki") == 1024`."""
    return _away_from_zero(nanos(quantity, path), NANO)


def canonical(quantity: str | int | float, path: str = "") -> str:
    """The text an API server hands back: "0.5" -> "500m", "1024Ki" -> "1Mi", "12e4" -> "120e3"."""
    text = _text(quantity, path)
    number = _read(text)
    if number is None:
        raise _unreadable(text, path)
    if not number.digits.strip("0") and not number.fraction.strip("0"):
        return "0"
    if _kept_as_written(number):
        return text
    if number.binary:
        return format_nanos(_value(number), binary=True)
    mantissa, exponent = _thousands(*_rounded_to_nano(int(number.digits + number.fraction), _scale(number)))
    sign = "-" if number.negative else ""
    if number.by_exponent:
        return f"{sign}{mantissa}" + (f"e{exponent}" if exponent else "")
    spare = max(exponent - _DECIMAL["E"], 0)
    return f"{sign}{mantissa * 10**spare}{_DECIMAL_SUFFIX[exponent - spare]}"


def format_nanos(amount: int, *, binary: bool = False) -> str:
    """Nano-units -> canonical text: the largest suffix that leaves an integer mantissa.

    Binary suffixes are used only where `binary` is set and the amount is at least 1024 whole units, as Kubernetes does."""
    if amount == 0:
        return "0"
    sign, rest = ("-", -amount) if amount < 0 else ("", amount)
    if binary and rest % NANO == 0 and rest // NANO >= 1024:
        rest //= NANO
        suffix = ""
        for name, power in _BINARY.items():
            if rest % 2**power == 0:
                suffix = name
        return f"{sign}{rest >> _BINARY.get(suffix, 0)}{suffix}"
    exponent = -9
    while rest % 1000 == 0 and exponent < _DECIMAL["E"]:
        rest, exponent = rest // 1000, exponent + 3
    return f"{sign}{rest}{_DECIMAL_SUFFIX[exponent]}"


def for_people(name: str, amount: int) -> str:
    """Nano-units of a resource in words: cpu "19.2", memory "1.5Gi"; three digits after the point at most, bytes two."""
    if in_bytes(name):
        for suffix, power in reversed(_BINARY.items()):
            if abs(amount) >= NANO << power:
                return _plain(amount / (NANO << power), 2) + suffix
    return _plain(amount / NANO, 3)


def in_bytes(name: str) -> bool:
    return name in ("memory", "ephemeral-storage") or name.startswith("hugepages-")


def _plain(value: float, digits: int) -> str:
    return f"{value:.{digits}f}".rstrip("0").rstrip(".") if value != int(value) else f"{int(value)}"


def _text(quantity: str | int | float, path: str) -> str:
    if isinstance(quantity, bool) or not isinstance(quantity, (str, int, float)):
        raise InvalidObject(f"quantity must be a string or a number, not {quantity!r}", path=path)
    return str(quantity).strip(" ")


def _unreadable(text: str, path: str) -> InvalidObject:
    return InvalidObject(f"'{text}' is not a quantity (such as 500m, 2, 1.5Gi, 1e3)", path=path)


def _nanos(text: str, path: str) -> int:
    value = _parse(text)
    if value is None:
        raise _unreadable(text, path)
    return value


@lru_cache(maxsize=8192)
def _parse(text: str) -> int | None:
    number = _read(text)
    return None if number is None else _value(number)


def _read(text: str) -> _Number | None:
    found = _SYNTAX.fullmatch(text)
    if not found or len(text) > _LONGEST:
        return None
    sign, digits, suffix = found.group(1), found.group(2), found.group(3) or ""
    whole, _, fraction = digits.partition(".")
    binary = _BINARY.get(suffix, 0)
    by_exponent = not binary and suffix not in _DECIMAL
    if by_exponent and len(suffix.lstrip("eE+-").lstrip("0")) > 10:
        return None
    decimal = int(suffix[1:]) if by_exponent else _DECIMAL.get(suffix, 0)
    if abs(decimal) > _LARGEST_EXPONENT:
        return None
    return _Number(sign == "-", whole.lstrip("0") or "0", fraction, binary, decimal, by_exponent)


def _scale(number: _Number) -> int:
    """Power of ten by which the digits as one integer are to be multiplied."""
    return number.decimal - len(number.fraction)


def _value(number: _Number) -> int:
    mantissa, exponent = _rounded_to_nano(int(number.digits + number.fraction) << number.binary, _scale(number))
    exponent += 9
    large = mantissa and exponent + _digits(mantissa) > 2 * _INT64_DIGITS
    value = MAX * NANO if large else min(mantissa * 10**exponent, MAX * NANO)
    return -value if number.negative else value


def _rounded_to_nano(mantissa: int, exponent: int) -> tuple[int, int]:
    """The same amount with an exponent of -9 or more; what is finer is rounded up."""
    finer = -9 - exponent
    if not mantissa:
        return 0, -9
    if finer <= 0:
        return mantissa, exponent
    return (1 if finer > _digits(mantissa) else _away_from_zero(mantissa, 10**finer)), -9


def _thousands(mantissa: int, exponent: int) -> tuple[int, int]:
    """The same amount with the smallest mantissa whose exponent is a multiple of three."""
    while mantissa % 10 == 0:
        mantissa, exponent = mantissa // 10, exponent + 1
    return mantissa * 10 ** (exponent % 3), exponent - exponent % 3


def _kept_as_written(number: _Number) -> bool:
    """Kubernetes keeps the text of what fits an int64 and needs no other suffix, its sign and leading zeros with it."""
    shifted = number.digits + number.fraction
    if number.binary:
        spare = 14 - len(number.digits) - number.binary * 3 // 10
        return not number.fraction and spare >= 0 and int(number.digits) % 8 != 0
    fits = len(shifted) <= _INT64_DIGITS and _scale(number) >= -9
    return fits and _scale(number) % 3 == 0 and not shifted.endswith("000") and shifted[0] != "0"


def _away_from_zero(value: int, unit: int) -> int:
    return -(-value // unit) if value >= 0 else value // unit


def _digits(value: int) -> int:
    """Decimal digits of a positive integer, at most one too many."""
    return value.bit_length() * 30103 // 100000 + 1
