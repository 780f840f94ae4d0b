"""When a cron schedule is due in a time zone.

Source: github.com/robfig/cron v3, spec.go. Wall clock times that a zone leaves out (clocks put forward) are
skipped; of those that come twice the first counts."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from extender.api import cron
from extender.api.cron import Cron
from extender.api.errors import InvalidObject
from extender.api.meta import Time

_YEARS = 5  # what does not come within them never comes


@dataclass(frozen=True, slots=True)
class Schedule:
    cron: Cron
    zone: dt.tzinfo

    def after(self, when: Time) -> Time | None:
        """The first start later than `when`; None for never."""
        if self.cron.every:
            return float(int(when)) + self.cron.every
        wall = dt.datetime.fromtimestamp(when, self.zone)
        day, last, passed = wall.date(), wall.date() + dt.timedelta(days=366 * _YEARS), (wall.hour, wall.minute)
        while day <= last:
            if day.month in self.cron.months and self._on(day):
                for hour, minute in self._from(passed):
                    start = self._at(day, hour, minute)
                    if start is not None and start > when:
                        return start
            day, passed = day + dt.timedelta(days=1), (0, 0)
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

    def _from(self, passed: tuple[int, int]) -> Iterator[tuple[int, int]]:
        """Hours and minutes of a day, those before `passed` left out."""
        for hour in sorted(hour for hour in self.cron.hours if hour >= passed[0]):
            for minute in sorted(self.cron.minutes):
                if (hour, minute) >= passed:
                    yield hour, minute

    def _on(self, day: dt.date) -> bool:
        of_month, of_week = day.day in self.cron.days, day.isoweekday() % 7 in self.cron.weekdays
        return (of_month and of_week) if self.cron.any_day else (of_month or of_week)

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
    try:
        return Schedule(cron.parse(text), zone)
    except InvalidObject as error:
        raise InvalidObject(str(error), path="spec.schedule") from None


def time_zone(name: str) -> dt.tzinfo:
    """An IANA zone. Raises InvalidObject."""
    try:
        return ZoneInfo(name) if name not in ("", "UTC") else dt.UTC
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidObject(f"'{name}' is no time zone (such as Europe/Berlin)", path="spec.timeZone") from None
