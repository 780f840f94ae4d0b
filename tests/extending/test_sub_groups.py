"""Sub-groups through the extender: a member's node is kept together with those of its sub-group, or none is."""

from __future__ import annotations

from extender.api.meta import Json
from extender.testing.builders import podgroup
from extender.verbs.answering import Turn
from tests.extending.world import World, machines, member


def job(least: int, size: int, **parts: int) -> list[Json]:
    """A PodGroup whose label `part` parts its pods: `a-0`, `a-1` ..."""
    policy = {"name": "p", "subGroupSize": size, "matchLabelKeys": ["part"]}
    group = podgroup("g").members(least).with_("spec.subGroupPolicy", [policy])
    return [group, *(member(f"{name}-{i}").cpu(1).labels(part=name) for name, count in parts.items() for i in range(count))]


def test_the_sub_group_of_who_asks_is_planned_first() -> None:
    """Others may be all that the job's minimum needs."""
    world = World(*machines(1, cpu=2), *job(2, 2, a=2, b=2))
    assert world.place("b-1", "b-0", "a-0", "a-1") == ["n0", "n0", "", ""]


def test_a_sub_group_is_refused_whole() -> None:
    world = World(*machines(1, cpu=3), *job(2, 2, a=2, b=2))
    assert world.place("a-0", "a-1", "b-0", "b-1") == ["n0", "n0", "", ""]


def test_a_sub_group_that_comes_later_is_kept_room_for_whole() -> None:
    """Its first member waits for the second, though the job has started."""
    world = World(*machines(1, cpu=4), *job(2, 2, a=2))
    world.place("a-0", "a-1")
    assert [world.ask("a-0", "n0"), world.ask("a-1", "n0")] == [Turn.WAIT, Turn.GO]
    for name in ("a-0", "a-1"):
        world.see(member(name).cpu(1).labels(part="a").on("n0"), "MODIFIED")
    for late in job(2, 2, b=2)[1:]:
        world.see(late)
    assert world.place("b-0", "b-1") == ["n0", "n0"]
    assert [world.ask("b-0", "n0"), world.ask("b-1", "n0")] == [Turn.WAIT, Turn.GO]
