"""Operations become writes, in their order; what fails is told and the rest goes on."""

from __future__ import annotations

import pytest

from extender.api.errors import AlreadyExists, ClusterError, Conflict, NotFound
from extender.api.meta import EVENT, POD, POD_GROUP, QUEUE, Json, Key
from extender.api.operations import Bind, Create, Delete, Emit, Evict, Operation, Patch, PatchStatus
from extender.cluster.apply import Report, apply
from extender.cluster.clock import VirtualClock
from extender.cluster.events import EventRecorder
from extender.cluster.memory import MemoryCluster
from extender.testing.builders import pod, podgroup, queue

P = Key("default", "p")


class Applying:
    def __init__(self, memory: MemoryCluster, clock: VirtualClock) -> None:
        self.memory, self.clock = memory, clock
        self.events = EventRecorder(clock, "volcano")
        self.failed: list[tuple[Operation, ClusterError]] = []

    def __call__(self, *operations: Operation) -> Report:
        return apply(self.memory, operations, clock=self.clock, events=self.events,
                     on_failure=lambda operation, error: self.failed.append((operation, error)))  # fmt: skip

    def pod(self) -> Json:
        return self.memory.get(POD, P)

    def conditions(self) -> dict[str, Json]:
        return {each["type"]: each for each in self.pod()["status"].get("conditions", ())}

    def said(self) -> list[tuple[str, str, str, int]]:
        return [(e["type"], e["reason"], e["message"], e["count"]) for e in self.memory.list(EVENT).objects]


@pytest.fixture
def applying(memory: MemoryCluster, clock: VirtualClock) -> Applying:
    memory.create(POD, pod("p").scheduler("volcano"))
    return Applying(memory, clock)


# --- bind -------------------------------------------------------------------------------------------------------------


def test_bind(applying: Applying) -> None:
    applying(Bind(P, "n1", annotations={"example.test/a": "b"}))
    bound = applying.pod()
    assert (bound["spec"]["nodeName"], bound["metadata"]["annotations"]) == ("n1", {"example.test/a": "b"})


def test_a_binding_is_announced(applying: Applying) -> None:
    applying(Bind(P, "n1"))
    assert applying.said() == [("Normal", "Scheduled", "Successfully assigned default/p to n1", 1)]


def test_a_failed_binding_is_told(applying: Applying) -> None:
    bind = Bind(P, "n1", uid="another")
    applying(bind)
    assert [(operation, type(error)) for operation, error in applying.failed] == [(bind, Conflict)]


def test_a_failed_binding_is_a_condition_of_the_pod(applying: Applying) -> None:
    applying.memory.patch(POD, P, {"metadata": {"labels": {"a": "b"}}})
    gated = applying.memory.create(POD, pod("gated").gated())
    applying(Bind(Key("default", "gated"), "n1", uid=gated["metadata"]["uid"]))
    conditions = applying.memory.get(POD, Key("default", "gated"))["status"]["conditions"]
    assert [(each["reason"], each["message"].partition(":")[0]) for each in conditions] == [
        ("SchedulerError", "failed to bind to node n1"),
    ]


def test_a_pod_that_is_bound_already_keeps_its_condition(applying: Applying) -> None:
    applying(Bind(P, "n1"), Bind(P, "n2"))
    assert applying.conditions()["PodScheduled"]["status"] == "True"


# --- evict ------------------------------------------------------------------------------------------------------------


def test_evict_deletes(applying: Applying) -> None:
    applying(Bind(P, "n1"), Evict(P, "preempt"))
    assert "deletionTimestamp" in applying.pod()["metadata"]


def test_an_evicted_pod_says_why(applying: Applying) -> None:
    applying(Bind(P, "n1"), Evict(P, "preempt"))
    seen = [(c["status"], c["reason"], c["message"]) for name, c in applying.conditions().items() if name != "PodScheduled"]
    assert seen == [
        ("False", "Evict", "Pod is evicted, because of preempt"),
        ("True", "PreemptionByScheduler", "volcano: preempting to accommodate a higher priority pod"),
    ]


def test_an_eviction_is_announced(applying: Applying) -> None:
    applying(Bind(P, "n1"), Evict(P, "reclaim"))
    assert ("Warning", "Evict", "Pod is evicted, because of reclaim", 1) in applying.said()


def test_it_is_deleted_also_where_the_conditions_stand_already(applying: Applying) -> None:
    applying(Bind(P, "n1"), Evict(P, "preempt"))
    conditions = applying.pod()["status"]["conditions"]
    applying.memory.delete(POD, P, grace_seconds=0)
    applying.memory.create(POD, pod("p").scheduler("volcano"))
    applying(Bind(P, "n1"))
    applying.memory.patch(POD, P, {"status": {"conditions": conditions}}, subresource="status")
    applying(Evict(P, "preempt"))
    assert "deletionTimestamp" in applying.pod()["metadata"]


def test_a_namesake_is_not_evicted(applying: Applying) -> None:
    applying(Bind(P, "n1"), Evict(P, "preempt", uid="another"))
    assert "deletionTimestamp" not in applying.pod()["metadata"]


# --- the others -------------------------------------------------------------------------------------------------------


def test_create_tells_what_exists(applying: Applying) -> None:
    applying(Create(POD_GROUP, podgroup("g")), Create(POD_GROUP, podgroup("g")))
    assert [type(error) for _, error in applying.failed] == [AlreadyExists]


def test_patch_with_a_precondition(applying: Applying) -> None:
    applying(Patch(POD, P, {"metadata": {"labels": {"a": "b"}}}, resource_version="1"))
    assert [type(error) for _, error in applying.failed] == [Conflict]


def test_the_status_of_a_queue_is_a_subresource(applying: Applying) -> None:
    applying(Create(QUEUE, queue("q")), PatchStatus(QUEUE, Key("", "q"), {"status": {"state": "Open"}}))
    assert applying.memory.get(QUEUE, Key("", "q"))["status"] == {"state": "Open"}


def test_that_of_a_podgroup_is_not(applying: Applying) -> None:
    key = Key("default", "g")
    applying(Create(POD_GROUP, podgroup("g")), PatchStatus(POD_GROUP, key, {"status": {"phase": "Running"}}))
    assert applying.memory.get(POD_GROUP, key)["status"] == {"phase": "Running"}


def test_deleting_what_is_gone_is_fine(applying: Applying) -> None:
    report = applying(Delete(POD, Key("default", "nobody")))
    assert (report.done, report.failures) == (1, ())


def test_the_rest_goes_on(applying: Applying) -> None:
    gone = PatchStatus(POD, Key("default", "nobody"), {"status": {}})
    report = applying(gone, Bind(P, "n1"))
    assert (report.done, [(o, type(e)) for o, e in report.failures]) == (1, [(gone, NotFound)])


# --- events -----------------------------------------------------------------------------------------------------------

WAITS = Emit(POD, P, "Warning", "FailedScheduling", "no node fits")


def test_an_event_names_what_it_is_about(applying: Applying) -> None:
    applying(WAITS)
    regarding = applying.memory.list(EVENT).objects[0]["involvedObject"]
    assert regarding == {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "p"}


def test_repeats_are_counted_in_one_object(applying: Applying) -> None:
    applying(WAITS)
    for _ in range(3):
        applying.clock.sleep(400)
        applying(WAITS)
    assert applying.said() == [("Warning", "FailedScheduling", "no node fits", 4)]


def test_repeats_are_no_storm(applying: Applying) -> None:
    version = int(applying.memory.list(EVENT).resource_version)
    for _ in range(1000):
        applying(WAITS)
        applying.clock.sleep(1)
    assert int(applying.memory.list(EVENT).resource_version) - version < 15


def test_another_message_is_another_event(applying: Applying) -> None:
    applying(WAITS, Emit(POD, P, "Warning", "FailedScheduling", "queue is full"))
    assert len(applying.said()) == 2


def test_after_a_restart_the_count_goes_on(applying: Applying) -> None:
    applying(WAITS)
    applying.events = EventRecorder(applying.clock, "volcano")
    applying(WAITS)
    assert [count for *_, count in applying.said()] == [2]


def test_an_event_about_a_cluster_object_is_in_the_default_namespace(applying: Applying) -> None:
    applying(Emit(QUEUE, Key("", "q"), "Normal", "Opened", "open"))
    assert applying.memory.list(EVENT).objects[0]["metadata"]["namespace"] == "default"
