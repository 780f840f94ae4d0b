"""The embedded cluster asks admission as an API server asks its webhooks."""

from __future__ import annotations

import pytest

from extender.api.errors import AlreadyExists, Denied, Invalid, NotFound
from extender.api.meta import CONFIG_MAP, POD, QUEUE, Json, Key, Kind
from extender.cluster.clock import VirtualClock
from extender.cluster.memory import MemoryCluster
from extender.cluster.port import AdmissionRequest
from extender.testing.builders import Built, pod, queue


class Recorder:
    """Notes what it is asked; may change one field of what it sees, and refuse by name."""

    def __init__(self, kind: Kind, *, sets: tuple[str, object] | None = None, refuses: str = "") -> None:
        self.kind = kind
        self.sets = sets
        self.refuses = refuses
        self.asked: list[tuple[str, AdmissionRequest]] = []

    def mutate(self, request: AdmissionRequest) -> Json | None:
        if request.kind != self.kind:
            return None
        self.asked.append(("mutate", request))
        if self.sets is None or request.object is None:
            return None
        name, value = self.sets
        return {**request.object, "spec": {**request.object["spec"], name: value}}

    def validate(self, request: AdmissionRequest) -> None:
        if request.kind != self.kind:
            return
        self.asked.append(("validate", request))
        if request.key.name == self.refuses:
            raise Denied(f"{request.key.name} is not wanted")

    def calls(self) -> list[tuple[str, str]]:
        return [(step, request.operation) for step, request in self.asked]


def test_a_creation_is_mutated_then_validated(memory: MemoryCluster) -> None:
    memory.admission = asked = Recorder(QUEUE)
    memory.create(QUEUE, queue("q"))
    assert asked.calls() == [("mutate", "CREATE"), ("validate", "CREATE")]


def test_mutation_sees_the_defaults_of_the_schema(memory: MemoryCluster) -> None:
    memory.admission = asked = Recorder(QUEUE)
    memory.create(QUEUE, Built(QUEUE, "q") | {"spec": {}})
    assert (asked.asked[0][1].object or {})["spec"]["weight"] == 1


def test_what_mutation_answers_is_stored(memory: MemoryCluster) -> None:
    memory.admission = Recorder(QUEUE, sets=("weight", 7))
    memory.create(QUEUE, queue("q"))
    assert memory.get(QUEUE, Key("", "q"))["spec"]["weight"] == 7


def test_what_mutation_answers_is_checked_by_the_schema(memory: MemoryCluster) -> None:
    memory.admission = Recorder(QUEUE, sets=("weight", 0))
    with pytest.raises(Invalid):
        memory.create(QUEUE, queue("q"))


def test_what_mutation_mends_is_no_fault(memory: MemoryCluster) -> None:
    """The schema is checked after mutation: weight 0 never reaches it."""
    memory.admission = Recorder(QUEUE, sets=("weight", 1))
    assert memory.create(QUEUE, queue("q").weight(0))["spec"]["weight"] == 1


def test_what_mutation_adds_unasked_is_dropped(memory: MemoryCluster) -> None:
    memory.admission = Recorder(QUEUE, sets=("colour", "red"))
    assert "colour" not in memory.create(QUEUE, queue("q"))["spec"]


def test_the_schema_is_checked_before_validation(memory: MemoryCluster) -> None:
    memory.admission = asked = Recorder(QUEUE)
    with pytest.raises(Invalid):
        memory.create(QUEUE, queue("q").weight(0))
    assert asked.calls() == [("mutate", "CREATE")]


def test_what_is_refused_is_not_stored(memory: MemoryCluster) -> None:
    memory.admission = Recorder(QUEUE, refuses="q")
    with pytest.raises(Denied, match="q is not wanted"):
        memory.create(QUEUE, queue("q"))
    with pytest.raises(NotFound):
        memory.get(QUEUE, Key("", "q"))


def test_an_update_shows_the_old_object(memory: MemoryCluster) -> None:
    old = memory.create(QUEUE, queue("q"))
    memory.admission = asked = Recorder(QUEUE)
    memory.patch(QUEUE, Key("", "q"), {"spec": {"weight": 2}})
    assert [request.old for _, request in asked.asked] == [old, old]


def test_a_deletion_is_validated_with_what_goes(memory: MemoryCluster) -> None:
    old = memory.create(QUEUE, queue("q"))
    memory.admission = asked = Recorder(QUEUE)
    memory.delete(QUEUE, Key("", "q"))
    assert [(step, r.operation, r.object, r.old) for step, r in asked.asked] == [("validate", "DELETE", None, old)]


def test_a_refused_deletion_keeps_the_object(memory: MemoryCluster) -> None:
    old = memory.create(QUEUE, queue("q"))
    memory.admission = Recorder(QUEUE, refuses="q")
    with pytest.raises(Denied):
        memory.delete(QUEUE, Key("", "q"))
    assert memory.get(QUEUE, Key("", "q")) == old


def test_status_writes_and_bindings_are_not_asked_about(memory: MemoryCluster) -> None:
    memory.create(POD, pod("p"))
    memory.admission = asked = Recorder(POD)
    memory.bind(Key("default", "p"), "n1")
    memory.patch(POD, Key("default", "p"), {"status": {"phase": "Running"}}, subresource="status")
    assert asked.calls() == []


def test_a_dry_run_is_told(memory: MemoryCluster) -> None:
    memory.admission = asked = Recorder(QUEUE)
    memory.create(QUEUE, queue("q"), dry_run=True)
    assert [request.dry_run for _, request in asked.asked] == [True, True]


def test_admission_may_write_to_the_cluster_itself(memory: MemoryCluster) -> None:
    """As the webhook that makes the PodGroup of a pod."""

    class MakesConfigMaps(Recorder):
        def mutate(self, request: AdmissionRequest) -> Json | None:
            if request.kind == POD:
                memory.create(CONFIG_MAP, Built(CONFIG_MAP, f"of-{request.key.name}"))
            return super().mutate(request)

    memory.admission = MakesConfigMaps(POD)
    memory.create(POD, pod("p"))
    assert memory.get(CONFIG_MAP, Key("default", "of-p"))["metadata"]["name"] == "of-p"


# --- load -------------------------------------------------------------------------------------------------------------


def test_what_is_loaded_is_as_it_was_found(memory: MemoryCluster) -> None:
    memory.admission = asked = Recorder(POD)
    found = pod("p").on("n1").uid("u-1").created(5.0)
    loaded = memory.load([found])[0]
    meta = loaded["metadata"]
    assert (loaded["status"]["phase"], meta["uid"], meta["creationTimestamp"], asked.calls()) == (
        "Running", "u-1", "1970-01-01T00:00:05Z", [],
    )  # fmt: skip


def test_what_is_loaded_has_its_defaults(memory: MemoryCluster) -> None:
    assert memory.load([Built(QUEUE, "q") | {"spec": {}}])[0]["spec"]["weight"] == 1


def test_a_loaded_pod_may_name_a_class_that_is_gone(memory: MemoryCluster) -> None:
    assert memory.load([pod("p").priority(5, "gone")])[0]["spec"]["priority"] == 5


def test_nothing_is_loaded_twice(memory: MemoryCluster) -> None:
    with pytest.raises(AlreadyExists):
        memory.load([queue("q"), queue("q")])


def test_a_node_without_room_is_warned_of() -> None:
    warnings: list[str] = []
    memory = MemoryCluster(VirtualClock(), on_warning=warnings.append)
    memory.load([{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}])
    assert warnings == ['nodes "n1": status.allocatable is missing: no pod will fit on it']
