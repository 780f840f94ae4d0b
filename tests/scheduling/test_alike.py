"""Jobs that nothing tells apart: one is tried for all, and what is decided and told is as if each had been tried."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.actions import ACTIONS, allocate
from extender.actions.placing import AllocateArgs
from extender.actions.worksheet import Worksheet, place_job
from extender.api import meta
from extender.api.meta import Json
from extender.api.operations import Bind
from extender.core import conf, waiting
from extender.core.alike import likeness
from extender.core.mirror import Mirror
from extender.core.reasons import Waiting
from extender.core.scheduling import Result, schedule
from extender.core.session import Session
from extender.core.snapshot import Snapshot
from extender.core.statement import Statement
from extender.plugins import PLUGINS
from extender.testing.builders import GroupBuilder, PodBuilder, node, podgroup, queue, task
from extender.testing.opened import job_row, opened

CONF = """
actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""


def scheduled(objects: list[Json]) -> Result:
    mirror = Mirror()
    for obj in objects:
        mirror.apply(meta.kind_of(obj), "ADDED", obj)
    return schedule(Snapshot.build(mirror), conf.load(CONF, PLUGINS, ACTIONS), 1e9, np.random.default_rng(0))


@contextmanager
def each_for_itself() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(allocate, "likeness", lambda *_: None)
        patch.setattr(waiting, "likeness", lambda *_: None)
        yield


@st.composite
def backlogs(draw: st.DrawFn) -> list[Json]:
    """Few nodes, and jobs of few kinds: admitted or not, of one role or two, with more than they need or too few."""
    objects: list[Json] = [queue("a"), queue("b").weight(2).capability(cpu=draw(st.integers(2, 9)))]
    disks = draw(st.lists(st.sampled_from(["ssd", "hdd"]), min_size=1, max_size=3))
    objects += [node(f"n{i}").cpu(draw(st.integers(1, 6))).pods(9).labels(disk=disk) for i, disk in enumerate(disks)]
    for j in range(draw(st.integers(2, 12))):
        size, least, cpu = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.sampled_from([0, 1, 1, 4]))
        group = (
            podgroup(f"j{j}")
            .members(least)
            .queue(draw(st.sampled_from("ab")))
            .phase(draw(st.sampled_from(["Pending", "Inqueue"])))
        )
        objects.append(group.asks(cpu=cpu * least) if draw(st.booleans()) else group)
        for i in range(size):
            member = task(f"j{j}-w-{i}", f"j{j}").cpu(cpu).role(draw(st.sampled_from(["w", "w", "v"])))
            objects.append(member.select(disk="ssd") if draw(st.booleans()) else member)
    return objects


@given(backlogs())
@settings(deadline=None, max_examples=150)
def test_nothing_is_decided_or_told_otherwise(objects: list[Json]) -> None:
    """Operations with all their texts, and the reasons, are those of a session that tries each job."""
    together = scheduled(objects)
    with each_for_itself():
        alone = scheduled(objects)
    assert together.operations == alone.operations
    assert together.waiting == alone.waiting


def test_a_long_queue_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thirty jobs of three kinds that do not fit, in two queues: six attempts, and six explanations."""
    attempts: list[int] = []
    place, why = place_job, waiting.why_waits
    explained: list[int] = []

    def counted_place(ssn: Session, stmt: Statement, work: Worksheet, args: AllocateArgs) -> bool:
        attempts.append(work.job)
        return place(ssn, stmt, work, args)

    def counted_why(ssn: Session, job: int) -> Waiting | None:
        explained.append(job)
        return why(ssn, job)

    monkeypatch.setattr(allocate, "place_job", counted_place)
    monkeypatch.setattr(waiting, "why_waits", counted_why)
    objects: list[Json] = [queue("a"), queue("b"), node("n").cpu(2)]
    for j in range(30):
        members = [task(f"j{j}-w-{i}", f"j{j}").cpu(3 + j % 3) for i in range(2)]
        objects += [podgroup(f"j{j}").members(2).queue("ab"[j // 15]).phase("Inqueue"), *members]
    assert len(scheduled(objects).waiting) == 30
    assert len(attempts) == len(explained) == 6


def test_once_something_is_placed_others_are_tried_anew() -> None:
    """Two jobs want to be beside a third, which comes between them: the first was in vain, the second was not."""
    term = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}
    beside = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    early, late = (task(name, name).cpu(1).with_("spec.affinity", beside) for name in ("early", "late"))
    groups = [podgroup(name).created(at).phase("Inqueue") for at, name in enumerate(("early", "between", "late"))]
    nodes = node("n").cpu(9).labels({"kubernetes.io/hostname": "n"})
    result = scheduled([queue(), nodes, *groups, early, task("between", "between").cpu(1).labels(app="x"), late])
    assert [op.pod.name for op in result.operations if isinstance(op, Bind)] == ["between", "late"]


ALONE = {
    "one of it holds a node": (podgroup("j"), [task("t", "j").cpu(1).on("n"), task("u", "j").cpu(1)]),
    "some of its tasks are gated": (podgroup("j"), [task("t", "j").cpu(1), task("u", "j").cpu(1).gated()]),
    "it was promised a node": (podgroup("j"), [task("t", "j").cpu(1).with_("status.nominatedNodeName", "n")]),
    "it claims devices": (podgroup("j"), [task("t", "j").cpu(1).with_("spec.resourceClaims", [{"name": "d"}])]),
    "it has parts": (podgroup("j").with_("spec.subGroupPolicy", [{"name": "p"}]), [task("t", "j").cpu(1)]),
}  # fmt: skip


@pytest.mark.parametrize(("group", "tasks"), ALONE.values(), ids=ALONE)
def test_a_job_of_which_there_is_more_to_know_stands_for_itself(group: GroupBuilder, tasks: list[PodBuilder]) -> None:
    ssn = opened(node("n").cpu(4), queue(), group, *tasks, plugins="gang,proportion")
    job = job_row(ssn, "j")
    assert likeness(ssn, job, [row for row in ssn.pending_tasks(job) if not ssn.shape_of(row).gated]) is None


@pytest.mark.parametrize(("plugins", "alike"), [("gang,priority", True), ("gang,sla", False)])
def test_a_plugin_may_look_at_more_than_members(plugins: str, alike: bool) -> None:
    """sla looks at the age of each job."""
    groups = [podgroup("old").created(1), podgroup("new").created(2)]
    ssn = opened(node("n"), queue(), *groups, task("o", "old").cpu(1), task("w", "new").cpu(1), plugins=plugins)
    kinds = {likeness(ssn, job, ssn.pending_tasks(job)) for job in (job_row(ssn, "old"), job_row(ssn, "new"))}
    assert (len(kinds) == 1 and None not in kinds) is alike
