"""What must hold after any session, whatever the cluster: no node over-allocated, no gang in part, no queue above its
capability, and a statement that is discarded leaves no trace."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.actions import ACTIONS
from extender.api import meta
from extender.api.meta import Json
from extender.api.operations import Bind
from extender.core import conf, status
from extender.core.mirror import Mirror
from extender.core.scheduling import Result, schedule
from extender.core.session import Session
from extender.core.snapshot import Snapshot
from extender.plugins import PLUGINS
from extender.testing.builders import node, podgroup, queue, task

CONF = """
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: SHARES}, {name: nodeorder}, {name: binpack}]
"""


@dataclass(frozen=True)
class World:
    objects: tuple[Json, ...]
    shares: str  # proportion or capacity


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """A few nodes and queues, gangs of which some members run."""
    objects: list[Json] = []
    nodes = draw(st.integers(1, 4))
    objects += [node(f"n{i}").cpu(draw(st.integers(1, 8))).memory("64Gi").pods(draw(st.integers(2, 10))) for i in range(nodes)]
    queues = draw(st.integers(1, 3))
    for q in range(queues):
        made = queue(f"q{q}").weight(draw(st.integers(1, 3)))
        if draw(st.booleans()):
            made.with_("spec.capability", {"cpu": str(draw(st.integers(1, 8)))})
        objects.append(made)
    free = {o["metadata"]["name"]: int(o["status"]["allocatable"]["cpu"]) for o in objects[:nodes]}
    for g in range(draw(st.integers(1, 5))):
        size = draw(st.integers(1, 4))
        cpu = draw(st.integers(1, 3))
        group = podgroup(f"g{g}").members(draw(st.integers(1, size))).queue(f"q{draw(st.integers(0, queues - 1))}")
        running = draw(st.booleans())
        objects.append(group.phase("Running" if running else draw(st.sampled_from(["Pending", "Inqueue"]))))
        for i in range(size):
            member = task(f"g{g}-w-{i}", group=f"g{g}").cpu(cpu).priority(draw(st.integers(0, 2)))
            home = next((name for name, room in free.items() if running and room >= cpu), None)
            if home is not None:
                free[home] -= cpu
                member.on(home)
            objects.append(member)
    return World(tuple(objects), draw(st.sampled_from(["proportion", "capacity"])))


def run(world: World) -> tuple[Snapshot, Result]:
    mirror = Mirror()
    for obj in world.objects:
        mirror.apply(meta.kind_of(obj), "ADDED", obj)
    loaded = conf.load(CONF.replace("SHARES", world.shares), PLUGINS, ACTIONS)
    snapshot = Snapshot.build(mirror)
    return snapshot, schedule(snapshot, loaded, now=1_800_000_000.0)


@settings(max_examples=120, deadline=None)
@given(worlds())
def test_no_node_is_over_allocated(world: World) -> None:
    snapshot, result = run(world)
    before = snapshot.nodes.allocatable - snapshot.nodes.used
    assert ((result.session.idle >= 0) | (result.session.idle == before)).all()
    assert ((result.session.future >= 0) | (before < 0)).all()


@settings(max_examples=120, deadline=None)
@given(worlds())
def test_no_gang_is_started_in_part(world: World) -> None:
    snapshot, result = run(world)
    ssn = result.session
    for job in ssn.live_jobs():
        bound = int(ssn.job_counts[job][status.BINDING])
        running = int(snapshot.jobs.counts[job][status.RUNNING])
        assert bound == 0 or running + bound >= snapshot.jobs.min_available[job]


@settings(max_examples=120, deadline=None)
@given(worlds())
def test_no_queue_takes_more_than_its_capability(world: World) -> None:
    snapshot, result = run(world)
    ssn = result.session
    for row, name in enumerate(ssn.queues.name):
        limit = ssn.axis.amounts(ssn.queues.queue[row].spec.capability)
        jobs = ssn.jobs.queue == row
        used, had = ssn.job_allocated[jobs].sum(axis=0), snapshot.jobs.allocated[jobs].sum(axis=0)
        assert not (limit.named & (used > limit.values) & (used > had)).any(), name


@settings(max_examples=120, deadline=None)
@given(worlds())
def test_every_binding_is_of_a_pending_pod_and_only_once(world: World) -> None:
    _, result = run(world)
    pending = {o["metadata"]["name"] for o in world.objects if o["kind"] == "Pod" and "nodeName" not in o["spec"]}
    bound = [operation.pod.name for operation in result.operations if isinstance(operation, Bind)]
    assert len(bound) == len(set(bound))
    assert set(bound) <= pending


ARRAYS = (
    "task_status", "task_node", "used", "requested", "nonzero", "releasing", "idle", "future",
    "job_counts", "job_allocated", "job_pending_best_effort",
)  # fmt: skip


@settings(max_examples=120, deadline=None)
@given(worlds(), st.randoms())
def test_a_discarded_trial_leaves_no_trace(world: World, random: Random) -> None:
    mirror = Mirror()
    for obj in world.objects:
        mirror.apply(meta.kind_of(obj), "ADDED", obj)
    loaded = conf.load(CONF.replace("SHARES", world.shares), PLUGINS, ACTIONS)
    ssn = Session(Snapshot.build(mirror), loaded, 0.0, np.random.default_rng(0))
    before = {name: getattr(ssn, name).copy() for name in ARRAYS}
    orders = [ssn.job_order(job) for job in ssn.live_jobs()], [ssn.queue_order(q) for q in range(len(ssn.queues))]
    with ssn.statement(trial=True) as stmt:
        for row in sorted(ssn.tasks.rows.values(), key=lambda _: random.random()):
            if ssn.task_status[row] == status.PENDING and random.random() < 0.7:
                take = stmt.allocate if random.random() < 0.5 else stmt.pipeline
                take([row], [0])
            elif ssn.task_status[row] == status.RUNNING and random.random() < 0.5:
                stmt.evict(row, "preempt")
    assert all(np.array_equal(before[name], getattr(ssn, name)) for name in ARRAYS)
    assert orders == ([ssn.job_order(job) for job in ssn.live_jobs()], [ssn.queue_order(q) for q in range(len(ssn.queues))])
