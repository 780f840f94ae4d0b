"""Contract: what an API server makes of pods. Created, bound, deleted, evicted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress

import pytest

from extender.api.errors import Conflict, Denied, Invalid, NotFound, TooManyRequests
from extender.api.meta import PDB, POD, PRIORITY_CLASS, Json, Key
from extender.cluster.memory import MemoryCluster
from extender.cluster.port import Cluster
from extender.testing.builders import PodBuilder, pod, priority_class
from tests.cluster.conftest import Becomes

# --- created ----------------------------------------------------------------------------------------------------------

DEFAULTS = {
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "terminationGracePeriodSeconds": 30,
    "priority": 0,
    "preemptionPolicy": "PreemptLowerPriority",
}


@pytest.mark.parametrize(("field", "want"), DEFAULTS.items(), ids=DEFAULTS)
def test_defaults(cluster: Cluster, ns: str, field: str, want: object) -> None:
    asked = pod("p", ns)
    asked["spec"].pop("schedulerName", None)
    assert cluster.create(POD, asked)["spec"][field] == want


def test_a_new_pod_is_pending(cluster: Cluster, ns: str) -> None:
    assert cluster.create(POD, pod("p", ns).phase("Running"))["status"]["phase"] == "Pending"


def test_requests_that_are_not_written_are_the_limits(cluster: Cluster, ns: str) -> None:
    asked = pod("p", ns).cpu(1)
    asked["spec"]["containers"][0]["resources"]["limits"] = {"cpu": "2", "memory": "1Gi"}
    made = cluster.create(POD, asked)
    assert made["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}


def test_label_keys_of_affinity_are_written_into_the_selectors(cluster: Cluster, ns: str) -> None:
    """With the labels that the pod has when it is created; keys that it has no label for say nothing."""
    selector = {"matchLabels": {"app": "web"}}
    term = {"topologyKey": "zone", "labelSelector": selector, "matchLabelKeys": ["hash", "none"], "mismatchLabelKeys": ["tier"]}
    affinity = {
        "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
        "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]},
    }
    asked = pod("p", ns).labels(app="web", hash="a1", tier="front").with_("spec.affinity", affinity)
    made = cluster.create(POD, asked)["spec"]["affinity"]
    required = made["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
    preferred = made["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"][0]["podAffinityTerm"]
    hashed = {"key": "hash", "operator": "In", "values": ["a1"]}
    tiered = {"key": "tier", "operator": "NotIn", "values": ["front"]}
    assert [each["labelSelector"] for each in (required, preferred)] == [{**selector, "matchExpressions": [hashed, tiered]}] * 2


@pytest.fixture
def in_class(cluster: Cluster, ns: str, becomes: Becomes) -> Iterator[Callable[[Json], None]]:
    """Makes a PriorityClass that goes with the test, and waits until admission, which hears of it later, counts it."""
    made: list[Key] = []

    def make(wanted: Json) -> None:
        made.append(Key("", cluster.create(PRIORITY_CLASS, wanted)["metadata"]["name"]))
        probe = pod("probe", ns)
        if not wanted.get("globalDefault"):
            probe = probe.with_("spec.priorityClassName", made[-1].name)
        becomes(lambda: priority_of(cluster, probe), wanted["value"])

    yield make
    for key in made:
        with suppress(NotFound):
            cluster.delete(PRIORITY_CLASS, key)


def priority_of(cluster: Cluster, asked: Json) -> int | None:
    """What it would get; None where it is refused."""
    try:
        return int(cluster.create(POD, asked, dry_run=True)["spec"]["priority"])
    except Denied:
        return None


def test_the_priority_is_that_of_the_class(cluster: Cluster, ns: str, in_class: Callable[[Json], None]) -> None:
    in_class(priority_class("of-the-class", 1000))
    made = cluster.create(POD, pod("p", ns).with_("spec.priorityClassName", "of-the-class"))
    assert made["spec"]["priority"] == 1000


def test_system_classes_are_there(cluster: Cluster, ns: str) -> None:
    made = cluster.create(POD, pod("p", ns).with_("spec.priorityClassName", "system-node-critical"))
    assert made["spec"]["priority"] == 2000001000


def test_the_global_default_is_for_pods_without_class(
    cluster: Cluster, ns: str, in_class: Callable[[Json], None], becomes: Becomes
) -> None:
    in_class(priority_class("for-all", 7, default=True))
    made = cluster.create(POD, pod("p", ns))
    assert (made["spec"]["priorityClassName"], made["spec"]["priority"]) == ("for-all", 7)
    cluster.delete(PRIORITY_CLASS, Key("", "for-all"))
    becomes(lambda: priority_of(cluster, pod("q", ns)), 0)  # nor do other tests get it


def test_an_unknown_class_is_refused(cluster: Cluster, ns: str) -> None:
    with pytest.raises(Denied, match='pods "p" is forbidden: no PriorityClass with name nowhere was found'):
        cluster.create(POD, pod("p", ns).with_("spec.priorityClassName", "nowhere"))


def test_a_priority_other_than_that_of_the_class_is_refused(cluster: Cluster, ns: str) -> None:
    with pytest.raises(Denied, match=r"the integer value of priority \(5\) must not be provided in pod spec"):
        cluster.create(POD, pod("p", ns).priority(5))


def no_containers(asked: PodBuilder) -> None:
    asked["spec"]["containers"] = []


def container(**fields: object) -> Callable[[PodBuilder], None]:
    def change(asked: PodBuilder) -> None:
        asked["spec"]["containers"][0].update(fields)

    return change


def annotated(name: str, value: str) -> Callable[[PodBuilder], None]:
    return lambda asked: asked["metadata"].setdefault("annotations", {}).update({name: value})


def twin(asked: PodBuilder) -> None:
    asked["spec"]["containers"] *= 2


FAULTS: dict[str, tuple[Callable[[PodBuilder], None], str]] = {
    "no containers": (no_containers, "spec.containers"),
    "container without name": (container(name=""), "spec.containers[0].name"),
    "container name in upper case": (container(name="Main"), "spec.containers[0].name"),
    "two containers of one name": (twin, "spec.containers[1].name"),
    "no image": (container(image=""), "spec.containers[0].image"),
    "white space around the image": (container(image="app "), "spec.containers[0].image"),
    "mirror without a node": (annotated("kubernetes.io/config.mirror", ""), "metadata.annotations"),
    "seccomp profile that is none": (annotated("seccomp.security.alpha.kubernetes.io/pod", "bad"), "metadata.annotations"),
    "cost of deletion that is no number": (annotated("controller.kubernetes.io/pod-deletion-cost", "x"), "metadata.annotations"),
    "negative": (container(resources={"requests": {"cpu": "-1"}}), "spec.containers[0].resources.requests.cpu"),
    "above its limit": (
        container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}), "spec.containers[0].resources.requests"
    ),
    "extended resource without limit": (
        container(resources={"requests": {"nvidia.com/gpu": "1"}}), "spec.containers[0].resources.limits"
    ),
    "fraction of an extended resource": (
        container(resources={"limits": {"nvidia.com/gpu": "500m"}}), "spec.containers[0].resources.limits.nvidia.com/gpu"
    ),
    "unknown restart policy": (lambda asked: asked["spec"].update(restartPolicy="Sometimes"), "spec.restartPolicy"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "path"), FAULTS.values(), ids=FAULTS)
def test_a_faulty_pod_is_refused_with_its_field(
    cluster: Cluster, ns: str, change: Callable[[PodBuilder], None], path: str
) -> None:
    asked = pod("p", ns)
    change(asked)
    with pytest.raises(Invalid) as refused:
        cluster.create(POD, asked)
    assert any(fault.path.replace("[nvidia.com/gpu]", ".nvidia.com/gpu").replace("[cpu]", ".cpu").startswith(path)
               for fault in refused.value.faults)  # fmt: skip


def test_every_fault_is_named(cluster: Cluster, ns: str) -> None:
    asked = pod("p", ns)
    asked["spec"]["containers"] = [{"name": "A", "image": ""}, {"name": "", "image": "x"}]
    with pytest.raises(Invalid) as refused:
        cluster.create(POD, asked)
    assert len(refused.value.faults) == 3


# --- changed ----------------------------------------------------------------------------------------------------------


def test_a_spec_stays_as_it_is(cluster: Cluster, ns: str) -> None:
    cluster.create(POD, pod("p", ns))
    with pytest.raises(Invalid, match="pod updates may not change fields other than"):
        cluster.patch(POD, Key(ns, "p"), {"spec": {"schedulerName": "another"}})


def test_a_gate_may_be_taken_away(cluster: Cluster, ns: str) -> None:
    cluster.create(POD, pod("p", ns).gated())
    patched = cluster.json_patch(POD, Key(ns, "p"), [{"op": "remove", "path": "/spec/schedulingGates/0"}])
    assert not patched["spec"].get("schedulingGates")


def test_a_gate_cannot_be_added(cluster: Cluster, ns: str) -> None:
    cluster.create(POD, pod("p", ns))
    with pytest.raises(Invalid) as refused:
        cluster.patch(POD, Key(ns, "p"), {"spec": {"schedulingGates": [{"name": "example.test/late"}]}})
    assert refused.value.faults[0].path == "spec.schedulingGates[0].name"


def test_an_update_keeps_the_priority(cluster: Cluster, ns: str, in_class: Callable[[Json], None]) -> None:
    """The class may be gone by then."""
    in_class(priority_class("short-lived", 9))
    cluster.create(POD, pod("p", ns).with_("spec.priorityClassName", "short-lived"))
    cluster.delete(PRIORITY_CLASS, Key("", "short-lived"))
    assert cluster.patch(POD, Key(ns, "p"), {"metadata": {"labels": {"a": "b"}}})["spec"]["priority"] == 9


# --- bound ------------------------------------------------------------------------------------------------------------


def test_a_binding_gives_a_node(cluster: Cluster, ns: str) -> None:
    cluster.create(POD, pod("p", ns))
    cluster.bind(Key(ns, "p"), "n1")
    assert cluster.get(POD, Key(ns, "p"))["spec"]["nodeName"] == "n1"


def test_a_binding_says_that_the_pod_is_scheduled(cluster: Cluster, ns: str) -> None:
    cluster.create(POD, pod("p", ns))
    cluster.bind(Key(ns, "p"), "n1")
    conditions = {each["type"]: each["status"] for each in cluster.get(POD, Key(ns, "p"))["status"]["conditions"]}
    assert conditions["PodScheduled"] == "True"


def test_a_binding_may_bring_annotations(cluster: Cluster, ns: str) -> None:
    cluster.create(POD, pod("p", ns).annotate("example.test/old", "1"))
    cluster.bind(Key(ns, "p"), "n1", annotations={"example.test/new": "2"})
    annotations = cluster.get(POD, Key(ns, "p"))["metadata"]["annotations"]
    assert annotations == {"example.test/old": "1", "example.test/new": "2"}


def test_a_second_binding_conflicts(cluster: Cluster, ns: str) -> None:
    cluster.create(POD, pod("p", ns))
    cluster.bind(Key(ns, "p"), "n1")
    with pytest.raises(Conflict, match='pod p is already assigned to node "n1"'):
        cluster.bind(Key(ns, "p"), "n2")


def test_a_namesake_is_not_bound(cluster: Cluster, ns: str) -> None:
    cluster.create(POD, pod("p", ns))
    with pytest.raises(Conflict, match="Precondition failed: UID in precondition"):
        cluster.bind(Key(ns, "p"), "n1", uid="11111111-2222-4333-8444-555555555555")


def test_a_gated_pod_is_not_bound(cluster: Cluster, ns: str) -> None:
    cluster.create(POD, pod("p", ns).gated())
    with pytest.raises(Conflict, match=r"pod p has non-empty .spec.schedulingGates"):
        cluster.bind(Key(ns, "p"), "n1")


def test_a_pod_that_is_being_deleted_is_not_bound(cluster: Cluster, ns: str) -> None:
    cluster.create(POD, pod("p", ns).with_("metadata.finalizers", ["example.test/hold"]))
    cluster.delete(POD, Key(ns, "p"))
    with pytest.raises(Conflict, match="pod p is being deleted, cannot be assigned to a host"):
        cluster.bind(Key(ns, "p"), "n1")


def test_a_pod_that_is_not_there_is_not_bound(cluster: Cluster, ns: str) -> None:
    with pytest.raises(NotFound, match='pods "p" not found'):
        cluster.bind(Key(ns, "p"), "n1")


# --- deleted ----------------------------------------------------------------------------------------------------------


def test_a_pod_without_node_goes_at_once(cluster: Cluster, ns: str) -> None:
    cluster.create(POD, pod("p", ns))
    cluster.delete(POD, Key(ns, "p"))
    with pytest.raises(NotFound):
        cluster.get(POD, Key(ns, "p"))


def test_a_bound_pod_is_left_to_its_kubelet(cluster: Cluster, ns: str) -> None:
    cluster.create(POD, pod("p", ns).with_("spec.terminationGracePeriodSeconds", 9))
    cluster.bind(Key(ns, "p"), "n1")
    cluster.delete(POD, Key(ns, "p"))
    assert cluster.get(POD, Key(ns, "p"))["metadata"]["deletionGracePeriodSeconds"] == 9


def test_the_grace_period_may_be_given(cluster: Cluster, ns: str) -> None:
    cluster.create(POD, pod("p", ns))
    cluster.bind(Key(ns, "p"), "n1")
    cluster.delete(POD, Key(ns, "p"), grace_seconds=2)
    assert cluster.get(POD, Key(ns, "p"))["metadata"]["deletionGracePeriodSeconds"] == 2


def test_a_grace_period_of_zero_ends_it_at_once(cluster: Cluster, ns: str) -> None:
    cluster.create(POD, pod("p", ns))
    cluster.bind(Key(ns, "p"), "n1")
    cluster.delete(POD, Key(ns, "p"))
    alone = isinstance(cluster, MemoryCluster)  # controllers of a real cluster may have ended it by now
    with nullcontext() if alone else suppress(NotFound):
        cluster.delete(POD, Key(ns, "p"), grace_seconds=0)
    with pytest.raises(NotFound):
        cluster.get(POD, Key(ns, "p"))


def test_a_second_deletion_cannot_give_more_time(cluster: Cluster, ns: str) -> None:
    cluster.create(POD, pod("p", ns))
    cluster.bind(Key(ns, "p"), "n1")
    cluster.delete(POD, Key(ns, "p"), grace_seconds=5)
    cluster.delete(POD, Key(ns, "p"), grace_seconds=60)
    assert cluster.get(POD, Key(ns, "p"))["metadata"]["deletionGracePeriodSeconds"] == 5


def test_a_pod_that_has_ended_goes_at_once(cluster: Cluster, ns: str) -> None:
    cluster.create(POD, pod("p", ns))
    cluster.bind(Key(ns, "p"), "n1")
    cluster.patch(POD, Key(ns, "p"), {"status": {"phase": "Succeeded"}}, subresource="status")
    cluster.delete(POD, Key(ns, "p"))
    with pytest.raises(NotFound):
        cluster.get(POD, Key(ns, "p"))


# --- evicted ----------------------------------------------------------------------------------------------------------


def run(cluster: Cluster, ns: str, name: str) -> None:
    cluster.create(POD, pod(name, ns).labels(app="x"))
    cluster.bind(Key(ns, name), "n1")
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    cluster.patch(POD, Key(ns, name), {"status": status}, subresource="status")


def budget(ns: str, **spec: object) -> Json:
    selector = {"matchLabels": {"app": "x"}}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b", "namespace": ns},
            "spec": {"selector": selector, **spec}}  # fmt: skip


def spared(cluster: Cluster, ns: str) -> list[int]:
    """What the status of the budget says: pods expected and healthy, those that have to be, those that may go."""
    status = cluster.get(PDB, Key(ns, "b")).get("status") or {}
    return [status.get(name, 0) for name in ("expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed")]


def test_an_eviction_deletes(cluster: Cluster, ns: str) -> None:
    run(cluster, ns, "p")
    cluster.evict(Key(ns, "p"))
    assert "deletionTimestamp" in cluster.get(POD, Key(ns, "p"))["metadata"]


def test_a_budget_forbids_an_eviction(cluster: Cluster, ns: str, becomes: Becomes) -> None:
    cluster.create(PDB, budget(ns, minAvailable=1))
    run(cluster, ns, "p")
    becomes(lambda: spared(cluster, ns), [1, 1, 1, 0])
    with pytest.raises(TooManyRequests, match="Cannot evict pod as it would violate the pod's disruption budget"):
        cluster.evict(Key(ns, "p"))


def test_a_budget_allows_as_many_as_it_can_spare(cluster: Cluster, ns: str, becomes: Becomes) -> None:
    cluster.create(PDB, budget(ns, minAvailable=1))
    run(cluster, ns, "p")
    run(cluster, ns, "q")
    becomes(lambda: spared(cluster, ns), [2, 2, 1, 1])
    cluster.evict(Key(ns, "p"))
    with pytest.raises(TooManyRequests):
        cluster.evict(Key(ns, "q"))


def test_a_pending_pod_may_always_be_evicted(cluster: Cluster, ns: str, becomes: Becomes) -> None:
    cluster.create(PDB, budget(ns, minAvailable=1))
    cluster.create(POD, pod("p", ns).labels(app="x"))
    becomes(lambda: spared(cluster, ns), [1, 0, 1, 0])
    cluster.evict(Key(ns, "p"))
    with pytest.raises(NotFound):
        cluster.get(POD, Key(ns, "p"))


def test_a_budget_does_not_forbid_a_deletion(cluster: Cluster, ns: str, becomes: Becomes) -> None:
    cluster.create(PDB, budget(ns, minAvailable=1))
    run(cluster, ns, "p")
    becomes(lambda: spared(cluster, ns), [1, 1, 1, 0])
    cluster.delete(POD, Key(ns, "p"))
    assert "deletionTimestamp" in cluster.get(POD, Key(ns, "p"))["metadata"]


def test_the_status_of_a_budget(cluster: Cluster, ns: str, becomes: Becomes) -> None:
    cluster.create(PDB, budget(ns, minAvailable=1))
    run(cluster, ns, "p")
    run(cluster, ns, "q")
    cluster.create(POD, pod("pending", ns).labels(app="x"))
    becomes(lambda: spared(cluster, ns), [3, 2, 1, 1])
