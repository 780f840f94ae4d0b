"""When a cron schedule is due: five fields, a descriptor such as @hourly, or @every <duration>, in a time zone.

Source: github.com/robfig/cron v3, parser.go and spec.go. Wall clock times that a zone leaves out (clocks put forward) are
skipped; of those that come twice the first counts."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from extender.api import duration
from extender.api.errors import InvalidObject
from extender.api.meta import Time

_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}  # fmt: skip
_EVERY = "@every "
_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: number for number, name in enumerate(_NAMES, 1)}
_DAYS = dict(zip(("sun", "mon", "tue", "wed", "thu", "fri", "sat"), range(7), strict=True))
_FIELDS: tuple[tuple[str, int, int, Mapping[str, int]], ...] = (
    ("minute", 0, 59, {}), ("hour", 0, 23, {}), ("day of month", 1, 31, {}), ("month", 1, 12, _MONTHS),
    ("day of week", 0, 6, _DAYS),
)  # fmt: skip
_YEARS = 5  # what does not come within them never comes


@dataclass(frozen=True, slots=True)
class Schedule:
    """`every` is set for a constant delay, else the five sets. `any_day`: one of the two day fields was a star, so that
    both must hold; otherwise either is enough."""

    zone: dt.tzinfo
    every: float = 0.0
    minutes: frozenset[int] = frozenset()
    hours: frozenset[int] = frozenset()
    days: frozenset[int] = frozenset()
    months: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset()
    any_day: bool = True

    def after(self, when: Time) -> Time | None:
        """The first start later than `when`; None for never."""
        if self.every:
            return float(int(when)) + self.every
        day = dt.datetime.fromtimestamp(when, self.zone).date()
        last = day + dt.timedelta(days=366 * _YEARS)
        while day <= last:
            if day.month in self.months and self._on(day):
                for hour in sorted(self.hours):
                    for minute in sorted(self.minutes):
                        start = self._at(day, hour, minute)
                        if start is not None and start > when:
                            return start
            day += dt.timedelta(days=1)
        return None

    def latest(self, after: Time, until: Time) -> Time | None:
        """The last start in (after, until], looked for backwards in growing steps."""
        window = 120.0
        while True:
            begin = max(after, until - window)
            start, found = self.after(begin), None
            while start is not None and start <= until:
                found, start = start, self.after(start)
            if found is not None or begin <= after:
                return found
            window *= 16

    def _on(self, day: dt.date) -> bool:
        of_month, of_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return (of_month and of_week) if self.any_day else (of_month or of_week)

    def _at(self, day: dt.date, hour: int, minute: int) -> Time | None:
        wall = dt.datetime.combine(day, dt.time(hour, minute), self.zone)
        start = wall.timestamp()
        back = dt.datetime.fromtimestamp(start, self.zone)
        return start if (back.hour, back.minute) == (hour, minute) else None


def parse(text: str, zone: dt.tzinfo = dt.UTC) -> Schedule:
    """Raises InvalidObject. A leading TZ=<zone> or CRON_TZ=<zone> overrides the zone."""
    for prefix in ("TZ=", "CRON_TZ="):
        if text.startswith(prefix):
            name, _, text = text.removeprefix(prefix).partition(" ")
            zone = time_zone(name)
    text = text.strip()
    if text.startswith(_EVERY):
        return Schedule(zone, every=max(float(int(duration.seconds(text.removeprefix(_EVERY), "spec.schedule"))), 1.0))
    words = _DESCRIPTORS.get(text, text).split()
    if len(words) != len(_FIELDS):
        raise InvalidObject(f"'{text}' is no schedule: five fields, or a descriptor such as @hourly", path="spec.schedule")
    minutes, hours, days, months, weekdays = (_values(word, *field) for word, field in zip(words, _FIELDS, strict=True))
    any_day = any(_is_star(part) for word in (words[2], words[4]) for part in word.split(","))
    return Schedule(zone, 0.0, minutes, hours, days, months, weekdays, any_day)


def time_zone(name: str) -> dt.tzinfo:
    """An IANA zone. Raises InvalidObject."""
    try:
        return ZoneInfo(name) if name not in ("", "UTC") else dt.UTC
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidObject(f"'{name}' is no time zone (such as Europe/Berlin)", path="spec.timeZone") from None


def _values(text: str, field: str, low: int, high: int, names: Mapping[str, int]) -> frozenset[int]:
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        span, slash, step = part.partition("/")
        first, dash, last = span.partition("-")
        if first in ("*", "?"):
            begin, end = low, high
        else:
            begin = _number(first, field, names)
            end = _number(last, field, names) if dash else high if slash else begin
        width = _number(step, field, {}) if slash else 1
        if not (low <= begin <= end <= high) or width < 1:
            raise InvalidObject(f"{field}: '{part}' is not within {low} to {high}", path="spec.schedule")
        found.update(range(begin, end + 1, width))
    return frozenset(found)


def _is_star(part: str) -> bool:
    span, _, step = part.partition("/")
    return span[:1] in ("*", "?") and step in ("", "1")


def _number(text: str, field: str, names: Mapping[str, int]) -> int:
    if text.lower() in names:
        return names[text.lower()]
    if not text.isdigit():
        raise InvalidObject(f"{field}: '{text}' is no number", path="spec.schedule")
    return int(text)
