"""Cron expressions: five fields, a descriptor such as @hourly, or @every <duration>. Admission and controller read them here.

Source: github.com/robfig/cron v3, parser.go, ParseStandard. Days of the week are 0 to 6; 7 is refused. A time zone in front of
the expression is not read here: admission refuses it, and the controller takes it off (controller/schedule.py)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from extender.api import duration
from extender.api.errors import InvalidObject

_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}  # fmt: skip
_EVERY = "@every "
_RANGE = re.compile(r"(?P<low>[^-/]+)(?P<dash>-(?P<high>[^-/]*))?(/(?P<step>[^-/]+))?")


@dataclass(frozen=True, slots=True)
class Cron:
    """`every`: seconds of a constant delay; 0 where the five sets say when. Days of the week begin with Sunday, 0.

    `any_day`: one of the two day fields was a star, so that both must hold; otherwise either is enough."""

    every: float = 0.0
    minutes: frozenset[int] = frozenset()
    hours: frozenset[int] = frozenset()
    days: frozenset[int] = frozenset()
    months: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset()
    any_day: bool = True


class _Field(NamedTuple):
    name: str
    low: int
    high: int
    names: Mapping[str, int] = {}

    def number(self, text: str) -> int:
        """Raises InvalidObject where the text is neither a number nor a name."""
        digits = text.removeprefix("+")
        if digits.isascii() and digits.isdigit() and len(digits) < 10:
            return int(digits)
        if text.lower() not in self.names:
            raise InvalidObject(f"{self.name}: '{text}' is not understood")
        return self.names[text.lower()]


def _numbered(words: str, first: int) -> dict[str, int]:
    return {word: number for number, word in enumerate(words.split(), first)}


_FIELDS: Sequence[_Field] = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, _numbered("jan feb mar apr may jun jul aug sep oct nov dec", 1)),
    _Field("day of week", 0, 6, _numbered("sun mon tue wed thu fri sat", 0)),
)


def parse(text: str) -> Cron:
    """Raises InvalidObject with what is wrong."""
    if text.startswith(_EVERY):
        return Cron(every=max(float(int(duration.seconds(text.removeprefix(_EVERY)))), 1.0))
    if text.startswith("@") and text not in _DESCRIPTORS:
        raise InvalidObject(f"'{text}' is no descriptor; known: {', '.join(_DESCRIPTORS)}, @every <duration>")
    words = _DESCRIPTORS.get(text, text).split()
    if len(words) != len(_FIELDS):
        names = ", ".join(field.name for field in _FIELDS)
        raise InvalidObject(f"'{text}' has {len(words)} fields, a cron expression has five: {names}")
    minutes, hours, days, months, weekdays = (_values(field, word) for field, word in zip(_FIELDS, words, strict=True))
    any_day = any(_is_star(part) for word in (words[2], words[4]) for part in word.split(","))
    return Cron(0.0, minutes, hours, days, months, weekdays, any_day)


def _values(field: _Field, text: str) -> frozenset[int]:
    return frozenset(value for part in text.split(",") if part for value in _range(field, part))


def _range(field: _Field, text: str) -> range:
    found = _RANGE.fullmatch(text)
    if not found:
        raise InvalidObject(f"{field.name}: '{text}' is not a number, a range or a step")
    step = _Field(field.name, 0, 0).number(found["step"]) if found["step"] else 1
    if found["low"] in ("*", "?"):
        low, high = field.low, field.high  # what follows a '-' is not looked at
    else:
        low = field.number(found["low"])
        high = field.number(found["high"]) if found["dash"] else field.high if found["step"] else low
    if low < field.low or high > field.high:
        raise InvalidObject(f"{field.name}: '{text}' is not within {field.low} to {field.high}")
    if low > high:
        raise InvalidObject(f"{field.name}: '{text}' must begin with the smaller number")
    if step == 0:
        raise InvalidObject(f"{field.name}: '{text}' needs a step above 0")
    return range(low, high + 1, step)


def _is_star(part: str) -> bool:
    """A star in steps is a set like any other."""
    span, _, step = part.partition("/")
    return span[:1] in ("*", "?") and step in ("", "1")
