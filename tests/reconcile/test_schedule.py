"""When a cron schedule is due."""

from __future__ import annotations

import datetime as dt

import pytest

from controller.schedule import parse, time_zone
from extender.api.errors import InvalidObject


def at(text: str, zone: str = "UTC") -> float:
    return dt.datetime.fromisoformat(text).replace(tzinfo=time_zone(zone)).timestamp()


NEXT = {
    "every minute": ("* * * * *", "UTC", "2025-01-06T00:00:30", "2025-01-06T00:01:00"),
    "never the same moment": ("* * * * *", "UTC", "2025-01-06T00:01:00", "2025-01-06T00:02:00"),
    "steps": ("*/20 * * * *", "UTC", "2025-01-06T00:21:00", "2025-01-06T00:40:00"),
    "from a number in steps": ("5/20 * * * *", "UTC", "2025-01-06T00:06:00", "2025-01-06T00:25:00"),
    "ranges and lists": ("0 9-10,17 * * *", "UTC", "2025-01-06T10:30:00", "2025-01-06T17:00:00"),
    "names": ("0 0 * FEB wed", "UTC", "2025-01-06T00:00:00", "2025-02-05T00:00:00"),
    "both days given: either": ("0 0 13 * 5", "UTC", "2025-01-06T00:00:00", "2025-01-10T00:00:00"),
    "one day a star: both": ("0 0 * * 5", "UTC", "2025-01-06T00:00:00", "2025-01-10T00:00:00"),
    "a star in steps is a set": ("0 0 */15 * 1", "UTC", "2025-01-06T00:00:00", "2025-01-13T00:00:00"),
    "leap day": ("0 0 29 2 *", "UTC", "2025-01-06T00:00:00", "2028-02-29T00:00:00"),
    "descriptor": ("@weekly", "UTC", "2025-01-06T00:00:00", "2025-01-12T00:00:00"),
    "constant delay": ("@every 40s", "UTC", "2025-01-06T00:00:05", "2025-01-06T00:00:45"),
    "in a zone": ("0 9 * * *", "Europe/Berlin", "2025-01-06T09:30:00", "2025-01-07T09:00:00"),
    "clocks put forward: left out": ("30 2 * * *", "Europe/Berlin", "2025-03-29T03:00:00", "2025-03-31T02:30:00"),
    "across the change": ("0 12 * * *", "Europe/Berlin", "2025-03-29T12:00:00", "2025-03-30T12:00:00"),
}


@pytest.mark.parametrize(("text", "zone", "after", "want"), NEXT.values(), ids=NEXT)
def test_next_start(text: str, zone: str, after: str, want: str) -> None:
    """The first start later than a time."""
    assert parse(text, time_zone(zone)).after(at(after, zone)) == at(want, zone)


def test_clocks_put_back_start_once() -> None:
    """The hour that comes twice holds one start; the day has 25 hours."""
    times = parse("30 2 * * *", time_zone("Europe/Berlin"))
    first = times.after(at("2025-10-26T00:00:00", "Europe/Berlin")) or 0
    assert (times.after(first) or 0) - first == 25 * 3600


def test_a_date_that_never_comes() -> None:
    """Is found out."""
    assert parse("0 0 31 2 *").after(at("2025-01-06T00:00:00")) is None


LATEST = {
    "none yet": ("0 12 * * *", "2025-01-06T00:00:00", "2025-01-06T11:00:00", None),
    "the last of many": ("* * * * *", "2024-01-06T00:00:00", "2025-01-06T11:00:30", "2025-01-06T11:00:00"),
    "long ago": ("0 0 1 1 *", "2024-06-01T00:00:00", "2025-12-31T00:00:00", "2025-01-01T00:00:00"),
    "just now": ("0 12 * * *", "2025-01-06T00:00:00", "2025-01-06T12:00:00", "2025-01-06T12:00:00"),
}


@pytest.mark.parametrize(("text", "after", "until", "want"), LATEST.values(), ids=LATEST)
def test_latest_start(text: str, after: str, until: str, want: str | None) -> None:
    """The last start in a span of time."""
    assert parse(text).latest(at(after), at(until)) == (at(want) if want else None)


def test_what_is_no_schedule() -> None:
    """Names the field; what may stand in it: tests/words/test_cron.py."""
    with pytest.raises(InvalidObject, match=r"spec\.schedule: minute: '60' is not within 0 to 59"):
        parse("60 * * * *")


def test_a_zone_in_the_schedule() -> None:
    """Overrides the other."""
    assert parse("TZ=Europe/Berlin 0 9 * * *").after(at("2025-01-06T00:00:00")) == at("2025-01-06T08:00:00")


def test_no_such_zone() -> None:
    """Names the field."""
    with pytest.raises(InvalidObject, match=r"spec\.timeZone"):
        time_zone("Middle/Earth")
