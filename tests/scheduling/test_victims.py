"""The order of victims, the cheap bounds, and what must hold of any eviction, whatever the cluster."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.actions import ACTIONS
from extender.api import meta
from extender.api.meta import Json
from extender.api.operations import Bind, Evict
from extender.core import conf, status
from extender.core.mirror import Mirror
from extender.core.scheduling import schedule
from extender.core.session import Session
from extender.core.snapshot import Snapshot
from extender.core.victim_order import in_victim_order
from extender.core.victims import DryRun, Manner, VictimSearch
from extender.plugins import PLUGINS
from extender.testing.builders import node, podgroup, priority_class, queue, task

CONF = """
actions: "{actions}"
tiers:
- plugins: [{{name: priority}}, {{name: gang}}, {{name: conformance}}{between}{{name: drf}}, {{name: proportion}}]
configurations: [{{name: preempt, arguments: {{enableTopologyAwarePreemption: {aware}}}}}]
"""
ONE_TIER = ", "
TWO_TIERS = "]\n- plugins: ["  # where the first tier gives up nobody the second is asked, and may give up what gang keeps


@dataclass(frozen=True)
class World:
    objects: tuple[Json, ...]
    actions: str
    aware: bool


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Small nodes, mostly full, of several queues; gangs that run beyond their minimum, and gangs that wait."""
    objects: list[Json] = [priority_class("low", 10), priority_class("high", 100)]
    rooms = {f"n{i}": draw(st.integers(3, 8)) for i in range(draw(st.integers(1, 3)))}
    objects += [node(name).cpu(room).memory(f"{draw(st.integers(8, 16))}Gi") for name, room in rooms.items()]
    queues = draw(st.integers(1, 3))
    objects += [queue(f"q{i}").weight(draw(st.integers(1, 3))) for i in range(queues)]
    running = draw(st.integers(1, 3))
    for g in range(running + draw(st.integers(1, 3))):
        runs = g < running
        size, cpu = draw(st.integers(2, 6) if runs else st.integers(1, 3)), draw(st.integers(1, 2))
        usual = ["low", "low", "high"] if runs else ["high", "high", "low"]
        of = podgroup(f"g{g}").queue(f"q{draw(st.integers(0, queues - 1))}").priority(draw(st.sampled_from(usual)))
        least = draw(st.integers(0, size // 2) if runs else st.integers(1, size))
        objects.append(of.members(least).phase("Running" if runs else "Inqueue"))
        for i in range(size):
            member = task(f"g{g}-w-{i}", f"g{g}").cpu(cpu).memory("1Gi").priority(draw(st.integers(0, 2)))
            home = next((name for name, room in rooms.items() if runs and room >= cpu), "")
            if home:
                rooms[home] -= cpu
                member.on(home)
            objects.append(member.preemptable(draw(st.sampled_from([True, True, False])) or runs))
    return World(tuple(objects), draw(st.sampled_from(["preempt", "reclaim", "allocate, preempt, reclaim"])), draw(st.booleans()))


def open_session(objects: Sequence[Json], text: str) -> Session:
    mirror = Mirror()
    for obj in objects:
        mirror.apply(meta.kind_of(obj), "ADDED", obj)
    return Session(Snapshot.build(mirror), conf.load(text, PLUGINS, ACTIONS), 1_800_000_000.0, np.random.default_rng(0))


def run(world: World, between: str = ONE_TIER) -> tuple[Session, list[Evict]]:
    mirror = Mirror()
    for obj in world.objects:
        mirror.apply(meta.kind_of(obj), "ADDED", obj)
    text = CONF.format(actions=world.actions, between=between, aware=str(world.aware).lower())
    result = schedule(Snapshot.build(mirror), conf.load(text, PLUGINS, ACTIONS), now=1_800_000_000.0)
    return result.session, [operation for operation in result.operations if isinstance(operation, Evict)]


# --- what must hold of any eviction -------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(worlds(), st.sampled_from([ONE_TIER, TWO_TIERS]))
def test_no_node_is_promised_more_than_it_will_have(world: World, between: str) -> None:
    ssn, _ = run(world, between)
    before = ssn.allocatable - ssn.snapshot.nodes.used + ssn.snapshot.nodes.releasing
    assert ((ssn.future >= 0) | (ssn.future >= before)).all()


@settings(max_examples=150, deadline=None)
@given(worlds())
def test_no_gang_is_left_below_its_minimum(world: World) -> None:
    ssn, evictions = run(world)
    lost = Counter(ssn.job_of(ssn.tasks.rows[operation.pod]) for operation in evictions)
    assert all(ssn.ready_count(job) >= ssn.jobs.min_available[job] for job in lost)


@settings(max_examples=150, deadline=None)
@given(worlds(), st.sampled_from([ONE_TIER, TWO_TIERS]))
def test_each_victim_left_for_a_task_that_got_its_node(world: World, between: str) -> None:
    ssn, evictions = run(world, between)
    assert {ssn.tasks.rows[operation.pod] for operation in evictions} == set(ssn.evicted_for)
    assert all(
        ssn.task_status[task] == status.PIPELINED and ssn.task_node[task] == ssn.task_node[victim]
        for victim, task in ssn.evicted_for.items()
    )


@settings(max_examples=150, deadline=None)
@given(worlds(), st.sampled_from([ONE_TIER, TWO_TIERS]))
def test_whoever_was_evicted_may_be(world: World, between: str) -> None:
    ssn, evictions = run(world, between)
    rows = [ssn.tasks.rows[operation.pod] for operation in evictions]
    assert len(rows) == len(set(rows))
    assert all(ssn.tasks.preemptable[row] and ssn.tasks.status[row] == status.RUNNING for row in rows)


@settings(max_examples=150, deadline=None)
@given(worlds())
def test_a_gang_that_evicts_comes_to_run(world: World) -> None:
    ssn, _ = run(world)
    assert all(ssn.job_pipelined(ssn.job_of(task)) for task in ssn.evicted_for.values())


ROUNDS = 10


@settings(max_examples=25, deadline=None)
@given(worlds())
def test_evictions_come_to_an_end(world: World) -> None:
    """Whoever is evicted comes back as a new pod at once; after a few sessions nobody is evicted any more."""
    objects = {(obj["kind"], obj["metadata"]["name"]): copy.deepcopy(obj) for obj in world.objects}
    text = CONF.format(actions="allocate, preempt, reclaim, backfill", between=ONE_TIER, aware="false")
    loaded = conf.load(text, PLUGINS, ACTIONS)
    evictions: list[int] = []
    for _ in range(ROUNDS):
        mirror = Mirror()
        for obj in objects.values():
            mirror.apply(meta.kind_of(obj), "ADDED", obj)
        result = schedule(Snapshot.build(mirror), loaded, now=1_800_000_000.0)
        evictions.append(0)
        for operation in result.operations:
            if isinstance(operation, Evict):
                evictions[-1] += 1
                _place(objects["Pod", operation.pod.name], None)
            elif isinstance(operation, Bind):
                _place(objects["Pod", operation.pod.name], operation.node)
    assert evictions[-3:] == [0, 0, 0], evictions


def _place(pod: Json, on: str | None) -> None:
    """The pod runs on the node, or is new and has none."""
    pod["spec"] = {**pod["spec"], "nodeName": on or ""}
    pod["status"] = {"phase": "Running" if on else "Pending"}


COLUMNS = (
    "task_status", "task_node", "used", "requested", "nonzero", "releasing", "idle", "future",
    "job_counts", "job_allocated", "job_pending_best_effort",
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(worlds(), st.sampled_from(["preemptable", "reclaimable"]), st.booleans())
def test_a_search_on_trial_leaves_no_trace(world: World, hook: str, compare: bool) -> None:
    ssn = open_session(world.objects, CONF.format(actions="preempt", between=TWO_TIERS, aware="false"))
    search = VictimSearch(ssn, hook, "preempt", Manner(dry_run=DryRun() if compare else None))
    before = {name: getattr(ssn, name).copy() for name in COLUMNS}
    orders = [ssn.job_order(job) for job in ssn.live_jobs()], [ssn.queue_order(row) for row in range(len(ssn.queues))]
    with ssn.statement(trial=True) as stmt:
        for job in ssn.live_jobs():
            for row in ssn.pending_tasks(job):
                search.make_room(stmt, row, search.may_leave & (ssn.task_status == status.RUNNING))
    assert all(np.array_equal(before[name], getattr(ssn, name)) for name in COLUMNS)
    assert orders == ([ssn.job_order(job) for job in ssn.live_jobs()], [ssn.queue_order(row) for row in range(len(ssn.queues))])


@settings(max_examples=150, deadline=None)
@given(worlds(), st.sampled_from(["preemptable", "reclaimable"]))
def test_no_plugin_gives_up_what_it_said_it_would_not(world: World, hook: str) -> None:
    ssn = open_session(world.objects, CONF.format(actions="preempt", between=TWO_TIERS, aware="false"))
    rows = np.flatnonzero(ssn.task_status == status.RUNNING)
    with_bounds = [plugin for plugin in ssn.plugins if hasattr(plugin, "evictable") and hasattr(plugin, hook)]
    for job in ssn.live_jobs():
        for pending in ssn.pending_tasks(job):
            for plugin in with_bounds:
                bound = {int(row) for row in rows[plugin.evictable(ssn, hook, pending, rows)]}
                assert set(getattr(plugin, hook)(ssn, pending, rows.tolist())) <= bound, plugin.name


# --- order --------------------------------------------------------------------------------------------------------------


def test_victims_go_last_queue_first_then_last_job_then_last_task() -> None:
    objects = [
        priority_class("low", 10), priority_class("high", 100), node("n1").cpu(9),
        queue("mine"), queue("first").with_("spec.priority", 5), queue("last").with_("spec.priority", 1),
        podgroup("g").queue("mine"), task("wants", "g").cpu(1),
        podgroup("f").queue("first").priority("low"), task("f", "f").cpu(1).on("n1"),
        podgroup("high").queue("last").priority("high"), task("high", "high").cpu(1).on("n1"),
        podgroup("low").queue("last").priority("low"),
        task("low-a", "low").cpu(1).priority(5).on("n1"), task("low-b", "low").cpu(1).priority(2).on("n1"),
    ]  # fmt: skip
    ssn = open_session(objects, CONF.format(actions="reclaim", between=TWO_TIERS, aware="false"))
    rows = [ssn.tasks.rows[meta.Key("default", name)] for name in ("high", "f", "low-a", "low-b")]
    ordered = in_victim_order(ssn, ssn.queues.rows["mine"], rows)
    assert [ssn.task_key(task).name for task in ordered] == ["low-b", "low-a", "high", "f"]


WANTED = {
    "a share of the nodes": (DryRun(10, 1, 100), 500, 50),
    "at least": (DryRun(10, 5, 100), 20, 5),
    "at most": (DryRun(50, 1, 100), 1000, 100),
    "no more than there are": (DryRun(10, 5, 100), 3, 3),
}


@pytest.mark.parametrize(("dry_run", "nodes", "want"), WANTED.values(), ids=WANTED)
def test_how_many_nodes_are_compared(dry_run: DryRun, nodes: int, want: int) -> None:
    assert dry_run.wanted(nodes) == want
