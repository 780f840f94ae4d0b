"""Cron expressions as upstream's parser reads them: five fields, or a descriptor such as @hourly.

Source: github.com/robfig/cron v3, parser.go, ParseStandard. Days of the week are 0 to 6, 7 is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from extender.api.decode import DURATION

_DESCRIPTORS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_EVERY = "@every "
_RANGE = re.compile(r"(?P<low>[^-/]+)(?P<dash>-(?P<high>[^-/]*))?(/(?P<step>[^-/]+))?")


class _Field(NamedTuple):
    name: str
    low: int
    high: int
    names: Mapping[str, int] = {}


def _numbered(words: str, first: int) -> dict[str, int]:
    return {word: number for number, word in enumerate(words.split(), first)}


_FIELDS: Sequence[_Field] = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, _numbered("jan feb mar apr may jun jul aug sep oct nov dec", 1)),
    _Field("day of week", 0, 6, _numbered("sun mon tue wed thu fri sat", 0)),
)


_STEP = _Field("step", 0, 0)


def schedule_fault(text: str) -> str:
    """What is wrong with the expression; "" where it can be used."""
    if text.startswith("@"):
        if text.startswith(_EVERY):
            return DURATION.fault(text.removeprefix(_EVERY))
        return "" if text in _DESCRIPTORS else f"'{text}' is no descriptor; known: {', '.join(_DESCRIPTORS)}, @every <duration>"
    words = text.split()
    if len(words) != len(_FIELDS):
        names = ", ".join(field.name for field in _FIELDS)
        return f"'{text}' has {len(words)} fields, a cron expression has five: {names}"
    faults = (_field_fault(field, word) for field, word in zip(_FIELDS, words, strict=True))
    return next(filter(None, faults), "")


def _field_fault(field: _Field, text: str) -> str:
    faults = (_range_fault(field, part) for part in text.split(",") if part)
    return next(filter(None, faults), "")


def _range_fault(field: _Field, text: str) -> str:
    found = _RANGE.fullmatch(text)
    if not found:
        return f"{field.name}: '{text}' is not a number, a range or a step"
    step = _number(_STEP, found["step"] or "1")
    low: int | None
    high: int | None
    if found["low"] in ("*", "?"):
        low, high = field.low, field.high  # what follows a '-' is not looked at
    else:
        low = _number(field, found["low"])
        high = _number(field, found["high"]) if found["dash"] else field.high if found["step"] else low
    if low is None or high is None or step is None:
        return f"{field.name}: '{text}' is not understood"
    if low < field.low or high > field.high:
        return f"{field.name}: '{text}' is not within {field.low} to {field.high}"
    if low > high:
        return f"{field.name}: '{text}' must begin with the smaller number"
    return f"{field.name}: '{text}' needs a step above 0" if step == 0 else ""


def _number(field: _Field, text: str) -> int | None:
    digits = text.removeprefix("+")
    if digits.isascii() and digits.isdigit() and len(digits) < 10:
        return int(digits)
    return field.names.get(text.lower())
