"""Affinity, spread and ports see pods that a session has placed, promised room or evicted, as if they had been there or gone."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from extender.actions import ACTIONS
from extender.api import meta
from extender.api.meta import Json
from extender.core import conf
from extender.core.mirror import Mirror
from extender.core.placement import Plan
from extender.core.session import Session
from extender.core.snapshot import Snapshot
from extender.plugins import PLUGINS
from extender.testing.questions import question

CONF = conf.load("actions: allocate\ntiers: [{plugins: [{name: predicates}, {name: nodeorder}]}]", PLUGINS, ACTIONS)
SEED, NUMBERS = 7, range(120)


def session(asked: Json, running: list[Json], waiting: list[Json]) -> Session:
    """A session over the question's cluster with these pods on nodes, those waiting, and the pod that the question asks about."""
    mirror = Mirror()
    for obj in asked["nodes"]:
        obj["status"].setdefault("allocatable", {})
        mirror.apply(meta.NODE, "ADDED", obj)
    for obj in asked["objects"]:
        mirror.apply(meta.kind_of(obj), "ADDED", obj)
    for pod in running:  # as large as they ask, so that they are the same when they are yet to be placed
        mirror.apply(meta.POD, "ADDED", {**pod, "status": {"phase": "Running"}})
    for pod in [*waiting, asked["pod"]]:
        spec = {**pod["spec"], "schedulerName": "volcano"}
        spec.pop("nodeName", None)
        mirror.apply(meta.POD, "ADDED", {**pod, "spec": spec, "status": {"phase": "Pending"}})
    return Session(Snapshot.build(mirror), CONF, now=0.0, rng=np.random.default_rng(0))


def row_of(ssn: Session, pod: Json) -> int:
    return ssn.tasks.rows[meta.key_of(pod)]


def judged(ssn: Session, plan: Plan) -> tuple[set[str], dict[str, float]]:
    """Nodes that pass every check, amounts aside, and their points."""
    plan.refresh()
    passes = plan.passes.copy()
    for refusal in plan.across():
        passes &= ~refusal.mask
    scores, _, _ = plan.total_scores(passes)
    rows = np.flatnonzero(passes).tolist()
    return {ssn.nodes.name[row] for row in rows}, {ssn.nodes.name[row]: float(scores[row]) for row in rows}


@pytest.mark.parametrize("number", NUMBERS)
def test_moved_pods_count_as_if_they_had_always_been_there_or_gone(number: int) -> None:
    """Some are placed, some promised room, some evicted; the plan was made before all that."""
    asked, rng = question(SEED, number), Random(number)
    steady = [pod for pod in asked["pods"] if "deletionTimestamp" in pod["metadata"]]
    pods = [pod for pod in asked["pods"] if pod not in steady]
    rng.shuffle(pods)
    placed, promised, evicted = pods[::4], pods[1::4], pods[2::4]
    steady += pods[3::4]

    ssn = session(asked, [*steady, *evicted], [*placed, *promised])
    plan = ssn.plan(ssn.task_class(row_of(ssn, asked["pod"])))
    stmt = ssn.statement()
    for pod in placed:
        stmt.allocate([row_of(ssn, pod)], [ssn.nodes.rows[pod["spec"]["nodeName"]]])
    for pod in promised:
        stmt.pipeline([row_of(ssn, pod)], [ssn.nodes.rows[pod["spec"]["nodeName"]]])
    for pod in evicted:
        stmt.evict(row_of(ssn, pod), "test")
    moved = judged(ssn, plan)

    fresh = session(asked, [*steady, *placed, *promised], [])
    assert moved == judged(fresh, fresh.plan(fresh.task_class(row_of(fresh, asked["pod"]))))


@pytest.mark.parametrize("number", NUMBERS)
def test_undoing_leaves_everything_as_it_was(number: int) -> None:
    """Of a mere trial; after others the scores go on without whom it was tried to displace (Session.displaceable)."""
    asked = question(SEED, number)
    pods = [pod for pod in asked["pods"] if "deletionTimestamp" not in pod["metadata"]]
    steady = [pod for pod in asked["pods"] if pod not in pods]
    placed, evicted = pods[::2], pods[1::2]
    ssn = session(asked, [*steady, *evicted], placed)
    plan = ssn.plan(ssn.task_class(row_of(ssn, asked["pod"])))
    before = judged(ssn, plan)
    with ssn.statement(trial=True) as stmt:
        for pod in placed:
            stmt.allocate([row_of(ssn, pod)], [ssn.nodes.rows[pod["spec"]["nodeName"]]])
        for pod in evicted:
            stmt.evict(row_of(ssn, pod), "test")
        judged(ssn, plan)
    assert judged(ssn, plan) == before
