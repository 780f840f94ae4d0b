"""Water-filling: the worked example, the reference's own loop written out in dicts, and what must hold of any division."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from extender.core.water import water_fill

INF = float("inf")
NAMES = ("cpu", "memory", "pods", "gpu")


@dataclass(frozen=True)
class Asking:
    weight: int
    request: tuple[int, ...]
    limit: tuple[float, ...] = (INF,) * 4
    guarantee: tuple[int, ...] = (0,) * 4


def divided(total: tuple[int, ...], *queues: Asking) -> np.ndarray:
    return water_fill(
        np.array(total, dtype=np.float64),
        np.array([q.weight for q in queues], dtype=np.float64),
        np.array([q.request for q in queues], dtype=np.int64).reshape(-1, 4),
        np.array([q.limit for q in queues], dtype=np.float64).reshape(-1, 4),
        np.array([q.guarantee for q in queues], dtype=np.float64).reshape(-1, 4),
    )


def by_hand(total: tuple[int, ...], *queues: Asking) -> list[list[float]]:
    """The reference's loop, one queue and one resource at a time (spec: weighted fair shares by rounds)."""
    size = len(total)
    deserved = [[0.0] * size for _ in queues]
    remaining, met = [float(amount) for amount in total], [False] * len(queues)
    while any(not done and q.weight for done, q in zip(met, queues, strict=True)):
        weights = sum(q.weight for done, q in zip(met, queues, strict=True) if not done)
        grown, shrunk = [0.0] * size, [0.0] * size
        for i, q in enumerate(queues):
            if met[i]:
                continue
            before = list(deserved[i])
            for r in range(size):
                part = before[r] + remaining[r] * (q.weight / weights)
                deserved[i][r] = max(min(part, q.limit[r], q.request[r]), q.guarantee[r])
                change = deserved[i][r] - before[r]
                grown[r] += max(change, 0.0)
                shrunk[r] += max(-change, 0.0)
            satisfied = all(q.request[r] - deserved[i][r] < 0.1 for r in range(size))
            met[i] = satisfied or deserved[i] == before
        left = [max(remaining[r] + shrunk[r] - grown[r], 0.0) for r in range(size)]
        if all(left[r] < 0.1 for r in range(size) if NAMES[r] != "pods") or left == remaining:
            break
        remaining = left
    return deserved


def test_the_worked_example() -> None:
    """100 cpu, weights 1, 3, 1; the third may have 15: what it cannot use and what the first does not ask goes round."""
    cpu = (20, 0, 0, 0), (100, 0, 0, 0), (100, 0, 0, 0)
    shares = divided((100, 0, 0, 0), Asking(1, cpu[0]), Asking(3, cpu[1]), Asking(1, cpu[2], limit=(15.0, INF, INF, INF)))
    assert shares[:, 0].tolist() == [20, 65, 15]


DIVISIONS = {
    "equal weights halve": ((10, 0, 0, 0), [Asking(1, (9, 0, 0, 0)), Asking(1, (9, 0, 0, 0))], [[5, 0, 0, 0], [5, 0, 0, 0]]),
    "nobody gets more than it asks": ((10, 0, 0, 0), [Asking(1, (3, 0, 0, 0)), Asking(1, (4, 0, 0, 0))],
                                      [[3, 0, 0, 0], [4, 0, 0, 0]]),
    "what nobody asks stays": ((10, 10, 0, 0), [Asking(1, (30, 0, 0, 0))], [[10, 0, 0, 0]]),
    "a queue without work gets nothing": ((10, 0, 0, 0), [Asking(9, (0, 0, 0, 0)), Asking(1, (30, 0, 0, 0))],
                                          [[0, 0, 0, 0], [10, 0, 0, 0]]),
    "the guarantee is a floor": ((10, 0, 0, 0), [Asking(1, (1, 0, 0, 0), guarantee=(4, 0, 0, 0))], [[4, 0, 0, 0]]),
    "resources are divided on their own": ((10, 8, 0, 4), [Asking(1, (10, 1, 0, 0)), Asking(1, (10, 8, 0, 4))],
                                           [[5, 1, 0, 0], [5, 7, 0, 4]]),
    "weight zero gets nothing": ((10, 0, 0, 0), [Asking(0, (9, 0, 0, 0)), Asking(1, (9, 0, 0, 0))],
                                 [[0, 0, 0, 0], [9, 0, 0, 0]]),
    "weight zero gets its guarantee": ((10, 0, 0, 0), [Asking(0, (9, 0, 0, 0), guarantee=(2, 0, 0, 0)), Asking(1, (8, 0, 0, 0))],
                                       [[2, 0, 0, 0], [8, 0, 0, 0]]),
    "no queue": ((10, 0, 0, 0), [], []),
}  # fmt: skip


@pytest.mark.parametrize(("total", "queues", "want"), DIVISIONS.values(), ids=DIVISIONS)
def test_division(total: tuple[int, ...], queues: list[Asking], want: list[list[float]]) -> None:
    """Who gets what."""
    np.testing.assert_allclose(divided(total, *queues), np.array(want).reshape(-1, 4))


def test_a_queue_takes_its_part_of_the_rounds_until_nothing_changes() -> None:
    """The second has all the memory it asks, and goes on taking cpu in ever smaller parts, so the first is left short of the
    whole amount by less than a byte. That is what the reference gives, and it refuses the last task that would need it."""
    gib = 2**30
    asking = [Asking(4, (8000, 28 * gib, 0, 0), (8000.0, 32.0 * gib, INF, INF)), Asking(4, (20000, 10 * gib, 0, 0)),
              Asking(1, (7000, 56 * gib, 0, 0))]  # fmt: skip
    memory = float(divided((20000, 40 * gib, 0, 0), *asking)[0, 1])
    assert 24 * gib - 0.1 < memory < 24 * gib


def test_what_rounds_leave_below_a_thousandth_is_made_up() -> None:
    """The rounds go on until memory is divided, and end a hair below the twelve cpus that the second leaves to the first: a gang
    that needs all twelve would wait for ever beside them."""
    gib = 2**30
    asking = [Asking(1, (27000, 16 * gib, 0, 0)), Asking(1, (16000, 32 * gib, 0, 0), (8000.0, 32.0 * gib, INF, INF))]
    assert divided((20000, 40 * gib, 0, 0), *asking)[:, 0].tolist() == [12000, 8000]


amount = st.integers(0, 10**6)
limit = st.one_of(st.just(INF), st.integers(0, 10**6).map(float))


def askings(guaranteed: st.SearchStrategy[int]) -> st.SearchStrategy[list[Asking]]:
    row = st.tuples(amount, amount, st.integers(0, 200), st.integers(0, 8000))
    return st.lists(
        st.builds(
            Asking,
            weight=st.integers(0, 10),
            request=row,
            limit=st.tuples(limit, limit, st.just(INF), limit),
            guarantee=st.tuples(guaranteed, guaranteed, st.just(0), st.just(0)),
        ),
        min_size=1,
        max_size=6,
    )


totals = st.tuples(amount, amount, st.integers(0, 500), st.integers(0, 16000))


@given(totals, askings(st.integers(0, 10**5)))
@example((10**6, 0, 0, 0), [Asking(1, (10**6, 0, 0, 0)), Asking(2, (7, 0, 0, 0)), Asking(10, (10**6, 0, 0, 0))])
@settings(deadline=None, max_examples=150)
def test_it_agrees_with_the_loop_by_hand(total: tuple[int, ...], queues: list[Asking]) -> None:
    """The array form divides as the plain loop does."""
    np.testing.assert_allclose(divided(total, *queues), by_hand(total, *queues), atol=0.01)


@given(totals, askings(st.just(0)))
@settings(deadline=None, max_examples=150)
def test_it_gives_no_more_than_there_is(total: tuple[int, ...], queues: list[Asking]) -> None:
    """Without guarantees all shares together are within the cluster, and each within what its queue asks and may have."""
    shares = divided(total, *queues)
    assert (shares.sum(axis=0) <= np.array(total) + 0.01 * len(queues)).all()
    assert (shares <= np.array([q.request for q in queues]) + 1e-9).all()
    assert (shares <= np.array([q.limit for q in queues]) + 1e-9).all()


@given(totals, askings(st.just(0)))
@settings(deadline=None, max_examples=100)
def test_nothing_is_kept_from_who_wants_it(total: tuple[int, ...], queues: list[Asking]) -> None:
    """Cpu is left over only when every queue that has a weight has all the cpu it asks for or may have."""
    shares = divided(total, *queues)
    left = total[0] - shares[:, 0].sum()
    lacks = [min(q.request[0], q.limit[0]) - share[0] for q, share in zip(queues, shares, strict=True)]
    hungry = [q for q, lack in zip(queues, lacks, strict=True) if q.weight and lack > 1]
    assert left <= 1 or not hungry
