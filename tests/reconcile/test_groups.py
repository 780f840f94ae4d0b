"""The groups that plain pods get."""

from __future__ import annotations

import pytest

from controller.podgroup import follow, grow
from extender.api.errors import Denied
from extender.api.grouping import min_member, new_group
from extender.api.meta import POD, POD_GROUP, QUEUE, REPLICA_SET, STATEFUL_SET, Json, Key
from extender.cluster.port import AdmissionRequest
from tests.reconcile.builders import key
from tests.reconcile.world import World

GROUP = "scheduling.k8s.io/group-name"


def pod(**notes: str) -> Json:
    container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default", "uid": "u", "annotations": notes},
        "spec": {"schedulerName": "volcano", "containers": [container]},
    }  # fmt: skip


def owner(**notes: str) -> Json:
    return {"metadata": {"name": "o", "annotations": notes}}


TOPOLOGIES = {
    "none": ({}, None),
    "mode in capitals": ({"volcano.sh/network-topology-mode": "Soft"}, {"mode": "soft"}),
    "no such mode": ({"volcano.sh/network-topology-mode": "odd"}, {"mode": "hard"}),
    "tier only": ({"volcano.sh/network-topology-highest-tier": "2"}, {"mode": "hard", "highestTierAllowed": 2}),
    "no tier": ({"volcano.sh/network-topology-highest-tier": "x"}, {"mode": "hard"}),
    "two signs": ({"volcano.sh/network-topology-highest-tier": "+-2"}, {"mode": "hard"}),
    "a digit that is none": ({"volcano.sh/network-topology-highest-tier": "²"}, {"mode": "hard"}),
}


@pytest.mark.parametrize(("notes", "want"), TOPOLOGIES.values(), ids=TOPOLOGIES)
def test_topology(notes: dict[str, str], want: Json | None) -> None:
    """From the annotations of the pod."""
    assert new_group(pod(**notes), [])["spec"].get("networkTopology") == want


MEMBERS = {"none says": ([owner()], 1), "a number": ([owner(**{"scheduling.volcano.sh/group-min-member": "3"})], 3),
           "no number": ([owner(**{"scheduling.volcano.sh/group-min-member": "x"})], 1),
           "below zero": ([owner(**{"scheduling.volcano.sh/group-min-member": "-1"})], 1),
           "more than a group can have": ([owner(**{"scheduling.volcano.sh/group-min-member": "2147483648"})], 1),
           "as only people write it": ([owner(**{"scheduling.volcano.sh/group-min-member": " 1_0 "})], 1)}  # fmt: skip


@pytest.mark.parametrize(("owners", "want"), MEMBERS.values(), ids=MEMBERS)
def test_minimum_member(owners: list[Json], want: int) -> None:
    """What the owner says, if it is a number of pods."""
    assert min_member(owners) == want


def test_the_minimum_resources_are_those_of_all_members() -> None:
    """Of one pod, times the members."""
    group = new_group(pod(), [owner(**{"scheduling.volcano.sh/group-min-member": "3"})])
    assert (group["spec"]["minResources"]["cpu"], group["spec"]["minResources"]["memory"]) == ("3", "3Gi")


def test_a_group_without_a_minimum_asks_for_nothing() -> None:
    assert new_group(pod(), [owner(**{"scheduling.volcano.sh/group-min-member": "0"})])["spec"]["minResources"] == {}


def test_annotations_are_inherited_and_the_pod_has_the_last_word() -> None:
    """Those of Volcano only; of owners the first."""
    owners = [owner(**{"volcano.sh/a": "1", "plain": "x"}), owner(**{"volcano.sh/a": "2", "volcano.sh/preemptable": "false"})]
    group = new_group(pod(**{"volcano.sh/preemptable": "true"}), owners)
    assert group["metadata"]["annotations"] == {"volcano.sh/a": "1", "volcano.sh/preemptable": "true"}


def test_what_others_wrote_to_a_group_stays() -> None:
    """The scheduler's annotations, say."""
    stored = {"metadata": {"annotations": {"theirs": "x"}}, "spec": {"minMember": 1, "subGroupPolicy": []}}
    assert follow(stored, {"metadata": {}, "spec": {"minMember": 2}}) == {"spec": {"minMember": 2}}


def replica_set(replicas: int, **notes: str) -> Json:
    template = {"metadata": {"labels": {"app": "rs"}}, "spec": pod()["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "rs"}}, "template": template}
    metadata = {"name": "rs", "namespace": "default", "annotations": notes}
    return {"apiVersion": REPLICA_SET.api_version, "kind": "ReplicaSet", "metadata": metadata, "spec": spec}


def test_a_workload_that_goes_to_none_and_back_keeps_a_group() -> None:
    """Old and new share the name; no late deletion hits the new one."""
    world = World()
    world.create(replica_set(1))
    world.settle()
    for replicas in (0, 1):
        world.cluster.patch(REPLICA_SET, key("rs"), {"spec": {"replicas": replicas}})
        world.workloads.reconcile()
    world.settle()
    (group,), (member,) = world.cluster.list(POD_GROUP).objects, world.cluster.list(POD).objects
    assert member["metadata"]["annotations"][GROUP] == group["metadata"]["name"]


def test_a_workload_without_replicas_has_no_group() -> None:
    """It goes with the pods."""
    world = World()
    world.create(replica_set(1))
    world.settle()
    world.cluster.patch(REPLICA_SET, key("rs"), {"spec": {"replicas": 0}})
    world.settle()
    assert world.cluster.list(POD_GROUP).objects == []


def test_the_group_follows_its_workload() -> None:
    """Although every pod has its group already."""
    world = World()
    world.create(replica_set(2))
    world.settle()
    world.cluster.patch(REPLICA_SET, key("rs"), {"metadata": {"annotations": {"scheduling.volcano.sh/group-min-member": "2"}}})
    world.settle()
    assert world.cluster.list(POD_GROUP).objects[0]["spec"]["minMember"] == 2


def test_the_group_follows_a_new_revision() -> None:
    """Of a StatefulSet, whose pods are replaced one by one under one owner."""
    world = World()
    world.create({**replica_set(1), "kind": STATEFUL_SET.name})
    world.settle()
    template = {"metadata": {"annotations": {"volcano.sh/preemptable": "true"}}}
    world.cluster.patch(STATEFUL_SET, key("rs"), {"spec": {"template": template}})
    world.settle()
    (group,) = world.cluster.list(POD_GROUP).objects
    assert group["metadata"].get("annotations") == {"volcano.sh/preemptable": "true"}


class Refusing:
    """An admission that refuses groups for as long as it is told to."""

    refuses = True

    def mutate(self, request: AdmissionRequest) -> Json | None:
        return request.object

    def validate(self, request: AdmissionRequest) -> None:
        if self.refuses and request.kind == POD_GROUP:
            raise Denied("not now")


def test_a_pod_gets_its_group_when_its_queue_opens() -> None:
    """However long ago it was given up."""
    world = World(admission=False)
    world.cluster.admission = admission = Refusing()
    bare = pod(**{"scheduling.volcano.sh/queue-name": "q"})
    world.create({**bare, "metadata": {"name": "p", "annotations": bare["metadata"]["annotations"]}})
    queue = {"apiVersion": QUEUE.api_version, "kind": "Queue", "metadata": {"name": "q"}, "spec": {"parent": "root"}}
    world.cluster.load([{**queue, "status": {"state": "Closed"}}])
    world.settle_until(world.clock.now() + 400)
    before = len(world.cluster.list(POD_GROUP).objects)
    admission.refuses = False
    world.cluster.patch(QUEUE, Key("", "q"), {"status": {"state": "Open"}}, subresource="status")
    world.settle()
    assert (before, len(world.cluster.list(POD_GROUP).objects)) == (0, 1)


GROWTHS = {
    "a larger pod": ({"cpu": "1", "pods": "1"}, {"cpu": "2", "pods": "1"}, {"cpu": "2"}),
    "another resource": ({"cpu": "1"}, {"cpu": "1", "nvidia.com/gpu": "1"}, {"nvidia.com/gpu": "1"}),
    "a smaller pod": ({"cpu": "2"}, {"cpu": "500m"}, None),
}


@pytest.mark.parametrize(("before", "asked", "want"), GROWTHS.values(), ids=GROWTHS)
def test_a_group_grows_with_its_pods(before: Json, asked: Json, want: Json | None) -> None:
    """It is not frozen at the size of the first."""
    found = grow({"spec": {"minResources": before}}, {"spec": {"minResources": asked}})
    assert found == ({"spec": {"minResources": want}} if want else {})


def test_pods_of_a_workflow_share_a_group() -> None:
    """Whatever its kind, and the later pod may ask for more."""
    world = World()
    workflow = {"apiVersion": "example.test/v1", "kind": "Workflow", "name": "wf", "uid": "wf-uid", "controller": True}
    for name, cpu in (("a", "1"), ("b", "4")):
        step = pod()
        step["metadata"] = {"name": name, "namespace": "default", "ownerReferences": [workflow]}
        step["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
        world.cluster.load([step])
        world.manager.step()
    (group,) = world.cluster.list(POD_GROUP).objects
    assert (group["metadata"]["name"], group["spec"]["minResources"]["cpu"]) == ("podgroup-wf-uid", "4")
