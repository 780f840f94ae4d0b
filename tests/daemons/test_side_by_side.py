"""Writes side by side: many at once, what is about one object in order, failures told as `apply` tells them."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from extender.api.errors import ClusterError, Unavailable
from extender.api.meta import EVENT, POD, POD_GROUP, Json, Key, Kind
from extender.api.operations import Bind, Emit, Operation, PatchStatus
from extender.cluster.clock import VirtualClock
from extender.cluster.events import EventRecorder
from extender.cluster.memory import MemoryCluster
from extender.cluster.side_by_side import SideBySide
from extender.testing.builders import node, podgroup, queue, task
from tests.daemons.running import PATIENCE

WORKERS = 8


class Together(MemoryCluster):
    """A binding waits until `meet` of them are on their way. `b-...` are refused."""

    def __init__(self, clock: VirtualClock, meet: int = 1) -> None:
        super().__init__(clock)
        self.meeting = threading.Barrier(meet, timeout=PATIENCE)
        self.patches: list[str] = []
        self.load([queue(), node("n1").cpu(64).memory("8Gi"), podgroup("g"), *(task(f"a-{i}", "g") for i in range(WORKERS)),
                   *(task(f"b-{i}", "g") for i in range(3))])  # fmt: skip

    def bind(self, pod: Key, node: str, *, uid: str = "", annotations: dict[str, str] | None = None) -> None:
        self.meeting.wait()
        if pod.name.startswith("b-"):
            raise Unavailable(f"not {pod.name}")
        super().bind(pod, node, uid=uid, annotations=annotations)

    def patch(self, kind: Kind, key: Key, patch: Json, *, subresource: str = "", dry_run: bool = False) -> Json:
        if kind is POD_GROUP:
            self.patches.append(patch["status"]["phase"])
        return super().patch(kind, key, patch, subresource=subresource, dry_run=dry_run)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(1_000_000.0)


@pytest.fixture
def writes() -> Iterator[SideBySide]:
    writes = SideBySide(WORKERS)
    yield writes
    writes.close()


def carry_out(writes: SideBySide, cluster: MemoryCluster, operations: list[Operation]) -> list[tuple[Operation, str]]:
    failures: list[tuple[Operation, str]] = []
    me = threading.get_ident()

    def failed(operation: Operation, error: ClusterError) -> None:
        assert threading.get_ident() == me, "failures are told in the thread that asked"
        failures.append((operation, str(error)))

    clock = cluster.clock
    writes(cluster, operations, clock=clock, on_failure=failed, events=EventRecorder(clock, "volcano"))
    return failures


def bind(name: str) -> Bind:
    return Bind(Key("default", name), "n1")


def test_bindings_are_on_their_way_together(writes: SideBySide, clock: VirtualClock) -> None:
    """None of them returns before all have come."""
    cluster = Together(clock, meet=WORKERS)
    assert carry_out(writes, cluster, [bind(f"a-{i}") for i in range(WORKERS)]) == []
    assert {cluster.get(POD, Key("default", f"a-{i}"))["spec"]["nodeName"] for i in range(WORKERS)} == {"n1"}


def test_failures_are_told_in_the_order_of_the_operations(writes: SideBySide, clock: VirtualClock) -> None:
    operations: list[Operation] = [bind("b-2"), bind("a-0"), bind("b-0"), bind("b-1")]
    assert carry_out(writes, Together(clock), operations) == [
        (bind("b-2"), "not b-2"), (bind("b-0"), "not b-0"), (bind("b-1"), "not b-1"),
    ]  # fmt: skip


def test_writes_to_one_object_keep_their_order(writes: SideBySide, clock: VirtualClock) -> None:
    cluster = Together(clock)
    phases = ["Inqueue", "Running", "Completed"] * 10
    carry_out(writes, cluster, [PatchStatus(POD_GROUP, Key("default", "g"), {"status": {"phase": phase}}) for phase in phases])
    assert cluster.patches == phases


def test_the_same_event_from_many_threads_is_one(clock: VirtualClock) -> None:
    """Whoever says it first writes it, the others are counted."""
    cluster = Together(clock)
    events = EventRecorder(clock, "volcano")
    emit = Emit(POD_GROUP, Key("default", "g"), "Warning", "Unschedulable", "no room")
    threads = [threading.Thread(target=events.emit, args=(cluster, emit)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    clock.sleep(2)
    events.emit(cluster, emit)
    assert [event["count"] for event in cluster.list(EVENT).objects] == [21]


def test_each_binding_is_measured(clock: VirtualClock) -> None:
    measured: list[float] = []
    writes = SideBySide(2, on_bind=measured.append)
    running = PatchStatus(POD_GROUP, Key("default", "g"), {"status": {"phase": "Running"}})
    carry_out(writes, Together(clock), [bind("a-0"), bind("b-0"), running])
    writes.close()
    assert (len(measured), all(seconds >= 0 for seconds in measured)) == (2, True)


class Slow(Together):
    """Nothing is created before `go` is set."""

    def __init__(self, clock: VirtualClock) -> None:
        self.go = threading.Event()
        self.go.set()
        super().__init__(clock)
        self.go.clear()

    def create(self, kind: Kind, obj: Json, *, dry_run: bool = False) -> Json:
        self.go.wait(PATIENCE)
        return super().create(kind, obj, dry_run=dry_run)


def test_events_about_bindings_hold_no_binding_up(clock: VirtualClock) -> None:
    """They are written behind; closing waits for them."""
    cluster = Slow(clock)
    writes = SideBySide(2)
    carry_out(writes, cluster, [bind(f"a-{i}") for i in range(WORKERS)])
    before = len(cluster.list(EVENT).objects)
    cluster.go.set()
    writes.close()
    assert (before, len(cluster.list(EVENT).objects)) == (0, WORKERS)


def test_an_event_that_cannot_be_written_changes_nothing(
    writes: SideBySide, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Together(clock)

    def refused(*_: object, **__: object) -> Json:
        raise Unavailable("no events today")

    monkeypatch.setattr(cluster, "create", refused)
    failures = carry_out(writes, cluster, [bind("a-0")])
    assert (failures, cluster.get(POD, Key("default", "a-0"))["spec"]["nodeName"]) == ([], "n1")


def test_events_have_an_end(clock: VirtualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits is bounded; the binding itself is not touched."""
    monkeypatch.setattr("extender.cluster.side_by_side.BEHIND", 2)
    cluster = Slow(clock)
    writes = SideBySide(2)
    failures = carry_out(writes, cluster, [bind(f"a-{i}") for i in range(WORKERS)])
    cluster.go.set()
    writes.close()
    assert (failures, len(cluster.list(EVENT).objects)) == ([], 2)
