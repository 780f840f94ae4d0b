"""Comparisons of amounts: the rules of the reference where a resource is missing, zero or not asked for."""

from __future__ import annotations

import numpy as np
import pytest

from extender.core import amounts
from extender.core.axis import Amounts, Axis

AXIS = Axis(("cpu", "memory", "pods", "gpu.test/a", "gpu.test/b"))
INF = np.inf


def row(**by_name: float) -> np.ndarray:
    """cpu and memory in whole columns, a and b the two scalars."""
    names = {"cpu": 0, "memory": 1, "pods": 2, "a": 3, "b": 4}
    made = np.zeros(5)
    for name, amount in by_name.items():
        made[names[name]] = amount
    return made


def listed(**by_name: float) -> Amounts:
    made = row(**by_name)
    named = np.zeros(5, dtype=bool)
    named[[{"cpu": 0, "memory": 1, "pods": 2, "a": 3, "b": 4}[name] for name in by_name]] = True
    return Amounts(made, named)


CEILINGS = {
    "nothing named": (listed(), [INF, INF, INF, INF, INF]),
    "what is not named is unlimited": (listed(cpu=4), [4, INF, INF, INF, INF]),
    "a scalar of zero is none": (listed(cpu=4, a=0), [4, INF, INF, 0, INF]),
    "cpu and memory of zero are unlimited": (listed(cpu=0, memory=0, b=2), [INF, INF, INF, INF, 2]),
    "pods can be limited": (listed(pods=3), [INF, INF, 3, INF, INF]),
}


@pytest.mark.parametrize(("capability", "want"), CEILINGS.values(), ids=CEILINGS)
def test_ceiling(capability: Amounts, want: list[float]) -> None:
    """A capability limits what it names."""
    assert amounts.ceiling(capability).tolist() == want


BEYOND = {
    "exactly full": (row(cpu=4), row(cpu=4), row(cpu=1), []),
    "a tenth too much": (row(cpu=4.1), row(cpu=4), row(cpu=1), ["cpu"]),
    "only what is asked": (row(cpu=9, memory=1), row(cpu=4, memory=4), row(memory=1), []),
    "a missing scalar is none": (row(cpu=1, a=1), row(cpu=4), row(cpu=1, a=1), ["gpu.test/a"]),
    "pods never count": (row(pods=9), row(pods=1), row(pods=1), []),
    "several": (row(cpu=9, b=9), row(), row(cpu=1, b=1), ["cpu", "gpu.test/b"]),
}


@pytest.mark.parametrize(("amount", "limit", "asked", "want"), BEYOND.values(), ids=BEYOND)
def test_beyond(amount: np.ndarray, limit: np.ndarray, asked: np.ndarray, want: list[str]) -> None:
    """The names in which a request does not fit."""
    assert [AXIS.names[column] for column in amounts.beyond(amount, limit, asked)] == want


ROOM = {
    "all of them": (row(), row(cpu=10), row(cpu=2), 3, 3),
    "as many as fit": (row(cpu=3), row(cpu=10), row(cpu=2), 9, 3),
    "to the last": (row(cpu=4), row(cpu=10), row(cpu=2), 9, 3),
    "the scarcest decides": (row(), row(cpu=10, a=1), row(cpu=1, a=1), 9, 1),
    "nothing beyond a full queue": (row(cpu=12), row(cpu=10), row(cpu=1), 9, 0),
    "no limit": (row(cpu=12), row(cpu=INF), row(cpu=1), 9, 9),
    "nothing asked": (row(cpu=12), row(cpu=10), row(pods=1), 9, 9),
    "every level must have room": (
        np.array([row(cpu=1), row(cpu=8)]), np.array([row(cpu=10), row(cpu=10)]), row(cpu=1), 9, 2,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("taken", "limit", "request_", "count", "want"), ROOM.values(), ids=ROOM)
def test_room(taken: np.ndarray, limit: np.ndarray, request_: np.ndarray, count: int, want: int) -> None:
    """How many equal tasks fit is one computation, and agrees with placing them one by one."""
    assert amounts.room(taken, limit, request_, count) == want
    one_by_one = 0
    while one_by_one < count and not any(
        len(amounts.beyond(have + (one_by_one + 1) * request_, most, request_))
        for have, most in zip(np.atleast_2d(taken), np.atleast_2d(limit), strict=True)
    ):
        one_by_one += 1
    assert one_by_one == want


WITHIN = {
    "equal": (row(cpu=4, a=1), row(cpu=4, a=1), True),
    "missing is zero": (row(cpu=2, a=1), row(cpu=4), False),
    "more names on the right": (row(cpu=2), row(cpu=4, a=1), True),
    "less than a tenth over": (row(cpu=4.05), row(cpu=4), True),
    "pods count": (row(pods=2), row(pods=1), False),
}


@pytest.mark.parametrize(("amount", "limit", "want"), WITHIN.values(), ids=WITHIN)
def test_all_within(amount: np.ndarray, limit: np.ndarray, want: bool) -> None:
    """LessEqual with missing names as zero."""
    assert amounts.all_within(amount, limit) is want


PARTLY = {
    "one asked resource fits": (row(cpu=9, memory=1), row(cpu=4, memory=4), row(cpu=1, memory=1), True),
    "the one that fits is not asked": (row(cpu=9, memory=1), row(cpu=4, memory=4), row(cpu=1), False),
    "zero against zero says nothing": (row(cpu=9, a=0), row(cpu=4, a=0), row(cpu=1, a=1), False),
    "pods say nothing": (row(cpu=9, pods=1), row(cpu=4, pods=9), row(cpu=1, pods=1), False),
}


@pytest.mark.parametrize(("amount", "limit", "asked", "want"), PARTLY.values(), ids=PARTLY)
def test_partly_within(amount: np.ndarray, limit: np.ndarray, asked: np.ndarray, want: bool) -> None:
    """One asked resource that stays within is enough."""
    assert amounts.partly_within(amount, limit, asked) is want


ABOVE = {
    "more than is deserved": (row(cpu=3), listed(cpu=2), row(cpu=1), True),
    "just what is deserved": (row(cpu=2), listed(cpu=2), row(cpu=1), False),
    "above in something that is not asked": (row(cpu=3), listed(cpu=2), row(memory=1), False),
    "a scalar that is not defined": (row(a=3), listed(cpu=2), row(a=1), False),
    "a scalar defined as zero": (row(a=3), listed(a=0), row(a=1), True),
    "cpu defined as zero is not defined": (row(cpu=3), listed(cpu=0), row(cpu=1), False),
}


@pytest.mark.parametrize(("amount", "limit", "asked", "want"), ABOVE.values(), ids=ABOVE)
def test_partly_above(amount: np.ndarray, limit: Amounts, asked: np.ndarray, want: bool) -> None:
    """Only resources count that are asked for and that the limit has an opinion on."""
    assert amounts.partly_above(amount, limit, asked) is want


def test_overlap() -> None:
    """Pods are in common only where they count."""
    assert amounts.overlap(row(cpu=1, pods=1), row(memory=1, pods=1), pods=True)
    assert not amounts.overlap(row(cpu=1, pods=1), row(memory=1, pods=1), pods=False)
    assert amounts.overlap(row(cpu=1), row(cpu=5), pods=False)


def test_empty_but_for_pods() -> None:
    """Pods alone are nothing."""
    assert amounts.is_empty(row(pods=4))
    assert not amounts.is_empty(row(a=1))


SHARES = {
    "the largest": (row(cpu=2, memory=3), row(cpu=4, memory=4), 0.75),
    "what there is none of does not count": (row(cpu=1, a=9), row(cpu=4), 0.25),
    "nothing at all": (row(cpu=1), row(), 0.0),
}


@pytest.mark.parametrize(("amount", "of", "want"), SHARES.values(), ids=SHARES)
def test_largest_share(amount: np.ndarray, of: np.ndarray, want: float) -> None:
    """The dominant share."""
    assert float(amounts.largest_share(amount, amounts.divisor(of))) == want
