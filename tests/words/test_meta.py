"""Times, keys, kinds, and the hint at the nearest word."""

from __future__ import annotations

import pytest

from extender.api import meta
from extender.api.errors import InvalidObject, nearest

TIMES = {
    "2025-01-06T00:00:00Z": 1736121600.0,
    "2025-01-06T00:00:00.5Z": 1736121600.5,
    "2025-01-06T00:00:00.123456789Z": 1736121600.123456,
    "2025-01-06T02:00:00+02:00": 1736121600.0,
    "1970-01-01T00:00:00Z": 0.0,
}


@pytest.mark.parametrize(("text", "want"), TIMES.items(), ids=TIMES)
def test_times_are_read(text: str, want: float) -> None:
    assert meta.parse_time(text) == want


@pytest.mark.parametrize("text", [None, ""])
def test_an_absent_time_is_none(text: str | None) -> None:
    assert meta.parse_time(text) is None


NO_TIMES = [
    "now",
    "2025-01-06",
    "2025-01-06T00:00:00",
    "2025-01-06 00:00:00Z",
    "20250106T000000Z",
    "2025-W02-1T00:00:00Z",
    "2025-02-30T00:00:00Z",
]


@pytest.mark.parametrize("text", NO_TIMES)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(InvalidObject, match="is not a time"):
        meta.parse_time(text)


def test_times_are_written_to_the_second() -> None:
    assert meta.format_time(1736121600.9) == "2025-01-06T00:00:00Z"


def test_every_kind_is_found_by_what_it_calls_itself() -> None:
    for kind in meta.KINDS:
        assert meta.kind_of({"apiVersion": kind.api_version, "kind": kind.name}) is kind


@pytest.mark.parametrize("obj", [{}, {"apiVersion": "v1", "kind": "Jobb"}, {"apiVersion": "batch/v1", "kind": "Pod"}])
def test_an_unknown_kind_is_refused(obj: meta.Json) -> None:
    with pytest.raises(InvalidObject, match=r"^kind: no such kind"):
        meta.kind_of(obj)


def test_a_key_is_written_as_people_write_it() -> None:
    assert str(meta.key_of({"metadata": {"namespace": "ns", "name": "p"}})) == "ns/p"
    assert str(meta.key_of({"metadata": {"name": "n1"}})) == "n1"


NEAREST = {
    "near": ("alocate", ["allocate", "backfill"], "; did you mean 'allocate'?"),
    "far": ("zzz", ["b", "a"], "; known: a, b"),
    "nothing known": ("zzz", [], ""),
}


@pytest.mark.parametrize(("word", "known", "want"), NEAREST.values(), ids=NEAREST)
def test_the_nearest_word(word: str, known: list[str], want: str) -> None:
    assert nearest(word, known) == want
