"""capacity: explicit quotas, flat and along a tree of queues."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.actions import ACTIONS
from extender.api import labels as names
from extender.api import meta
from extender.api.meta import Json, Key
from extender.cluster.clock import VirtualClock
from extender.cluster.memory import MemoryCluster
from extender.core import conf, status
from extender.core.mirror import Mirror
from extender.core.plugin import Vote
from extender.core.scheduling import schedule
from extender.core.session import Session
from extender.core.snapshot import Snapshot
from extender.loop import Loop
from extender.plugins import PLUGINS
from extender.testing.builders import Built, QueueBuilder, node, podgroup, queue, task
from extender.testing.opened import job_row, opened, plugin, queue_row, request, task_row

FLAT = "capacity"
GPU = "nvidia.com/gpu"


def tree(level: int = 0) -> list[Json]:
    return [{"name": "capacity", "enableHierarchy": True, "arguments": {"ancestorReclaimLevel": level}}]


def used(name: str, of: str, count: int = 1, cpu: int = 1) -> list[Json]:
    tasks = [task(f"{name}-{i}", name).cpu(cpu).on("n") for i in range(count)]
    return [podgroup(name).queue(of).phase("Running"), *tasks]


def wants(name: str, of: str, count: int = 1, cpu: int = 1) -> list[Json]:
    return [podgroup(name).queue(of), *(task(f"{name}-{i}", name).cpu(cpu) for i in range(count))]


def order(ssn: Session, *names: str) -> list[str]:
    return sorted(names, key=lambda name: ssn.queue_order(queue_row(ssn, name)))


# --- flat -------------------------------------------------------------------------------------------------------------------


def test_shares_order_the_queues() -> None:
    """Worked example: A has 3 of 6, B 2 of 2, C 4 and deserves nothing: full, and after those that deserve something."""
    ssn = opened(
        node("n").cpu(10), queue("C"), queue("A").deserved(cpu=6), queue("B").deserved(cpu=2),
        *used("a", "A", 3), *used("b", "B", 2), *used("c", "C", 4), plugins=FLAT,
    )  # fmt: skip
    assert order(ssn, "C", "B", "A") == ["A", "B", "C"]


def test_priority_comes_before_shares() -> None:
    """A full queue of a higher priority goes first."""
    ssn = opened(
        node("n").cpu(10), queue("a").deserved(cpu=6), queue("b").deserved(cpu=2).with_("spec.priority", 1),
        *used("b", "b", 2), plugins=FLAT,
    )  # fmt: skip
    assert order(ssn, "a", "b") == ["b", "a"]


DESERVED = {
    "as it says": (queue("q").deserved(cpu=6), 6000),
    "no more than the capability": (queue("q").deserved(cpu=6).capability(cpu=4), 4000),
    "no more than there is": (queue("q").deserved(cpu=60), 10000),
    "at least the guarantee": (queue("q").deserved(cpu=1).guarantee(cpu=3), 3000),
    "nothing said": (queue("q"), 0),
}


@pytest.mark.parametrize(("of", "want"), DESERVED.values(), ids=DESERVED)
def test_deserved(of: QueueBuilder, want: int) -> None:
    """spec.deserved between the guarantee and what the queue can have at all."""
    ssn = opened(node("n").cpu(10), of, plugins=FLAT)
    assert plugin(ssn, "capacity").limits.deserved.values[0, 0] == want


def test_a_queue_may_borrow_up_to_its_capability() -> None:
    """What it deserves is no limit."""
    ssn = opened(node("n").cpu(10), queue("q").deserved(cpu=2).capability(cpu=5), *used("u", "q", 3), plugins=FLAT)
    capacity = plugin(ssn, "capacity")
    assert capacity.allocatable(ssn, 0, request(ssn, cpu=1), 9) == 2
    assert capacity.explain_queue(ssn, 0, request(ssn, cpu=3)) == (
        "queue q: cpu 3 used + 3 asked > capability 5", {"cpu": {"used": "3", "asked": "3", "capability": "5"}},
    )  # fmt: skip


MAY_RECLAIM = {
    "within what it deserves": (queue("q").deserved(cpu=4), {"cpu": 1}, True),
    "to the last": (queue("q").deserved(cpu=2), {"cpu": 1}, True),
    "beyond what it deserves": (queue("q").deserved(cpu=1), {"cpu": 1}, False),
    "one resource within is enough": (queue("q").deserved(cpu=1, gpu=1), {"cpu": 1, "gpu": 1}, True),
    "never beyond its capability": (queue("q").deserved(cpu=4).capability(cpu=1), {"cpu": 1}, False),
    "a closed queue may not": (queue("q").deserved(cpu=4).state("Closed"), {"cpu": 1}, False),
}


@pytest.mark.parametrize(("of", "asked", "want"), MAY_RECLAIM.values(), ids=MAY_RECLAIM)
def test_preemptive(of: QueueBuilder, asked: dict[str, int], want: bool) -> None:
    """A queue takes back what it deserves, not what it might borrow. It has one cpu already."""
    ssn = opened(node("n").cpu(10).gpu(4), of, *used("u", "q"), plugins=FLAT)
    assert plugin(ssn, "capacity").preemptive(ssn, 0, request(ssn, **asked)) is want


def victims(ssn: Session, reclaimer: str, *candidates: str) -> list[str]:
    rows = [task_row(ssn, name) for name in candidates]
    chosen = plugin(ssn, "capacity").reclaimable(ssn, task_row(ssn, reclaimer), rows)
    may = plugin(ssn, "capacity").evictable(ssn, "reclaimable", task_row(ssn, reclaimer), np.array(rows))
    assert all(may[rows.index(row)] for row in chosen), "evictable must not rule out a victim"
    return [ssn.task_key(row).name for row in chosen]


def test_a_queue_keeps_what_it_deserves() -> None:
    """Worked example: 2 deserved, five one-cpu pods, a reclaimer that wants 10: three go, of equal ones the last."""
    ssn = opened(
        node("n").cpu(10), queue("B").deserved(cpu=2), queue("A").deserved(cpu=8), *used("b", "B", 5), *wants("a", "A", 1, 10),
        plugins=FLAT,
    )  # fmt: skip
    assert victims(ssn, "a-0", *(f"b-{i}" for i in range(5))) == ["b-4", "b-3", "b-2"]


def test_the_least_important_go_whatever_the_order() -> None:
    """What a queue has too much of goes to those who leave first, not to those the node names first."""
    ssn = opened(
        node("n").cpu(10), queue("B").deserved(cpu=2), queue("A").deserved(cpu=8), podgroup("b").queue("B"),
        *(task(f"b-{i}", "b").cpu(1).on("n").priority(i % 2) for i in range(4)), *wants("a", "A"),
        plugins=[{"name": FLAT}, {"name": "priority"}],
    )  # fmt: skip
    assert victims(ssn, "a-0", "b-1", "b-2", "b-3", "b-0") == ["b-2", "b-0"]


def test_a_queue_keeps_what_it_is_guaranteed() -> None:
    """Not even a task that asks nothing of what the queue deserves goes below the guarantee."""
    ssn = opened(
        node("n").cpu(10), queue("B").guarantee(cpu=4), queue("A").deserved(cpu=6), *used("b", "B", 5), *wants("a", "A"),
        plugins=FLAT,
    )  # fmt: skip
    assert victims(ssn, "a-0", *(f"b-{i}" for i in range(5))) == ["b-4"]


def test_tasks_on_sufferance_all_go() -> None:
    """Their queue deserves nothing of what they ask, so it cannot keep them."""
    ssn = opened(
        node("n").cpu(10), queue("B").deserved(memory="1Gi"), queue("A").deserved(cpu=6), *used("b", "B", 2), *wants("a", "A"),
        plugins=FLAT,
    )  # fmt: skip
    assert victims(ssn, "a-0", "b-0", "b-1") == ["b-1", "b-0"]


def test_only_tasks_that_hold_what_is_asked_go() -> None:
    """Evicting a cpu pod does not help one that asks for memory only."""
    ssn = opened(
        node("n").cpu(10).memory("9Gi"), queue("B"), queue("A"), *used("b", "B", 2), podgroup("a").queue("A"),
        task("a-0", "a").memory("1Gi"), plugins=FLAT,
    )  # fmt: skip
    assert victims(ssn, "a-0", "b-0", "b-1") == []


def test_admission_is_by_capability() -> None:
    """In the words of the reference, with the numbers."""
    ssn = opened(
        node("n").cpu(10).gpu(4), queue("q").capability(cpu=5, gpu=1), podgroup("in").queue("q").asks(cpu=3),
        podgroup("g").queue("q").asks(cpu=3, gpu=2).phase("Pending"), plugins=FLAT,
    )  # fmt: skip
    job = job_row(ssn, "g")
    assert plugin(ssn, "capacity").job_enqueueable(ssn, job) is Vote.REJECT
    told = ssn.enqueue_refusals[job][0]
    assert told.event == "queue resource quota insufficient: insufficient cpu, insufficient nvidia.com/gpu"
    assert told.text == "queue q: cpu 3 admitted + 3 asked > capability 5, nvidia.com/gpu 2 asked > capability 1"


# --- along a tree -----------------------------------------------------------------------------------------------------------


def family(*more: Json, level: int = 0, cpu: int = 20) -> Session:
    """root -> A (a1, a2) and B (b1)."""
    return opened(
        node("n").cpu(cpu).pods(1000), queue("root"), queue("A").parent("root").deserved(cpu=8), queue("B").deserved(cpu=4),
        queue("a1").parent("A").deserved(cpu=4), queue("a2").parent("A").deserved(cpu=4), queue("b1").parent("B").deserved(cpu=4),
        *more, plugins=tree(level),
    )  # fmt: skip


def test_queues_are_compared_where_their_branches_part() -> None:
    """a1 against b1 is A against B; a1 against a2 is just the two."""
    ssn = family(*used("x", "a1", 1), *used("y", "a2", 3), *used("z", "b1", 1))
    # A has 4 of 8, B 1 of 4; a1 has 1 of 4, a2 3 of 4.
    assert order(ssn, "a2", "a1", "b1") == ["b1", "a1", "a2"]


def test_branches_are_compared_as_they_were_at_the_beginning() -> None:
    """Three cpus more take A from 2 of 8 to 5, beyond the 2 of 4 that B has, and a1 beyond a2."""
    ssn = family(*used("x", "a1", 1), *used("y", "a2", 1), *used("z", "b1", 2), *wants("w", "a1", 1, 3))
    assert order(ssn, "a1", "a2", "b1") == ["a1", "a2", "b1"]
    with ssn.statement() as stmt:
        stmt.allocate([task_row(ssn, "w-0")], [0])
        assert order(ssn, "a1", "a2", "b1") == ["a2", "a1", "b1"]


def test_use_counts_for_all_queues_above() -> None:
    """What happens in a leaf happens in its ancestors."""
    ssn = family(*used("x", "a1", 2), *wants("w", "a1", 1, 3))
    capacity = plugin(ssn, "capacity")
    assert [capacity.taken[queue_row(ssn, name), 0] for name in ("a1", "A", "root", "B")] == [2000, 2000, 2000, 0]
    with ssn.statement() as stmt:
        stmt.allocate([task_row(ssn, "w-0")], [0])
        assert [capacity.taken[queue_row(ssn, name), 0] for name in ("a1", "A", "root", "B")] == [5000, 5000, 5000, 0]


def limited(**capabilities: QueueBuilder) -> Session:
    return opened(node("n").cpu(20).gpu(8), queue("root"), *capabilities.values(), plugins=tree())


def test_a_child_has_its_parents_limits_where_it_says_nothing() -> None:
    """And no more than the parent has left beside the guarantees of the siblings."""
    ssn = limited(
        p=queue("p").capability(cpu=10, gpu=4), a=queue("a").parent("p").capability(gpu=2),
        b=queue("b").parent("p").guarantee(cpu=3), free=queue("free"),
    )  # fmt: skip
    limit = plugin(ssn, "capacity").limits.limit
    gpu = ssn.axis.column[GPU]
    assert {name: (limit[row, 0], limit[row, gpu]) for name, row in ssn.queues.rows.items()} == {
        "root": (np.inf, np.inf), "p": (10000, 4000), "a": (7000, 2000), "b": (10000, 4000), "free": (np.inf, np.inf),
    }  # fmt: skip


def test_every_queue_on_the_way_up_must_have_room() -> None:
    """The parent is full although the leaf is not, and is the one that is named."""
    ssn = opened(
        node("n").cpu(20), queue("root"), queue("p").capability(cpu=4), queue("a").parent("p"), queue("b").parent("p"),
        *used("u", "b", 3), *wants("w", "a", 9), podgroup("g").queue("a").asks(cpu=9).phase("Pending"), plugins=tree(),
    )  # fmt: skip
    capacity, row = plugin(ssn, "capacity"), queue_row(ssn, "a")
    assert capacity.allocatable(ssn, row, request(ssn, cpu=1), 9) == 1
    assert capacity.explain_queue(ssn, row, request(ssn, cpu=2))[0] == "queue p: cpu 3 used + 2 asked > capability 4"
    assert capacity.job_enqueueable(ssn, job_row(ssn, "g")) is Vote.REJECT


def test_jobs_run_in_leaves_only() -> None:
    """A queue with queues below it takes neither tasks nor jobs, and says so."""
    ssn = family(*wants("w", "A"))
    capacity, row = plugin(ssn, "capacity"), queue_row(ssn, "A")
    assert capacity.allocatable(ssn, row, request(ssn, cpu=1), 1) == 0
    assert capacity.job_enqueueable(ssn, job_row(ssn, "w")) is Vote.REJECT
    assert capacity.explain_queue(ssn, row, request(ssn, cpu=1)) == (
        "queue A: has queues below it, and jobs run in the lowest queues only", {},
    )  # fmt: skip


BROKEN = {
    "a parent that does not exist": [queue("x").parent("nobody")],
    "below such a one": [queue("y").parent("nobody"), queue("x").parent("y")],
    "a ring": [queue("y").parent("x"), queue("x").parent("y")],
    "its own parent": [queue("x").parent("x")],
}


@pytest.mark.parametrize("queues", BROKEN.values(), ids=BROKEN)
def test_a_broken_branch_stands_still_and_harms_nobody(queues: list[Json]) -> None:
    """The reference stops the whole cluster for it."""
    ssn = family(*queues, *wants("w", "x"), *wants("fine", "a1"))
    capacity = plugin(ssn, "capacity")
    assert capacity.allocatable(ssn, queue_row(ssn, "x"), request(ssn, cpu=1), 1) == 0
    assert capacity.job_enqueueable(ssn, job_row(ssn, "w")) is Vote.REJECT
    assert capacity.reclaimable(ssn, task_row(ssn, "w-0"), []) == []
    assert capacity.allocatable(ssn, queue_row(ssn, "a1"), request(ssn, cpu=1), 1) == 1


def test_without_root_nothing_hangs_together() -> None:
    """No queue is usable."""
    ssn = opened(node("n").cpu(9), queue("q"), *wants("w", "q"), plugins=tree())
    assert plugin(ssn, "capacity").allocatable(ssn, 0, request(ssn, cpu=1), 1) == 0


def test_the_nearest_queues_give_first() -> None:
    """Victims of a sibling before those of a cousin."""
    ssn = family(queue("a3").parent("A"))
    near, far, mine = (queue_row(ssn, name) for name in ("a2", "b1", "a1"))
    assert ssn.victim_queue_order(near, mine) < ssn.victim_queue_order(far, mine)


ANCESTORS = {
    # a1 (4) has 6, so it gives; A (8) has 6 or, with a2's 3, 9.
    "the leaf alone decides at level 0": (0, [], ["x-5", "x-4"]),
    "the branch has no more than it deserves": (1, [], []),
    "the branch has too much as well": (1, used("y", "a2", 3), ["x-5"]),
}


@pytest.mark.parametrize(("level", "more", "want"), ANCESTORS.values(), ids=ANCESTORS)
def test_ancestors_count_up_to_the_level(level: int, more: list[Json], want: list[str]) -> None:
    """With ancestorReclaimLevel the victim's branch must have too much as well, after each victim anew."""
    ssn = family(*used("x", "a1", 6), *more, *wants("w", "b1"), level=level)
    assert victims(ssn, "w-0", *(f"x-{i}" for i in range(6))) == want


def test_two_queues_that_deserve_nothing_do_not_fight() -> None:
    """Siblings without quota: with a level set, neither takes from the other."""
    poor = [queue("a3").parent("A"), queue("a4").parent("A"), *used("x", "a3", 1), *wants("w", "a4")]
    assert victims(family(*poor, level=0), "w-0", "x-0") == ["x-0"]
    assert victims(family(*poor, *used("y", "a1", 9), level=1), "w-0", "x-0") == []


# --- whatever the cluster -----------------------------------------------------------------------------------------------


@given(
    caps=st.lists(st.tuples(st.integers(1, 12), st.booleans()), min_size=1, max_size=4),
    top=st.integers(1, 20),
    jobs=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4), st.integers(1, 5)), max_size=8),
    hierarchical=st.booleans(),
)
@settings(deadline=None, max_examples=60)
def test_no_queue_gets_beyond_its_capability(
    caps: list[tuple[int, bool]], top: int, jobs: list[tuple[int, int, int]], hierarchical: bool
) -> None:
    """After a session no queue, and no queue above it, holds more than its capability."""
    queues = [queue("root"), queue("top").parent("root").capability(cpu=top)]
    queues += [queue(f"q{i}").parent("top").deserved(cpu=1).capability(cpu=cap) for i, (cap, _) in enumerate(caps)]
    mirror = Mirror()
    objects: list[Json] = [node("n").cpu(16), node("m").cpu(8), *queues]
    for i, (where, cpu, size) in enumerate(jobs):
        objects += [podgroup(f"g{i}").queue(f"q{where % len(caps)}").members(max(1, size - 1))]
        objects += [task(f"g{i}-{k}", f"g{i}").cpu(cpu) for k in range(size)]
    for obj in objects:
        mirror.apply(meta.kind_of(obj), "ADDED", obj)
    text = f'actions: "allocate"\ntiers: [{{plugins: [{{name: gang}}, {{name: capacity, enableHierarchy: {hierarchical}}}]}}]'
    ssn = schedule(Snapshot.build(mirror), conf.load(text, PLUGINS, ACTIONS), 0.0).session
    taken = dict.fromkeys(ssn.queues.name, 0)
    for key, row in ssn.tasks.rows.items():
        if ssn.task_status[row] in status.ALLOCATED_SET:
            taken[ssn.queues.name[ssn.queue_of(ssn.job_of(row))]] += int(ssn.request(row)[0])
            assert key.name
    for i, (cap, _) in enumerate(caps):
        assert taken[f"q{i}"] <= cap * 1000
    if hierarchical:
        assert sum(taken.values()) <= top * 1000


# --- devices by claim ---------------------------------------------------------------------------------------------------------

CLASS = "deviceclass/gpu.test"


def claim(name: str, count: int = 1, **capacity: str) -> Json:
    exactly: Json = {"deviceClassName": "gpu.test", "count": count}
    if capacity:
        exactly["capacity"] = {"requests": capacity}
    return Built(meta.RESOURCE_CLAIM, name).with_("spec.devices.requests", [{"name": "r", "exactly": exactly}])


def claiming(name: str, group: str, *claims: str, on: str = "") -> Json:
    made = task(name, group).cpu(1).with_("spec.resourceClaims", [{"name": c, "resourceClaimName": c} for c in claims])
    return made.on(on) if on else made


def devices(*objects: Json, limit: dict[str, str], consumable: bool = False) -> Session:
    """Queue q below top, which has the limit."""
    arguments = {
        "capacity.DynamicResourceAllocationEnable": True, "capacity.DRAConsumableCapacityEnable": consumable,
    }  # fmt: skip
    top = queue("top").parent("root").with_("spec.capability", limit)
    return opened(
        node("n").cpu(99), queue("root"), top, queue("q").parent("top"), podgroup("g").queue("q").members(2), *objects,
        plugins=[{"name": "capacity", "enableHierarchy": True, "arguments": arguments}],
    )  # fmt: skip


DEVICES = {
    "as many as there are": ([claim("a", 2), claim("b", 2)], [("t0", "a"), ("t1", "b")], {CLASS: "4"}, 2),
    "not one more": ([claim("a", 2), claim("b", 3)], [("t0", "a"), ("t1", "b")], {CLASS: "4"}, 1),
    "a shared claim counts once": ([claim("a", 4)], [("t0", "a"), ("t1", "a")], {CLASS: "4"}, 2),
    "another class has no limit": ([claim("a", 9)], [("t0", "a")], {"deviceclass/other": "1"}, 1),
    "a claim that does not exist asks nothing": ([], [("t0", "a")], {CLASS: "1"}, 1),
}


@pytest.mark.parametrize(("claims", "tasks", "limit", "want"), DEVICES.values(), ids=DEVICES)
def test_devices(claims: list[Json], tasks: list[tuple[str, str]], limit: dict[str, str], want: int) -> None:
    """A queue, and every queue above it, may hold so many devices."""
    ssn = devices(*claims, *(claiming(name, "g", of) for name, of in tasks), limit=limit)
    rows = [task_row(ssn, name) for name, _ in tasks]
    assert plugin(ssn, "capacity").allocatable_claims(ssn, queue_row(ssn, "q"), rows) == want


def test_devices_in_use_count_and_come_back() -> None:
    """What runs holds its claims; what is placed takes them, and gives them back when it is undone."""
    ssn = devices(
        claim("a", 2), claim("b"), claim("c"), claiming("old", "g", "a", on="n"), claiming("t0", "g", "b"),
        claiming("t1", "g", "c"), limit={CLASS: "3"},
    )  # fmt: skip
    capacity, q = plugin(ssn, "capacity"), queue_row(ssn, "q")
    t0, t1 = task_row(ssn, "t0"), task_row(ssn, "t1")
    with ssn.statement() as stmt:
        stmt.allocate([t0], [0])
        assert capacity.allocatable_claims(ssn, q, [t1]) == 0
        assert capacity.explain_queue(ssn, q, request(ssn, cpu=1)) == (
            f"queue top: {CLASS} 3 used + 1 asked > capability 3", {CLASS: {"used": "3", "asked": "1", "capability": "3"}},
        )  # fmt: skip
        stmt.evict(task_row(ssn, "old"), "reclaim")
        assert capacity.allocatable_claims(ssn, q, [t1]) == 1
    assert capacity.allocatable_claims(ssn, q, [t0]) == 1
    assert capacity.allocatable_claims(ssn, q, [t0, t1]) == 1


CONSUMED = {"within": ("4Gi", True, 1), "beyond": ("5Gi", True, 0), "not looked at": ("5Gi", False, 1)}


@pytest.mark.parametrize(("amount", "consumable", "want"), CONSUMED.values(), ids=CONSUMED)
def test_consumable_capacity(amount: str, consumable: bool, want: int) -> None:
    """What claims consume of shared devices, each device as much."""
    ssn = devices(
        claim("a", 2, memory=amount), claiming("t", "g", "a"), consumable=consumable,
        limit={CLASS: "9", f"memory.{CLASS}": "8Gi"},
    )  # fmt: skip
    assert plugin(ssn, "capacity").allocatable_claims(ssn, queue_row(ssn, "q"), [task_row(ssn, "t")]) == want


def test_a_minimum_of_devices_is_checked_at_admission() -> None:
    """Also of jobs that ask for nothing else; what was let in counts for the next."""
    ssn = devices(
        claim("a"), claim("b"), claim("c"), claiming("t0", "g", "a"), claiming("t1", "g", "b"), claiming("t2", "g", "c"),
        podgroup("g").queue("q").members(2).phase("Pending"), podgroup("h").queue("q").phase("Pending"),
        claiming("h0", "h", "c"), limit={CLASS: "2"},
    )  # fmt: skip
    capacity = plugin(ssn, "capacity")
    assert capacity.job_enqueueable(ssn, job_row(ssn, "g")) is Vote.PERMIT
    capacity.job_enqueued(ssn, job_row(ssn, "g"))
    assert capacity.job_enqueueable(ssn, job_row(ssn, "h")) is Vote.REJECT
    told = ssn.enqueue_refusals[job_row(ssn, "h")][0]
    assert told.event == "queue resource quota insufficient: insufficient dra-resource-exceeded"
    assert told.text == f"queue top: {CLASS} 2 used or let in + 1 asked > capability 2"


def test_a_job_that_was_let_in_counts_until_it_holds_its_claims() -> None:
    """Its minimum is not promised to the next one; what it holds is not counted twice."""

    def asks(*objects: Json) -> Vote:
        ssn = devices(
            claim("a"), claim("b"), claim("c", 2), *objects, podgroup("h").queue("q").phase("Pending"),
            claiming("h0", "h", "c"), limit={CLASS: "3"},
        )  # fmt: skip
        vote: Vote = plugin(ssn, "capacity").job_enqueueable(ssn, job_row(ssn, "h"))
        return vote

    assert asks(claiming("t0", "g", "a"), claiming("t1", "g", "b")) is Vote.REJECT
    assert asks(claiming("t0", "g", "a", on="n")) is Vote.PERMIT


def as_worker(pod: Json) -> Json:
    pod["metadata"].setdefault("annotations", {})[names.TASK_SPEC] = "worker"
    return pod


def test_a_claim_that_a_gang_shares_is_asked_once() -> None:
    """Four workers of one role with the same claim ask for its devices, not for four times as many."""
    ssn = devices(
        claim("a", 4), *(as_worker(claiming(f"t{i}", "g", "a")) for i in range(4)),
        podgroup("g").queue("q").members(4).with_("spec.minTaskMember", {"worker": 4}).phase("Pending"), limit={CLASS: "4"},
    )  # fmt: skip
    assert plugin(ssn, "capacity").job_enqueueable(ssn, job_row(ssn, "g")) is Vote.PERMIT


def test_members_that_are_not_there_yet_ask_as_the_first_one_does() -> None:
    """One of four workers exists, with a claim made for it: the queue must have room for four."""
    made = Built(meta.RESOURCE_CLAIM, "w0-gpu").with_("spec", claim("x")["spec"])
    worker = (
        task("w0", "g").cpu(1).role("worker")
        .with_("spec.resourceClaims", [{"name": "gpu", "resourceClaimTemplateName": "one"}])
        .with_("status.resourceClaimStatuses", [{"name": "gpu", "resourceClaimName": "w0-gpu"}])
    )  # fmt: skip
    group = podgroup("g").queue("q").members(4).with_("spec.minTaskMember", {"worker": 4}).phase("Pending")
    ssn = devices(made, worker, group, limit={CLASS: "3"})
    assert plugin(ssn, "capacity").job_enqueueable(ssn, job_row(ssn, "g")) is Vote.REJECT
    assert ssn.enqueue_refusals[job_row(ssn, "g")][0].numbers == {CLASS: {"used": "0", "asked": "4", "capability": "3"}}


def test_claims_are_followed_where_somebody_counts_them() -> None:
    """Whoever turns it off asks nobody for them; a reload that turns it on is enough."""
    clock = VirtualClock(0.0)
    cluster = MemoryCluster(clock)
    cluster.load([claim("a")])
    text = 'actions: "allocate"\ntiers: [{{plugins: [{{name: capacity, arguments: {{{}}}}}]}}]'
    switch = "capacity.DynamicResourceAllocationEnable: "
    loop = Loop(cluster, conf.load(text.format(switch + "false"), PLUGINS, ACTIONS), clock)
    loop.start()
    assert not loop.mirror.facts[meta.RESOURCE_CLAIM]
    loop.conf = conf.load(text.format(switch + "true"), PLUGINS, ACTIONS)
    loop.feed()
    assert list(loop.mirror.facts[meta.RESOURCE_CLAIM]) == [Key("default", "a")]
