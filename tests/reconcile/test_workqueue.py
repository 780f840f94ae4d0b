"""Keys that wait."""

from __future__ import annotations

from controller.workqueue import WorkQueue
from extender.cluster.clock import VirtualClock


def make() -> tuple[VirtualClock, WorkQueue[str]]:
    clock = VirtualClock()
    return clock, WorkQueue(clock, group_of=lambda item: item[0], is_urgent=lambda item: item.endswith("!"))


def test_equal_keys_are_one() -> None:
    """In the order of the first."""
    _, queue = make()
    for item in ("a1", "b1", "a1"):
        queue.add(item)
    assert (len(queue), queue.pop()) == (2, "a1")


def test_the_earlier_time_counts() -> None:
    """A later one does not put it off."""
    clock, queue = make()
    queue.add_at("a1", 5)
    queue.add_at("a1", 9)
    clock.sleep(5)
    assert (queue.pop(), queue.pop(), len(queue)) == ("a1", None, 0)


def test_urgent_ones_come_first() -> None:
    """Of those that are due."""
    clock, queue = make()
    queue.add("a1")
    queue.add_at("b!", 1)
    queue.add("c!")
    clock.sleep(0)
    assert [queue.pop(), queue.pop(), queue.pop()] == ["c!", "a1", None]


def test_one_of_a_group_is_out_at_a_time() -> None:
    """Until it is done."""
    _, queue = make()
    queue.add("a1")
    queue.add("a2")
    queue.add("b1")
    first, second, third = queue.pop(), queue.pop(), queue.pop()
    queue.done("a1")
    assert (first, second, third, queue.pop()) == ("a1", "b1", None, "a2")


def test_back_off_doubles() -> None:
    """From 5 ms."""
    clock, queue = make()
    waits = []
    for _ in range(4):
        queue.retry("a1")
        waits.append(round((queue.next_due() or 0) - clock.now(), 4))
        clock.advance_to(queue.next_due() or 0)
        queue.pop()
        queue.done("a1")
    assert waits == [0.005, 0.01, 0.02, 0.04]


def test_back_off_ends_at_a_thousand_seconds() -> None:
    """And never overflows."""
    clock, queue = make()
    for _ in range(2000):
        queue.retry("a1")
        before = clock.now()
        clock.advance_to(queue.next_due() or 0)
        queue.pop()
        queue.done("a1")
    assert round(clock.now() - before) == 1000


def test_a_failure_before_its_time_is_not_counted() -> None:
    """Events that bring an item forward do not use up its budget."""
    _, queue = make()
    queue.retry("a1")
    queue.add("a1")
    assert (queue.pop(), queue.retry("a1")) == ("a1", 1)


def test_success_starts_the_back_off_anew() -> None:
    """It is forgotten."""
    clock, queue = make()
    queue.retry("a1")
    queue.forget("a1")
    clock.sleep(1)
    assert queue.retry("a1") == 1


def test_a_cancelled_one_never_comes() -> None:
    """Nor does it hold up `next_due`."""
    clock, queue = make()
    queue.add_at("a1", 5)
    queue.cancel("a1")
    clock.sleep(6)
    assert (queue.pop(), queue.next_due()) == (None, None)
