"""Durations are read and written as Go does it. The table was checked against Go 1.26, 60,000 generated texts with it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.api import duration
from extender.api.errors import InvalidObject

READ = {
    "0": (0, "0s"),
    "-0": (0, "0s"),
    "300ms": (300_000_000, "300ms"),
    "1.5s": (1_500_000_000, "1.5s"),
    ".5s": (500_000_000, "500ms"),
    "5.s": (5_000_000_000, "5s"),
    "1h30m": (5_400_000_000_000, "1h30m0s"),
    "90m": (5_400_000_000_000, "1h30m0s"),
    "1m1m": (120_000_000_000, "2m0s"),
    "-1.5h": (-5_400_000_000_000, "-1h30m0s"),
    "+5s": (5_000_000_000, "5s"),
    "1us": (1_000, "1µs"),
    "1.25µs": (1_250, "1.25µs"),
    "1.25μs": (1_250, "1.25µs"),
    "0.9ns": (0, "0s"),
    "100h": (360_000_000_000_000, "100h0m0s"),
    "1h0.001s": (3_600_001_000_000, "1h0m0.001s"),
    "9223372036854775807ns": (2**63 - 1, "2562047h47m16.854775807s"),
    "-9223372036854775808ns": (-(2**63), "-2562047h47m16.854775808s"),
}


@pytest.mark.parametrize(("text", "want"), READ.items(), ids=READ)
def test_read_and_written_again(text: str, want: tuple[int, str]) -> None:
    length = duration.nanoseconds(text)
    assert (length, duration.format_nanoseconds(length)) == want


REFUSED = [
    "",
    "5",
    "1.5",
    "1d",
    "s",
    ".s",
    "1h 30m",
    " 1s",
    "1s\n",
    "--1s",
    "1s-",
    "1e3s",
    "１s",
    "3s5",
    "P1D",
    "1S",
    "9" * 1001 + "s",
    "9223372036854775808ns",
    "-9223372036854775809ns",
    "2562048h",
]


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: repr(text)[:24])
def test_what_go_refuses_is_refused_with_the_field_named(text: str) -> None:
    with pytest.raises(InvalidObject) as caught:
        duration.seconds(text, "spec.policies[0].timeout")
    assert caught.value.path == "spec.policies[0].timeout"


@settings(deadline=None, max_examples=300)
@given(length=st.integers(-(2**63), 2**63 - 1))
def test_what_is_written_is_read_back(length: int) -> None:
    assert duration.nanoseconds(duration.format_nanoseconds(length)) == length


@pytest.mark.parametrize(("text", "want"), [("1m30s", 90.0), ("250ms", 0.25), ("-2s", -2.0)])
def test_seconds(text: str, want: float) -> None:
    assert duration.seconds(text) == want
    assert duration.seconds(duration.format_duration(want)) == want


OF_PEOPLE = {"90": 90.0, "0.5": 0.5, "1m30s": 90.0, "2d": 172800.0, "1d12h": 129600.0, "-2s": -2.0, "106751d": 9223286400.0}


@pytest.mark.parametrize(("text", "want"), OF_PEOPLE.items())
def test_times_of_people(text: str, want: float) -> None:
    assert duration.length(text) == want


NO_TIMES = {
    "": "is not a time", "soon": "is not a time", "d": "is not a time", "1d-3h": "is not a time", "1d5": "is not a time",
    "1.5d": "is not a time", "1h1d": "is not a time", "-1d": "is not a time", "9" * 5000 + "d": "is not a time",
    "106752d": "longer than 292 years", "9" * 11: "longer than 292 years", "9999999h": "longer than 292 years",
}  # fmt: skip


@pytest.mark.parametrize(("text", "says"), NO_TIMES.items(), ids=lambda text: repr(text)[:24])
def test_no_times_of_people(text: str, says: str) -> None:
    """They are told in the words that were written."""
    with pytest.raises(InvalidObject, match=f"'{text}' .*{says}"):
        duration.length(text)
