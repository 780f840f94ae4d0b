"""/explain says why a job waits, by whatever name it is asked about."""

from __future__ import annotations

import json

import pytest

from extender.actions import ACTIONS
from extender.cluster.clock import VirtualClock
from extender.cluster.memory import MemoryCluster
from extender.cluster.serving import Answer, Request
from extender.core.conf import DEFAULT, load
from extender.explain import explain_page
from extender.loop import Loop
from extender.plugins import PLUGINS
from extender.testing.builders import node, podgroup, queue, task

GROUP = "train-0a1b2c3d-0000-4000-8000-00000000000a"
TRAIN = (
    "default/train waits: gang of 2: 1 fit, 1 lack a node; 0/1 nodes are unavailable: 1 Insufficient cpu. [InsufficientResources]"
)


def loop(*, started: bool = True) -> Loop:
    """A gang that waits, named as the job controller names it, and a pod that runs."""
    cluster = MemoryCluster(VirtualClock(1_000_000.0))
    cluster.load([queue(), node("n1").cpu(4).memory("8Gi"), podgroup("small"), task("small-0", "small").cpu(2)])
    cluster.load([podgroup(GROUP).members(2), *(task(f"train-{i}", GROUP).cpu(2) for i in range(2))])
    made = Loop(cluster, load(DEFAULT, PLUGINS, ACTIONS), cluster.clock)
    made.start()
    if started:
        made.step()
    return made


def ask(of: Loop, accept: str = "", **query: str) -> Answer:
    answer = explain_page(of)(Request("/explain", {name: [value] for name, value in query.items()}, accept))
    assert answer is not None
    return answer


ASKED = {
    "everything": ({}, 200, TRAIN),
    "by the job's name": ({"job": "default/train"}, 200, TRAIN),
    "without a namespace": ({"job": "train"}, 200, TRAIN),
    "by the group's name": ({"job": f"default/{GROUP}"}, 200, TRAIN),
    "by a pod's name": ({"pod": "default/train-1"}, 200, TRAIN),
    "one that runs": ({"job": "small"}, 200, "default/small does not wait: 1 of 1 pods have a node"),
    "a pod that runs": ({"pod": "small-0"}, 200, "default/small does not wait: 1 of 1 pods have a node"),
    "one that nobody knows": ({"job": "a/b"}, 404, "session 1 knows no job or PodGroup a/b"),
    "a pod that nobody knows": ({"pod": "b"}, 404, "session 1 knows no pod of ours default/b"),
    "nothing that could be a name": ({"job": "/"}, 404, "session 1 knows no job or PodGroup "),
}


@pytest.mark.parametrize(("query", "status", "says"), ASKED.values(), ids=ASKED)
def test_in_words(query: dict[str, str], status: int, says: str) -> None:
    answer = ask(loop(), **query)
    assert (answer.status, answer.body) == (status, f"{says}\n")


@pytest.mark.parametrize(("accept", "query"), [("", {"format": "json"}), ("application/json", {})])
def test_for_programs(accept: str, query: dict[str, str]) -> None:
    """With the numbers."""
    answer = ask(loop(), accept, job="train", **query)
    said = json.loads(answer.body)
    assert (answer.content_type, said["job"], said["reason"]) == ("application/json", "default/train", "InsufficientResources")
    assert (said["podgroup"], said["waits"], said["session"]) == (f"default/{GROUP}", True, 1)
    assert (said["numbers"]["fit"], said["numbers"]["causes"]) == (1, {"Insufficient cpu": 1})


def test_before_the_first_session() -> None:
    """A standby that does not lead says so."""
    answer = ask(loop(started=False))
    assert (answer.status, answer.body) == (503, "no session yet: lists are missing, or another one leads\n")
