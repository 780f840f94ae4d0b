"""Random histories with refused writes, slow watches and restarts: no node is overfull, no gang starts in part (unless
bindings themselves are refused), and in the end the scheduler's books agree with what a newcomer reads from the cluster."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import pytest

from extender.api.labels import RUN_SECONDS
from extender.api.meta import JOB, POD, PV, PVC, Json, key_of
from extender.cluster.workloads.volumes import mounted
from extender.core import status as st
from extender.core.followed import ALWAYS, VOLUMES
from extender.core.mirror import Mirror
from extender.testing import expectations
from extender.testing.builders import node, priority_class, queue
from extender.testing.played import Played
from extender.testing.scenario import Story
from extender.testing.storage import FAST, LOCAL, classes, volume

SECONDS, JOBS = 120, 25
LATE = ("Pod", "PodGroup", "Node")
MAY_BE_GONE = "may be gone"
POLICIES: tuple[list[Json], ...] = (
    [],
    [{"event": "PodEvicted", "action": "RestartJob"}],
    [{"event": "PodFailed", "action": "AbortJob"}],
)
CONF = {  # drf and gang choose no victims, as the chart has it: drf would have low jobs evict high ones for ever
    "actions": "enqueue, allocate, preempt, reclaim, backfill",
    "tiers": [
        {"plugins": [{"name": "priority"}, {"name": "gang", "enablePreemptable": False}, {"name": "conformance"}]},
        {
            "plugins": [
                {"name": "drf", "enablePreemptable": False},
                *({"name": name} for name in ("overcommit", "predicates", "proportion", "nodeorder", "binpack")),
            ]
        },
    ],
}


def job(rng: random.Random, number: int) -> Json:
    """One or two tasks, a gang of all or of some, running for a while."""
    tasks = [task(rng, role) for role in ("a", "b")[: rng.randint(1, 2)]]
    total = sum(task["replicas"] for task in tasks)
    spec = {
        "schedulerName": "volcano",
        "queue": rng.choice(("default", "q")),
        "priorityClassName": rng.choice(("low", "high")),
        "minAvailable": rng.choice((total, total, rng.randint(1, total))),
        "ttlSecondsAfterFinished": rng.choice((0, 30, 600)),
        "policies": rng.choice(POLICIES),
        "tasks": tasks,
    }
    if rng.random() < 0.4:
        spec["volumes"] = [{"mountPath": "/data", "volumeClaim": claim_spec(rng)}]
    return {
        "apiVersion": JOB.api_version,
        "kind": "Job",
        "metadata": {"name": f"j{number}", "namespace": "default"},
        "spec": spec,
    }


def claim_spec(rng: random.Random) -> Json:
    """For a volume that is made where the job goes, or for one of those that are there."""
    asked = {"requests": {"storage": f"{rng.randint(1, 4)}Gi"}}
    return {"accessModes": ["ReadWriteOnce"], "storageClassName": rng.choice((FAST, LOCAL)), "resources": asked}


def task(rng: random.Random, role: str) -> Json:
    requests = {"cpu": f"{rng.choice((0, 500, 1000, 2000))}m", "memory": f"{rng.randint(0, 4)}Gi"}
    container = {"name": "main", "image": "example.test/app:1", "resources": {"requests": requests}}
    spec = {"containers": [container], "restartPolicy": "Never", "terminationGracePeriodSeconds": rng.choice((0, 2, 10))}
    run = {"annotations": {RUN_SECONDS: str(rng.randint(5, 40))}}
    return {"name": role, "replicas": rng.randint(1, 4), "template": {"metadata": run, "spec": spec}}


def steps(rng: random.Random, *, refuse_binds: bool) -> list[Json]:
    """What happens, in order of time."""
    made: list[Json] = [
        {"at": 0, "delayWatch": {"kind": rng.choice(LATE), "seconds": rng.randint(0, 4)}},
        {"at": 0, "fault": {"call": "evict", "match": "*", "every": 3, "error": 500}},
        {"at": 0, "fault": {"call": "patch", "match": "PodGroup/*", "every": 7, "error": rng.choice((409, 503))}},
        {"at": 0, "fault": {"call": "updateStatus", "match": "*", "every": 11, "error": 409}},
        {"at": 0, "fault": {"call": "create", "match": "Pod/*", "every": 6, "error": 500}},
        {"at": 0, "fault": {"call": "patch", "match": "PersistentVolume*/*", "every": 2, "error": rng.choice((409, 503))}},
    ]
    if refuse_binds:
        made.append({"at": 0, "fault": {"call": "bind", "match": "*", "every": 5, "error": rng.choice((500, 409, 429))}})
    made += [{"at": rng.randint(0, SECONDS - 40), "create": job(rng, number)} for number in range(JOBS)]
    for number in range(3):
        leaves, comes = rng.randint(10, SECONDS - 30), rng.randint(10, SECONDS - 30)
        made.append({"at": leaves, "delete": {"kind": "Node", "name": f"n{number}"}})
        made.append({"at": comes, "create": node(f"new{number}").cpu(4).memory("16Gi")})
    made += [
        {"at": rng.randint(20, SECONDS), "id": MAY_BE_GONE, "delete": {"kind": "Job", "name": f"j{number}"}}
        for number in rng.sample(range(JOBS), 6)
    ]
    made.append({"at": rng.randint(20, SECONDS), "restart": [rng.choice(("scheduler", "controllers"))]})
    made.append({"at": SECONDS, "advance": 30})
    return sorted(made, key=lambda step: float(step["at"]))


def story(seed: int) -> dict[str, Any]:
    """Bindings are refused in every other one."""
    rng = random.Random(seed)
    refuse_binds = seed % 2 == 0
    return {
        "id": f"soak-{seed}",
        "config": {"components": ["scheduler", "controllers"], "scheduler": CONF},
        "objects": [
            priority_class("low", 10),
            priority_class("high", 1000),
            queue("q").weight(2).capability(cpu=8),
            *(node(f"n{number}").cpu(rng.choice((2, 4, 8))).memory("16Gi") for number in range(5)),
            *classes(),
            *(volume(f"v{number}", f"{rng.randint(1, 4)}Gi").only_on(f"n{number}") for number in range(5)),
        ],
        "steps": steps(rng, refuse_binds=refuse_binds),
        "expect": {"invariants": [{"nodeFits": "*"}, *([] if refuse_binds else [{"gangAtomic": ["j*"]}])]},
    }


@pytest.fixture(scope="module", params=range(6))
def played(request: pytest.FixtureRequest) -> Played:
    return Story(story(request.param)).play()


def test_nothing_is_overfull_and_no_gang_starts_in_part(played: Played) -> None:
    """At every moment of the history."""
    played.refused.pop(MAY_BE_GONE, None)
    assert list(expectations.faults(played, played.case["expect"])) == []


def test_something_happens(played: Played) -> None:
    """A history without bindings and refusals would prove nothing."""
    assert sum(write.call == "bind" for write in played.trouble.writes) > 50
    assert all(fault.seen > fault.every for fault in played.trouble.faults if fault.call != "evict")


def test_the_books_are_right_in_the_end(played: Played) -> None:
    """When the API server is well again, the mirror that lived through it all holds what a new one reads, and no gang is left
    with a part of its members."""
    played.trouble.faults.clear()
    for kind in LATE:
        played.trouble.delay(kind, 0)
    for _ in range(200):
        played.local.second()
    assert played.local.loop is not None
    played.local.loop.feed()
    lived, new = played.local.loop.mirror, _fresh(played)
    assert _books(lived) == _books(new)
    assert _in_part(new) == []
    assert list(_without_volumes(played)) == []


def _without_volumes(played: Played) -> Iterator[str]:
    """Pods on nodes that have what the others have, or nothing."""
    whose = [obj["spec"]["claimRef"]["uid"] for obj in played.cluster.list(PV).objects if obj["spec"].get("claimRef")]
    yield from (f"claim {uid} has several volumes" for uid in set(whose) if whose.count(uid) > 1)
    claims = {key_of(obj): obj for obj in played.cluster.list(PVC).objects}
    for pod in played.cluster.list(POD).objects:
        going = "deletionTimestamp" in pod["metadata"] or pod["status"].get("phase") in ("Succeeded", "Failed")
        for key in mounted(pod) if pod["spec"].get("nodeName") and not going else ():
            if key not in claims or claims[key]["status"]["phase"] != "Bound":
                yield f"{key_of(pod)} has a node, its claim {key} has no volume"


def _in_part(mirror: Mirror) -> list[str]:
    started = mirror.jobs.counts[:, list(st.READY_SET)].sum(axis=1)
    rows = np.flatnonzero((started > 0) & (started < mirror.jobs.min_available))
    return [str(mirror.jobs.key[row]) for row in rows]


def _fresh(played: Played) -> Mirror:
    mirror = Mirror()
    for kind in (*ALWAYS, *VOLUMES):
        for obj in played.cluster.list(kind).objects:
            mirror.apply(kind, "ADDED", obj)
    return mirror


def _timeless(obj: Any) -> Any:
    return msgspec.structs.replace(obj, metadata=msgspec.structs.replace(obj.metadata, resource_version=""))


def _books(mirror: Mirror) -> dict[str, Any]:
    """What a session would see, by names."""
    nodes, jobs, tasks = mirror.nodes, mirror.jobs, mirror.tasks

    def named(amounts: Any) -> dict[str, int]:
        return {mirror.axis.names[i]: int(amount) for i, amount in enumerate(amounts) if amount}

    def place(row: int) -> str:
        return nodes.name[tasks.node[row]] if tasks.node[row] >= 0 else ""

    return {
        "nodes": {
            name: (named(nodes.used[row]), named(nodes.releasing[row]), named(nodes.allocatable[row]))
            for name, row in nodes.rows.items()
        },
        "jobs": {
            key: (jobs.counts[row].tolist(), int(jobs.phase[row]), named(jobs.allocated[row])) for key, row in jobs.rows.items()
        },
        "tasks": {key: (int(tasks.status[row]), place(row)) for key, row in tasks.rows.items()},
        "queues": sorted(mirror.queues),
        "unreadable": mirror.unreadable,
        "volumes": {kind: {key: _timeless(obj) for key, obj in mirror.facts[kind].items()} for kind in VOLUMES},
    }
