"""Deployments, StatefulSets, DaemonSets and Jobs on the embedded cluster: pods are made, scaled, replaced and counted."""

from __future__ import annotations

import pytest

from extender.api import labels
from extender.api.meta import (
    BATCH_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    NODE,
    POD,
    PVC,
    REPLICA_SET,
    RESOURCE_QUOTA,
    STATEFUL_SET,
    Json,
    Key,
    Kind,
    key_of,
)
from extender.cluster.clock import VirtualClock
from extender.cluster.kubelet import Kubelet
from extender.cluster.memory import MemoryCluster
from extender.cluster.workloads import Workloads
from extender.testing.builders import Built, node, pod


class World:
    """Three nodes, a kubelet, the controllers and the simplest of schedulers; `play` lets seconds pass."""

    def __init__(self, memory: MemoryCluster, clock: VirtualClock) -> None:
        self.memory, self.clock = memory, clock
        self.kubelet, self.workloads = Kubelet(memory, clock, graceful=False), Workloads(memory, clock)
        for name in ("n1", "n2", "n3"):
            memory.create(NODE, node(name))

    def create(self, kind: Kind, template: Json | None = None, **spec: object) -> Json:
        whole = {"selector": {"matchLabels": {"app": "x"}}, "template": template or a_template(), **spec}
        if kind == BATCH_JOB:
            del whole["selector"]
        return self.memory.create(kind, Built(kind, "w") | {"spec": whole})

    def patch(self, kind: Kind, **spec: object) -> None:
        self.memory.patch(kind, Key("default", "w"), {"spec": spec})

    def play(self, seconds: int = 1) -> None:
        for _ in range(seconds):
            self.workloads.reconcile()
            self.schedule()
            self.clock.sleep(1)
            self.kubelet.tick()
            self.memory.settle()
        self.workloads.reconcile()

    def schedule(self) -> None:
        for each in self.memory.list(POD, field_selector="spec.nodeName=").objects:
            self.memory.bind(key_of(each), wanted_node(each))

    def pods(self) -> list[Json]:
        return list(self.memory.list(POD).objects)

    def names(self) -> list[str]:
        return [each["metadata"]["name"] for each in self.pods()]

    def images(self) -> list[str]:
        return sorted(each["spec"]["containers"][0]["image"] for each in self.pods())

    def status(self, kind: Kind) -> Json:
        status: Json = self.memory.get(kind, Key("default", "w"))["status"]
        return status


def a_template(image: str = "example.test/app:1", policy: str = "Always", **annotations: str) -> Json:
    spec = {"restartPolicy": policy, "containers": [{"name": "main", "image": image}]}
    return {"metadata": {"labels": {"app": "x"}, "annotations": annotations}, "spec": spec}


def ends(seconds: str, code: str = "0") -> Json:
    return a_template(policy="Never", **{labels.RUN_SECONDS: seconds, labels.EXIT_CODE: code})


def wanted_node(each: Json) -> str:
    affinity = (each["spec"].get("affinity") or {}).get("nodeAffinity")
    if not affinity:
        return "n1"
    terms = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return str(terms[0]["matchFields"][0]["values"][0])


@pytest.fixture
def world(memory: MemoryCluster, clock: VirtualClock) -> World:
    return World(memory, clock)


# --- ReplicaSet -------------------------------------------------------------------------------------------------------


def test_a_replica_set_makes_its_pods(world: World) -> None:
    owner = world.create(REPLICA_SET, replicas=3)
    world.play()
    assert [each["metadata"]["ownerReferences"][0]["uid"] for each in world.pods()] == [owner["metadata"]["uid"]] * 3


def test_pods_are_named_after_their_owner(world: World) -> None:
    world.create(REPLICA_SET, replicas=1)
    world.play()
    assert len(world.names()[0]) == len("w-") + 5


def test_names_are_the_same_in_every_run(clock: VirtualClock) -> None:
    runs = []
    for _ in range(2):
        world = World(MemoryCluster(clock), clock)
        world.create(REPLICA_SET, replicas=3)
        world.play()
        runs.append(world.names())
    assert runs[0] == runs[1]


def test_a_replica_set_counts(world: World) -> None:
    world.create(REPLICA_SET, replicas=3)
    world.play(2)
    status = world.status(REPLICA_SET)
    assert (status["replicas"], status["readyReplicas"], status["availableReplicas"]) == (3, 3, 3)


def test_it_scales_down(world: World) -> None:
    world.create(REPLICA_SET, replicas=3)
    world.play(2)
    world.patch(REPLICA_SET, replicas=1)
    world.play(2)
    assert len(world.pods()) == 1


def test_pods_that_do_not_run_go_first(world: World) -> None:
    world.create(REPLICA_SET, replicas=1)
    world.play(2)
    running = world.names()
    world.patch(REPLICA_SET, replicas=3)
    world.workloads.reconcile()
    world.patch(REPLICA_SET, replicas=1)
    world.workloads.reconcile()
    assert world.names() == running


def test_a_lost_pod_is_replaced(world: World) -> None:
    world.create(REPLICA_SET, replicas=2)
    world.play(2)
    world.memory.delete(POD, Key("default", world.names()[0]))
    world.play(2)
    assert len(world.pods()) == 2


def test_pods_of_others_are_left_alone(world: World) -> None:
    world.memory.create(POD, pod("bare").labels(app="x"))
    world.create(REPLICA_SET, replicas=1)
    world.play(2)
    assert len(world.pods()) == 2


def test_what_a_quota_refuses_is_tried_again(world: World) -> None:
    world.memory.create(RESOURCE_QUOTA, Built(RESOURCE_QUOTA, "q") | {"spec": {"hard": {"pods": "1"}}})
    world.create(REPLICA_SET, replicas=2)
    world.play(2)
    before = len(world.pods())
    world.memory.patch(RESOURCE_QUOTA, Key("default", "q"), {"spec": {"hard": {"pods": "9"}}})
    world.play(1)
    assert (before, len(world.pods())) == (1, 2)


# --- Deployment -------------------------------------------------------------------------------------------------------


def test_a_deployment_makes_a_replica_set_of_its_template(world: World) -> None:
    world.create(DEPLOYMENT, replicas=2)
    world.play(2)
    rs = world.memory.list(REPLICA_SET).objects[0]
    mark = rs["metadata"]["labels"]["pod-template-hash"]
    assert (rs["metadata"]["name"], {each["metadata"]["labels"]["pod-template-hash"] for each in world.pods()}) == (
        f"w-{mark}", {mark},
    )  # fmt: skip


def test_annotations_are_passed_down(world: World) -> None:
    made = world.create(DEPLOYMENT, replicas=1)
    world.memory.patch(DEPLOYMENT, key_of(made), {"metadata": {"annotations": {labels.GROUP_MIN_MEMBER: "2"}}})
    world.play()
    assert world.memory.list(REPLICA_SET).objects[0]["metadata"]["annotations"][labels.GROUP_MIN_MEMBER] == "2"


def test_scaling_a_deployment(world: World) -> None:
    world.create(DEPLOYMENT, replicas=1)
    world.play(2)
    world.patch(DEPLOYMENT, replicas=4)
    world.play(2)
    assert world.status(DEPLOYMENT)["availableReplicas"] == 4


def test_a_rollout_replaces_every_pod(world: World) -> None:
    world.create(DEPLOYMENT, replicas=3)
    world.play(2)
    world.patch(DEPLOYMENT, template=a_template("example.test/app:2"))
    world.play(12)
    assert world.images() == ["example.test/app:2"] * 3


def test_a_rollout_never_has_fewer_available_than_it_may(world: World) -> None:
    world.create(DEPLOYMENT, replicas=4, strategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}})
    world.play(2)
    world.patch(DEPLOYMENT, template=a_template("example.test/app:2"))
    fewest = 4
    for _ in range(12):
        world.play()
        fewest = min(fewest, world.status(DEPLOYMENT)["availableReplicas"])
    assert (fewest, world.images()) == (3, ["example.test/app:2"] * 4)


def test_recreate_ends_the_old_pods_first(world: World) -> None:
    world.create(DEPLOYMENT, replicas=2, strategy={"type": "Recreate", "rollingUpdate": None})
    world.play(2)
    world.patch(DEPLOYMENT, template=a_template("example.test/app:2"))
    seen = set()
    for _ in range(6):
        world.play()
        seen.add(tuple(sorted(set(world.images()))))
    assert (("example.test/app:1", "example.test/app:2") in seen, world.images()) == (False, ["example.test/app:2"] * 2)


def test_a_deleted_deployment_takes_its_pods_along(world: World) -> None:
    made = world.create(DEPLOYMENT, replicas=2)
    world.play(2)
    world.memory.delete(DEPLOYMENT, key_of(made))
    world.play(2)
    assert (world.pods(), world.memory.list(REPLICA_SET).objects) == ([], [])


# --- StatefulSet ------------------------------------------------------------------------------------------------------


def test_a_stateful_set_starts_one_pod_after_the_other(world: World) -> None:
    world.create(STATEFUL_SET, replicas=3, serviceName="s")
    seen = []
    for _ in range(3):
        world.play()
        seen.append(world.names())
    assert seen[0] == ["w-0", "w-1"]
    assert seen[-1] == ["w-0", "w-1", "w-2"]


def test_a_pod_that_is_not_ready_holds_the_next(world: World) -> None:
    world.create(STATEFUL_SET, template=a_template(**{labels.HOLD: "true"}), replicas=3, serviceName="s")
    world.play(5)
    assert world.names() == ["w-0"]


def test_in_parallel_they_start_at_once(world: World) -> None:
    world.create(STATEFUL_SET, replicas=3, serviceName="s", podManagementPolicy="Parallel")
    world.workloads.reconcile()
    assert world.names() == ["w-0", "w-1", "w-2"]


def test_the_highest_number_goes_first(world: World) -> None:
    world.create(STATEFUL_SET, replicas=3, serviceName="s", podManagementPolicy="Parallel")
    world.play(2)
    world.patch(STATEFUL_SET, replicas=1)
    world.play(4)
    assert world.names() == ["w-0"]


def test_the_revision_is_on_pods_and_in_the_status(world: World) -> None:
    world.create(STATEFUL_SET, replicas=1, serviceName="s")
    world.play()
    mark = world.pods()[0]["metadata"]["labels"]["controller-revision-hash"]
    assert world.status(STATEFUL_SET)["updateRevision"] == mark


def test_an_update_replaces_the_pods_of_a_stateful_set(world: World) -> None:
    world.create(STATEFUL_SET, replicas=2, serviceName="s")
    world.play(4)
    world.patch(STATEFUL_SET, template=a_template("example.test/app:2"))
    world.play(8)
    assert (world.images(), world.names()) == (["example.test/app:2"] * 2, ["w-0", "w-1"])


def test_a_partition_keeps_the_lower_numbers(world: World) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    world.create(STATEFUL_SET, replicas=2, serviceName="s", updateStrategy=strategy)
    world.play(4)
    world.patch(STATEFUL_SET, template=a_template("example.test/app:2"))
    world.play(8)
    assert world.images() == ["example.test/app:1", "example.test/app:2"]


def test_each_pod_has_its_claims(world: World) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"metadata": {"name": "data"}, "spec": spec}
    world.create(STATEFUL_SET, replicas=2, serviceName="s", volumeClaimTemplates=[claim])
    world.play(3)
    assert [each["metadata"]["name"] for each in world.memory.list(PVC).objects] == ["data-w-0", "data-w-1"]


def test_a_failed_pod_of_a_stateful_set_is_made_again(world: World) -> None:
    world.create(STATEFUL_SET, replicas=1, serviceName="s")
    world.play(2)
    first = world.pods()[0]["metadata"]["uid"]
    world.memory.patch(POD, Key("default", "w-0"), {"status": {"phase": "Failed"}}, subresource="status")
    world.play(2)
    assert world.pods()[0]["metadata"]["uid"] != first


# --- DaemonSet --------------------------------------------------------------------------------------------------------


def test_a_daemon_set_has_a_pod_on_each_node(world: World) -> None:
    world.create(DAEMON_SET)
    world.play(2)
    assert sorted(each["spec"]["nodeName"] for each in world.pods()) == ["n1", "n2", "n3"]


def test_a_new_node_gets_one(world: World) -> None:
    world.create(DAEMON_SET)
    world.play(2)
    world.memory.create(NODE, node("n4"))
    world.play(2)
    assert world.status(DAEMON_SET)["numberReady"] == 4


def test_a_tainted_node_gets_none(world: World) -> None:
    world.memory.create(NODE, node("n4").taint("example.test/only", "me"))
    world.create(DAEMON_SET)
    world.play(2)
    assert world.status(DAEMON_SET)["desiredNumberScheduled"] == 3


def test_an_unschedulable_node_gets_one_all_the_same(world: World) -> None:
    world.memory.create(NODE, node("n4").taint("node.kubernetes.io/unschedulable"))
    world.create(DAEMON_SET)
    world.play(2)
    assert world.status(DAEMON_SET)["desiredNumberScheduled"] == 4


def test_a_node_selector_counts(world: World) -> None:
    template = a_template()
    template["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "n2"}
    world.create(DAEMON_SET, template)
    world.play(2)
    assert [each["spec"]["nodeName"] for each in world.pods()] == ["n2"]


def test_a_node_that_is_no_longer_wanted_loses_its_pod(world: World) -> None:
    world.create(DAEMON_SET)
    world.play(2)
    world.memory.patch(NODE, Key("", "n3"), {"spec": {"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]}})
    world.play(2)
    assert sorted(each["spec"]["nodeName"] for each in world.pods()) == ["n1", "n2"]


# --- Job --------------------------------------------------------------------------------------------------------------


def job_conditions(world: World) -> list[tuple[str, str]]:
    return [(each["type"], each["status"]) for each in world.status(BATCH_JOB).get("conditions", ())]


def test_a_job_runs_until_enough_have_succeeded(world: World) -> None:
    world.create(BATCH_JOB, ends("2"), completions=3, parallelism=2)
    world.play(8)
    assert (job_conditions(world), world.status(BATCH_JOB)["succeeded"]) == ([("Complete", "True")], 3)


def test_no_more_run_at_once_than_it_says(world: World) -> None:
    world.create(BATCH_JOB, ends("5"), completions=9, parallelism=2)
    world.play(2)
    assert (len(world.pods()), world.status(BATCH_JOB)["active"]) == (2, 2)


def test_a_failed_pod_is_replaced(world: World) -> None:
    world.create(BATCH_JOB, ends("1", "1"), backoffLimit=6)
    world.play(4)
    assert world.status(BATCH_JOB)["failed"] >= 1
    assert job_conditions(world) == []


def test_too_many_failures_fail_a_job(world: World) -> None:
    world.create(BATCH_JOB, ends("1", "1"), backoffLimit=1)
    world.play(8)
    assert (job_conditions(world), len(world.pods())) == ([("Failed", "True")], 2)


def test_indexed_pods_are_numbered(world: World) -> None:
    world.create(BATCH_JOB, ends("100"), completions=2, parallelism=2, completionMode="Indexed")
    world.play()
    assert [name[:4] for name in world.names()] == ["w-0-", "w-1-"]


def test_a_suspended_job_has_no_pods(world: World) -> None:
    world.create(BATCH_JOB, ends("100"), parallelism=2, completions=2)
    world.play(2)
    world.patch(BATCH_JOB, suspend=True)
    world.play(2)
    assert world.pods() == []


def test_the_pods_of_a_job_carry_its_name(world: World) -> None:
    world.create(BATCH_JOB, ends("100"))
    world.play()
    assert world.pods()[0]["metadata"]["labels"]["batch.kubernetes.io/job-name"] == "w"


# --- cost -------------------------------------------------------------------------------------------------------------


def test_a_quiet_cluster_needs_nothing(world: World) -> None:
    for kind in (DEPLOYMENT, STATEFUL_SET):
        world.create(kind, replicas=2)
    world.create(DAEMON_SET)
    world.play(6)
    assert (world.workloads.reconcile(), world.kubelet.tick(), world.memory.settle()) == (0, 0, 0)


def test_who_fell_behind_begins_again(clock: VirtualClock) -> None:
    """Far more happens between two looks than the cluster remembers."""
    world = World(MemoryCluster(clock, history=5), clock)
    world.memory.create(RESOURCE_QUOTA, Built(RESOURCE_QUOTA, "q") | {"spec": {"hard": {"pods": "200"}}})
    world.create(DEPLOYMENT, replicas=60)
    world.play(3)
    world.patch(DEPLOYMENT, replicas=20)
    world.play(3)
    used = world.memory.get(RESOURCE_QUOTA, Key("default", "q"))["status"]["used"]
    assert (len(world.pods()), world.status(DEPLOYMENT)["availableReplicas"], used) == (20, 20, {"pods": "20"})
