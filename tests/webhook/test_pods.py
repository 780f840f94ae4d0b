"""Pods in a namespace that asks for our scheduler, and the group they join."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from extender.api.errors import NotFound, Unavailable
from extender.api.grouping import new_group
from extender.api.labels import GROUP_NAME, SCHEDULE
from extender.api.meta import POD, POD_GROUP, Json, Key, Kind
from extender.api.operations import Create
from extender.cluster.clock import VirtualClock
from extender.cluster.memory import MemoryCluster
from extender.cluster.patches import json_patch
from tests.webhook.reviews import plain_pod, review
from webhook.errands import REMEMBER_SECONDS, WAITING, Errands

Ask = Callable[..., Json]

REPLICAS = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u-web", "controller": True,
            "blockOwnerDeletion": True}  # fmt: skip
GROUP = "podgroup-u-web"


@pytest.fixture
def workload(memory: MemoryCluster) -> Json:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "example.test/app:1"}]}}
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    meta = {"name": "web", "namespace": "batch", "uid": "u-web",
            "annotations": {"scheduling.volcano.sh/group-min-member": "3", "volcano.sh/sla-waiting-time": "1h"}}  # fmt: skip
    owner: Json = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta, "spec": spec}
    memory.load([owner])
    return owner


def mutated(ask: Ask, pod: Json, **request: Any) -> Json:
    response = ask("/pods/mutate", review(pod, POD, **{"namespace": "batch", **request}))
    assert response["allowed"]
    steps = json.loads(base64.b64decode(response["patch"])) if "patch" in response else []
    return json_patch(pod, steps)


ASKS = {
    "its namespace asks": (plain_pod(), "volcano"),
    "it asks itself": (plain_pod("default", labels={SCHEDULE: "true"}), "volcano"),
    "it does not want what its namespace asks for": (plain_pod(labels={SCHEDULE: "false"}), "default-scheduler"),
    "nobody asks": (plain_pod("default"), "default-scheduler"),
    "nobody knows its namespace": (plain_pod("nowhere"), "default-scheduler"),
}


@pytest.mark.parametrize(("pod", "scheduler"), ASKS.values(), ids=ASKS)
def test_who_gets_our_scheduler(ask: Ask, pod: Json, scheduler: str) -> None:
    after = mutated(ask, pod, namespace=pod["metadata"]["namespace"])
    assert after["spec"]["schedulerName"] == scheduler


def test_a_pod_of_a_third_scheduler_is_left_alone(ask: Ask) -> None:
    pod = plain_pod(owner=REPLICAS)
    pod["spec"]["schedulerName"] = "another"
    assert mutated(ask, pod) == pod


def test_a_pod_that_has_its_node_is_left_alone(ask: Ask) -> None:
    """Static pods, and those of who places them by hand."""
    pod = plain_pod()
    pod["spec"]["nodeName"] = "n1"
    assert mutated(ask, pod) == pod


def test_a_pod_of_a_workload_joins_its_group(ask: Ask, workload: Json, errands: Errands, memory: MemoryCluster) -> None:
    """The very group that the controller would make: with what the owner says, owned by the owner."""
    after = mutated(ask, plain_pod(owner=REPLICAS))
    assert after["metadata"]["annotations"][GROUP_NAME] == GROUP
    errands.run_one()
    made, wanted = memory.get(POD_GROUP, Key("batch", GROUP)), new_group(after, [workload])
    assert made["spec"].items() >= wanted["spec"].items()
    assert made["spec"]["minMember"] == 3
    assert made["metadata"]["annotations"] == wanted["metadata"]["annotations"]
    assert [owner["uid"] for owner in made["metadata"]["ownerReferences"]] == ["u-web"]


def test_a_pod_without_an_owner_has_no_group_yet(ask: Ask, errands: Errands, outcomes: list[str]) -> None:
    """Its uid, after which the group is called, comes later: the controller makes it."""
    assert GROUP_NAME not in mutated(ask, plain_pod())["metadata"].get("annotations", {})
    errands.start()
    errands.close()
    assert outcomes == []


@pytest.mark.usefixtures("workload")
def test_asking_again_changes_nothing(ask: Ask) -> None:
    after = mutated(ask, plain_pod(owner=REPLICAS))
    assert mutated(ask, after) == after


def test_a_group_that_the_pod_names_stays(ask: Ask) -> None:
    after = mutated(ask, plain_pod(owner=REPLICAS, annotations={GROUP_NAME: "mine"}))
    assert after["metadata"]["annotations"] == {GROUP_NAME: "mine"}


@pytest.mark.usefixtures("workload")
def test_a_dry_run_makes_nothing(ask: Ask, errands: Errands, memory: MemoryCluster) -> None:
    after = mutated(ask, plain_pod(owner=REPLICAS), dryRun=True)
    assert after["metadata"]["annotations"][GROUP_NAME] == GROUP
    errands.start()
    errands.close()
    with pytest.raises(NotFound):
        memory.get(POD_GROUP, Key("batch", GROUP))


@pytest.mark.usefixtures("workload")
def test_many_pods_make_one_group(ask: Ask, errands: Errands, outcomes: list[str], clock: VirtualClock) -> None:
    """They come together; later it is looked at again, for it may have been deleted."""
    for _ in range(5):
        mutated(ask, plain_pod(owner=REPLICAS))
    errands.run_one()
    clock.sleep(REMEMBER_SECONDS + 1)
    mutated(ask, plain_pod(owner=REPLICAS))
    errands.run_one()
    assert outcomes == ["made", "there"]


class Refusing(MemoryCluster):
    def create(self, kind: Kind, obj: Json, *, dry_run: bool = False) -> Json:
        del obj, dry_run
        raise Unavailable(f"no {kind} today")


def test_a_write_that_fails_is_left_to_the_controllers(clock: VirtualClock, caplog: pytest.LogCaptureFixture) -> None:
    """And is tried with the next pod, at once."""
    outcomes: list[str] = []
    errands = Errands(Refusing(clock), clock, outcomes.append)
    group = {"metadata": {"namespace": "batch", "name": GROUP}}
    for _ in range(2):
        errands.take([Create(POD_GROUP, group)])
        errands.run_one()
    assert outcomes == ["failed", "failed"]
    assert "left to the controllers" in caplog.text


def test_too_many_errands_are_left_to_the_controllers(memory: MemoryCluster, clock: VirtualClock) -> None:
    outcomes: list[str] = []
    errands = Errands(memory, clock, outcomes.append)
    errands.take(Create(POD_GROUP, {"metadata": {"namespace": "batch", "name": f"g{n}"}}) for n in range(WAITING + 2))
    assert outcomes == ["left", "left"]
