"""Which cron expressions can be used, and what they say. When one is due: tests/reconcile/test_schedule.py."""

from __future__ import annotations

import pytest

from extender.api import cron
from extender.api.cron import Cron
from extender.api.errors import InvalidObject

GOOD = ["* * * * *", "0 3 * * *", "*/5 * * * *", "1-5/2,7 * * * *", "0 0 1 jan mon", "0 0 * * SUN-SAT", "? ? ? ? ?",
        "5/15 * * * *", " 0 0 31 2 * ", "@hourly", "@every 1h30m", "@midnight"]  # fmt: skip
BAD = {
    "": "has 0 fields",
    "* * * *": "has 4 fields",
    "* * * * * *": "has 6 fields",
    "60 * * * *": "minute: '60' is not within 0 to 59",
    "* 24 * * *": "hour: '24' is not within 0 to 23",
    "* * 0 * *": "day of month: '0' is not within 1 to 31",
    "* * * 13 *": "month: '13' is not within 1 to 12",
    "* * * * 7": "day of week: '7' is not within 0 to 6",
    "*/0 * * * *": "needs a step above 0",
    "5-1 * * * *": "must begin with the smaller number",
    "a * * * *": "minute: 'a' is not understood",
    "*/x * * * *": "minute: 'x' is not understood",
    "1-2-3 * * * *": "is not a number, a range or a step",
    "* * * * L": "day of week: 'L' is not understood",
    "@reboot": "'@reboot' is no descriptor",
    "@every": "'@every' is no descriptor",
    "@every soon": "'soon' is not a duration",
    "@Hourly": "'@Hourly' is no descriptor",
}


@pytest.mark.parametrize("text", GOOD)
def test_expressions_that_can_be_used(text: str) -> None:
    """Are read without a fault."""
    assert cron.parse(text)


@pytest.mark.parametrize(("text", "why"), BAD.items(), ids=BAD)
def test_expressions_that_cannot(text: str, why: str) -> None:
    """Are told with the field that is wrong."""
    with pytest.raises(InvalidObject) as told:
        cron.parse(text)
    assert why in str(told.value)


def test_lists_ranges_steps_and_names() -> None:
    """Are sets of numbers; both day fields given: either is enough."""
    days = frozenset({1, 2, 3, 4, 5})
    want = Cron(0.0, frozenset({1, 3, 5, 7}), frozenset({0}), frozenset({1}), frozenset({1, 12}), days, any_day=False)
    assert cron.parse("1-5/2,7 0 1 jan,DEC mon-fri") == want


def test_every() -> None:
    """Is a delay in whole seconds, one at least."""
    assert [cron.parse(f"@every {length}").every for length in ("1m1.9s", "5ms")] == [61.0, 1.0]
