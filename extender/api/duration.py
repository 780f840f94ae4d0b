"""Durations as Go writes them ("1h30m", "1.5s", "300ms") <-> seconds: flags, scheduler.conf arguments, annotations, policies.

Source: Go 1.26 time.ParseDuration and Duration.String."""

from __future__ import annotations

import re

from extender.api.errors import InvalidObject

_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_PART = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_WHOLE = re.compile(rf"([+-]?)(0|(?:{_PART.pattern})+)")
_NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?")
_DAYS = re.compile(r"([0-9]{1,999})d(.*)")
_OF_GO = "a duration (such as 300ms, 1.5s, 1h30m)"
_OF_PEOPLE = "a time (seconds such as 90, or 500ms, 1m30s, 2h, 1d12h)"
_LONGEST = 1000  # characters
_LIMIT = 2**63  # nanoseconds; Go holds a duration in an int64


def nanoseconds(text: str, path: str = "") -> int:
    """What Go's ParseDuration answers. Raises InvalidObject naming `path`."""
    return _nanoseconds(text, text, _OF_GO, path)


def seconds(text: str, path: str = "") -> float:
    """`seconds("1m30s") == 90.0`. Raises InvalidObject naming `path`."""
    return nanoseconds(text, path) / 1e9


def length(text: str, path: str = "") -> float:
    """As people write it: a plain number is seconds, and days may come first, which Go has not: `length("1d12h") == 129600.0`.

    Raises InvalidObject naming `path`."""
    days = _DAYS.fullmatch(text)
    of_go = f"{24 * int(days.group(1))}h{days.group(2)}" if days else f"{text}s" if _NUMBER.fullmatch(text) else text
    return _nanoseconds(of_go, text, _OF_PEOPLE, path) / 1e9


def format_duration(length: float) -> str:
    """Seconds -> Go's words: 90 -> "1m30s", 0.3 -> "300ms", 0 -> "0s"; finer than a nanosecond is rounded."""
    return format_nanoseconds(round(length * 1e9))


def format_nanoseconds(length: int) -> str:
    """What Go's Duration.String answers."""
    if length == 0:
        return "0s"
    rest = abs(length)
    sign = "-" if length < 0 else ""
    if rest < 10**9:
        unit = next(unit for unit in ("ms", "µs", "ns") if rest >= _UNITS[unit])
        return f"{sign}{_decimal(rest, _UNITS[unit])}{unit}"
    hours, rest = divmod(rest, _UNITS["h"])
    minutes, rest = divmod(rest, _UNITS["m"])
    words = f"{_decimal(rest, _UNITS['s'])}s"
    if hours or minutes:
        words = f"{minutes}m{words}"
    return f"{sign}{hours}h{words}" if hours else f"{sign}{words}"


def _nanoseconds(text: str, written: str, wanted: str, path: str) -> int:
    found = _WHOLE.fullmatch(text)
    if not found or len(text) > _LONGEST:
        raise InvalidObject(f"'{written}' is not {wanted}", path=path)
    total = sum(_part(number, unit) for number, unit in _PART.findall(text))
    negative = found.group(1) == "-"
    if total > (_LIMIT if negative else _LIMIT - 1):
        raise InvalidObject(f"'{written}' is longer than 292 years", path=path)
    return -total if negative else total


def _part(number: str, unit: str) -> int:
    """Whole nanoseconds of one part; what is finer is cut off."""
    whole, _, fraction = number.partition(".")
    finer: int = 10 ** len(fraction)
    return int(whole + fraction) * _UNITS[unit] // finer


def _decimal(amount: int, unit: int) -> str:
    """amount / unit, exactly, without trailing zeros; `unit` is a power of ten."""
    whole, rest = divmod(amount, unit)
    fraction = str(rest).zfill(len(str(unit)) - 1).rstrip("0") if rest else ""
    return f"{whole}.{fraction}" if fraction else str(whole)
