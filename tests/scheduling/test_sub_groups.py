"""Sub-groups of a job: each placed whole, those that the job needs first, and where in the cluster each of them goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as hyp

from extender.api.meta import Json
from extender.api.operations import Bind
from extender.core import status as st
from extender.core.hyper_nodes import HyperNode
from extender.core.scheduling import Result, schedule
from extender.core.sub_jobs import DEFAULT
from extender.plugins.gang import Gang
from extender.plugins.priority import Priority
from extender.testing.builders import GroupBuilder, PodBuilder, node, podgroup, queue, task
from tests.scheduling.points import NOW, Tiers, conf_of, fake, off, placed, snapshot


def group(least: int, *, size: int, minimum: int = 0) -> GroupBuilder:
    """One policy: a sub-group for each value of the label `part`."""
    policy = {"name": "p", "subGroupSize": size, "minSubGroups": minimum, "matchLabelKeys": ["part"]}
    return podgroup("g").members(least).phase("Inqueue").with_("spec.subGroupPolicy", [policy])


def part(name: str, count: int, cpu: int = 1) -> list[PodBuilder]:
    """`a-0`, `a-1`...; a part whose name is no label value has none."""
    return [task(f"{name}-{i}", "g").cpu(cpu).labels({"part": name} if name != "rest" else {}) for i in range(count)]


def nodes(*cpu: int) -> list[Json]:
    return [node(f"n{i}").cpu(each) for i, each in enumerate(cpu)]


def held(name: str, cpu: int, on: str, *, leaving: bool = False) -> Json:
    made = task(name, "other").cpu(cpu).on(on)
    return made.with_("metadata.deletionTimestamp", "2026-01-01T00:00:00Z") if leaving else made


CASES: dict[str, tuple[Sequence[Json], str]] = {
    "each sub-group is placed whole or not at all": (
        [*nodes(3), group(2, size=2), *part("a", 2), *part("b", 2)], "a-0 a-1",
    ),
    "one that fits is not kept back by one that does not": (
        [*nodes(3), group(2, size=2), *part("a", 2, cpu=4), *part("b", 2)], "b-0 b-1",
    ),
    "those that the minimum needs go first, in the order of their number": (
        [*nodes(4), group(4, size=2, minimum=2), *part("10", 2), *part("9", 2), *part("2", 2)], "2-0 2-1 9-0 9-1",
    ),
    "as many as the policy asks, or none": ([*nodes(3), group(2, size=2, minimum=2), *part("a", 2), *part("b", 2)], ""),
    "a sub-group beyond its size grows once the job runs": (
        [*nodes(3), group(2, size=2), *part("a", 4)], "a-0 a-1 a-2",
    ),
    "members of no sub-group are placed one by one": (
        [*nodes(3), group(2, size=3), *part("a", 3, cpu=2), *part("rest", 4)], "rest-0 rest-1 rest-2",
    ),
    "minMember counts all of them": (
        [*nodes(4), group(4, size=2), *part("a", 2), *part("b", 2)], "a-0 a-1 b-0 b-1",
    ),
    "one that lost a member is completed": (
        [*nodes(2), group(2, size=2), task("a-9", "g").cpu(1).labels(part="a").on("n0"), *part("a", 1), *part("b", 2)], "a-0",
    ),
    "one of size 0 needs nobody": ([*nodes(1), group(1, size=0), *part("a", 2)], "a-0"),
    "a sub-group that waits for room is bound no member of": (
        [*nodes(5), held("x", 2, "n0", leaving=True), group(2, size=3), *part("a", 3), *part("rest", 2)],
        "rest-0 rest-1",
    ),
    "pods that ask for nothing count, and are bound with the others": (
        [*nodes(1), group(2, size=2), *part("a", 1), task("a-1", "g").labels(part="a")], "a-0 a-1",
    ),
    "a pod that asks for nothing waits for its sub-group": (
        [*nodes(2), group(1, size=3), *part("b", 2, cpu=2), task("b-2", "g").labels(part="b"), *part("rest", 1)], "rest-0",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("objects", "want"), CASES.values(), ids=CASES)
def test_which_members_are_bound(objects: Sequence[Json], want: str) -> None:
    assert sorted(placed([[Gang]], (queue(), *objects), "allocate, backfill")) == want.split()


def test_the_more_important_sub_group_goes_first() -> None:
    """Its priority is that of its most important task."""
    important = [each.priority(9) if each["metadata"]["name"] == "b-1" else each for each in part("b", 2)]
    objects = (queue(), *nodes(3), group(2, size=2), *part("a", 2), *important)
    assert sorted(placed([[Priority, Gang]], objects)) == ["b-0", "b-1"]
    assert sorted(placed([[Gang]], objects)) == ["a-0", "a-1"]


def test_room_that_is_promised_to_a_sub_group_is_nobody_elses() -> None:
    """It holds what it was promised to the end of the session, though the job itself could start."""
    objects = (
        queue(), *nodes(4), held("x", 2, "n0", leaving=True), group(1, size=3), *part("rest", 1), *part("a", 3),
        podgroup("late").phase("Inqueue").created(9), task("late-0", "late").cpu(1),
    )  # fmt: skip
    ssn = schedule(snapshot(objects), conf_of([[off(Gang, "enableJobOrder")]]), NOW).session
    statuses = {ssn.task_key(row).name: st.STATUS_NAMES[ssn.task_status[row]] for row in ssn.tasks.rows.values()}
    assert statuses["rest-0"] == "Binding"
    assert [statuses[f"a-{i}"] for i in range(3)] == ["Pipelined"] * 3
    assert statuses["late-0"] == "Pending"


SHORT: dict[str, tuple[Sequence[Json], str]] = {
    "too few pods fit": ([group(4, size=2, minimum=2), *part("a", 2), *part("b", 2)], "gang of 4: 3 fit, 1 lack a node; "),
    "enough pods, too few sub-groups": (
        [group(2, size=2, minimum=2), *part("a", 2), *part("b", 2)], "gang of 2: 3 fit, but only 1 of 2 sub-groups p; ",
    ),
    "a single one that lacks members": (
        [group(1, size=4, minimum=1), *part("a", 4)], "gang of 1: 3 fit, but only 0 of 1 sub-groups p; ",
    ),
    "enough pods, too few of a role": (
        [podgroup("g").members(3, {"w": 2, "ps": 1}).phase("Inqueue"), *(task(f"w-{i}", "g").role("w").cpu(1) for i in range(3)),
         task("x", "g").role("ps").cpu(3).priority(-1)], "gang of 3: 3 fit, but only 0 of 1 ps; ",
    ),
    "a sub-group more than it needs": ([group(2, size=2, minimum=1), *part("a", 2), *part("b", 2)], ""),
}  # fmt: skip


@pytest.mark.parametrize(("objects", "want"), SHORT.values(), ids=SHORT)
def test_why_it_waits_says_what_it_has_too_few_of(objects: Sequence[Json], want: str) -> None:
    """On a node with room for three, beside one that is full."""
    taken = [held("x-0", 5, "n1")]
    result = schedule(snapshot((queue(), *nodes(3, 5), *taken, *objects)), conf_of([[Priority, Gang]]), NOW)
    assert [waiting.message.partition("0/")[0] for waiting in result.waiting if waiting.job == "default/g"] == [want]


# --- HyperNodes ---------------------------------------------------------------------------------------------------------

RACKS = {"n0": "r0", "n1": "r0", "n2": "r1", "n3": "r1"}


def racks(**options: Any) -> Tiers:
    """A plugin that keeps jobs (`job`) or their sub-groups in a rack; `points` by rack."""
    made = {rack: HyperNode(rack, np.array([RACKS[f"n{i}"] == rack for i in range(4)])) for rack in ("r0", "r1")}
    gradient = [[made[name] for name in names] for names in options.get("gradient", [["r0", "r1"]])]
    hooks: dict[str, Any] = {f"hyper_node_gradient_for_{options.get('of', 'sub_job')}": lambda *_: gradient}
    if points := options.get("points"):
        hooks["hyper_node_order"] = lambda _, candidates: {name: points[name] for name in candidates if name in points}
    return [[Gang, fake("racks", **hooks)]]


def where(bound: Mapping[str, str]) -> dict[str, list[str]]:
    """Sub-group -> racks."""
    found: dict[str, set[str]] = {}
    for name, on in bound.items():
        found.setdefault(name[0], set()).add(RACKS[on])
    return {name: sorted(names) for name, names in sorted(found.items())}


TWO = (*part("a", 2), *part("b", 2))
IN_RACKS: dict[str, tuple[Tiers, Sequence[Json], dict[str, list[str]]]] = {
    "without a say they go anywhere": ([[Gang]], [*nodes(1, 1, 1, 1), group(4, size=2), *TWO], {"a": ["r0"], "b": ["r1"]}),
    "each sub-group in one rack": (racks(), [*nodes(1, 0, 1, 2), group(2, size=2), *TWO], {"a": ["r1"]}),
    "of equals the first": (racks(), [*nodes(2, 2, 2, 2), group(4, size=2), *TWO], {"a": ["r0"], "b": ["r0"]}),
    "the one with more points": (
        racks(points={"r1": 1.0}), [*nodes(2, 2, 2, 0), group(4, size=2), *TWO], {"a": ["r1"], "b": ["r0"]},
    ),
    "a later list only where no rack before has room": (
        racks(gradient=[["r1"], ["r0"]], points={"r0": 9.0}),
        [*nodes(2, 2, 1, 1), group(4, size=2), *TWO], {"a": ["r1"], "b": ["r0"]},
    ),
    "no list, no room": (racks(gradient=[]), [*nodes(2, 2, 2, 2), group(2, size=2), *TWO], {}),
    "the whole job in one rack": (
        racks(of="job"), [*nodes(2, 1, 2, 2), group(4, size=2), *TWO], {"a": ["r1"], "b": ["r1"]},
    ),
    "the job goes where its sub-groups have the most points": (
        [[Gang, *racks(of="job")[0][1:], fake("order", hyper_node_order=lambda _, found: {
            name: float(each.nodes.sum() == 2 and each.nodes[2]) for name, each in found.items()})]],
        [*nodes(2, 2, 2, 2), group(4, size=2), *TWO], {"a": ["r1"], "b": ["r1"]},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("tiers", "objects", "want"), IN_RACKS.values(), ids=IN_RACKS)
def test_in_which_rack_they_go(tiers: Tiers, objects: Sequence[Json], want: dict[str, list[str]]) -> None:
    assert where(placed(tiers, (queue(), *objects))) == want


def test_a_job_with_a_network_topology_is_kept_together_as_well() -> None:
    """It need not have sub-groups."""
    alone = podgroup("g").members(2).phase("Inqueue").with_("spec.networkTopology", {"mode": "hard", "highestTierAllowed": 1})
    pods = [task(f"w-{i}", "g").cpu(1) for i in range(2)]
    assert where(placed(racks(of="job"), (queue(), *nodes(1, 0, 1, 1), alone, *pods))) == {"w": ["r1"]}


def test_a_nominated_node_outside_the_rack_is_not_taken() -> None:
    pods = [each.with_("status.nominatedNodeName", "n0") for each in part("a", 2)]
    assert where(placed(racks(gradient=[["r1"]]), (queue(), *nodes(2, 2, 2, 2), group(2, size=2), *pods))) == {"a": ["r1"]}


def test_why_no_rack_has_room_names_the_rack() -> None:
    """The last that was tried. That no node of it could ever hold a pod says nothing of the cluster."""
    taken = [held(f"x-{i}", 1, f"n{i}") for i in range(2)]
    objects = (queue(), *nodes(2, 2, 1, 1), *taken, group(2, size=2), *part("a", 2, cpu=2))
    result = schedule(snapshot(objects), conf_of(racks()), NOW)
    (waiting,) = result.waiting
    assert (str(waiting.reason), waiting.message) == (
        "InsufficientResources",
        "gang of 2: 0 fit, 2 lack a node; In hyperNode r1: 0/2 nodes are unavailable: 2 Insufficient cpu.",
    )


# --- whatever the cluster -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class World:
    objects: tuple[Json, ...]
    tiers: Tiers


@hyp.composite
def worlds(draw: hyp.DrawFn) -> World:
    """Jobs of several sub-groups, with members that run, wait, leave or ask for nothing; some must stay in a rack."""
    objects: list[Json] = [queue(), *nodes(*(draw(hyp.integers(0, 6)) for _ in range(4)))]
    for g in range(draw(hyp.integers(1, 3))):
        policies: list[Json] = [
            {"name": f"p{i}", "subGroupSize": draw(hyp.integers(0, 3)), "minSubGroups": draw(hyp.integers(0, 2)),
             "matchLabelKeys": [f"part{i}"]}
            for i in range(draw(hyp.integers(1, 2)))
        ]  # fmt: skip
        made = podgroup(f"g{g}").members(draw(hyp.integers(1, 5))).phase("Inqueue").created(g)
        objects.append(made.with_("spec.subGroupPolicy", policies))
        for i in range(draw(hyp.integers(1, 7))):
            member = task(f"g{g}-w-{i}", f"g{g}").cpu(draw(hyp.integers(0, 3)))
            member.labels({f"part{draw(hyp.integers(0, 2))}": draw(hyp.sampled_from("ab"))})
            if draw(hyp.integers(0, 4)) == 0:
                member.on(f"n{draw(hyp.integers(0, 3))}")
            objects.append(member)
    others = range(draw(hyp.integers(0, 3)))
    objects += [held(f"x-{i}", draw(hyp.integers(1, 4)), f"n{i}", leaving=draw(hyp.integers(0, 3)) > 0) for i in others]
    tiers: list[Tiers] = [[[Gang]], [[Priority, Gang]], racks(), racks(of="job"), racks(points={"r1": 1.0})]
    return World(tuple(objects), draw(hyp.sampled_from(tiers)))


def decided(world: World) -> Result:
    return schedule(snapshot(world.objects), conf_of(world.tiers, "allocate, backfill"), NOW)


@settings(max_examples=200)
@given(worlds())
def test_no_sub_group_is_bound_in_part(world: World) -> None:
    """Whatever is bound of one brings it to its size; pods that ask for nothing count as there."""
    result = decided(world)
    ssn = result.session
    bound = Counter(ssn.tasks.rows[each.pod] for each in result.operations if isinstance(each, Bind))
    for job in ssn.live_jobs():
        for sub_job in ssn.sub_jobs(job):
            if sub_job.policy != DEFAULT and any(bound[task] for task in sub_job.tasks.tolist()):
                assert sub_job.count(ssn.task_status, st.IS_READY) >= sub_job.min_available


@settings(max_examples=200)
@given(worlds())
def test_no_job_with_sub_groups_is_started_in_part(world: World) -> None:
    """What is bound makes the job's minMember, and the minSubGroups of each policy."""
    result = decided(world)
    ssn = result.session
    for job in ssn.live_jobs():
        group = ssn.jobs.group[job]
        assert group is not None
        if not ssn.job_counts[job][st.BINDING]:
            continue
        there = ssn.ready_count(job) + int(ssn.job_pending_best_effort[job])
        assert there >= ssn.jobs.min_available[job]
        whole = Counter(s.policy for s in ssn.sub_jobs(job) if s.count(ssn.task_status, st.IS_READY) >= s.min_available)
        assert all(whole[i] >= (policy.min_sub_groups or 0) for i, policy in enumerate(group.spec.sub_group_policy or ()))


@settings(max_examples=100)
@given(worlds())
def test_trials_leave_no_trace(world: World) -> None:
    """Sums of nodes and jobs are those of what was decided, however many HyperNodes were tried."""
    ssn = decided(world).session
    taken, promised = np.zeros_like(ssn.used), np.zeros_like(ssn.used)
    for row in ssn.tasks.rows.values():
        if ssn.task_node[row] >= 0:
            width = len(ssn.request(row))
            target = promised if ssn.task_status[row] == st.PIPELINED else taken
            target[ssn.task_node[row], :width] += ssn.request(row)
    assert (ssn.used == taken).all()
    assert (ssn.future == ssn.allocatable - taken + ssn.releasing - promised).all()
