"""The loop around the controllers: retries, restarts, watches that lose their place, threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import pytest

from controller.manager import Manager
from controller.reconciler import Settings
from controller.selection import chosen
from extender.api.errors import ClusterError, ConfError, Conflict, NotFound, Unavailable
from extender.api.meta import EVENT, JOB, JOB_FLOW, POD, POD_GROUP, QUEUE, Json, Key, Kind
from extender.api.operations import Create, Operation, PatchStatus
from extender.cluster.apply import apply
from extender.cluster.clock import Clock, SystemClock, VirtualClock
from extender.cluster.memory import MemoryCluster
from extender.cluster.port import Cluster, Listing
from tests.controlplane.waiting import wait_until
from tests.reconcile.builders import job, key, task
from tests.reconcile.world import KEYS

QUEUE_OBJECT: Json = {
    "apiVersion": QUEUE.api_version, "kind": QUEUE.name, "metadata": {"name": "default"}, "spec": {"parent": "root"},
    "status": {"state": "Open"},
}  # fmt: skip

CONTAINER: Json = {"name": "main", "image": "app"}


class Flaky:
    """Carries operations out, but for the next few of a kind."""

    def __init__(self, concerns: Callable[[Operation], bool], times: int, error: ClusterError) -> None:
        self.concerns, self.times, self.error = concerns, times, error

    def __call__(self, cluster: Cluster, operations: Sequence[Operation], /, *, clock: Clock,
                 on_failure: Callable[[Operation, ClusterError], None]) -> None:  # fmt: skip
        for operation in operations:
            if self.times and self.concerns(operation):
                self.times -= 1
                on_failure(operation, self.error)
            else:
                apply(cluster, [operation], clock=clock, on_failure=on_failure)


def make(flaky: Flaky | None = None, max_requeue: int = 15) -> tuple[VirtualClock, MemoryCluster, Manager]:
    clock = VirtualClock(1e9)
    cluster = MemoryCluster(clock)
    cluster.load([QUEUE_OBJECT])
    manager = Manager(cluster, clock, Settings(make_keys=lambda: KEYS, max_requeue=max_requeue), apply=flaky)
    manager.start()
    raw = job(task(replicas=3))
    cluster.create(JOB, {**raw, "metadata": {"name": "j", "namespace": "default"}})
    manager.step()
    return clock, cluster, manager


def admit(cluster: MemoryCluster) -> None:
    for group in cluster.list(POD_GROUP).objects:
        cluster.patch(POD_GROUP, Key("default", group["metadata"]["name"]), {"status": {"phase": "Inqueue"}})


def on(clock: VirtualClock, manager: Manager, seconds: float) -> None:
    end = clock.now() + seconds
    while True:
        manager.step()
        due = manager.next_due()
        if due is None or due > end:
            return
        clock.advance_to(due)


def test_a_step_without_changes_does_nothing() -> None:
    """And nothing is due."""
    _, _, manager = make()
    assert (manager.step(), manager.next_due(), manager.queue_length()) == (0, None, 0)


def test_pods_are_made_when_the_group_is_admitted() -> None:
    """Not before."""
    _, cluster, manager = make()
    before = len(cluster.list(POD).objects)
    admit(cluster)
    manager.step()
    assert (before, len(cluster.list(POD).objects)) == (0, 3)


def test_a_write_that_fails_is_tried_again() -> None:
    """And told about by an event."""
    clock, cluster, manager = make(Flaky(lambda op: isinstance(op, Create) and op.kind == POD, 4, Unavailable("busy")))
    admit(cluster)
    on(clock, manager, 1)
    reasons = {event["reason"] for event in cluster.list(EVENT).objects}
    assert (len(cluster.list(POD).objects), "FailedCreate" in reasons) == (3, True)


def test_the_status_is_not_written_after_a_failure() -> None:
    """It would count pods that are not there."""
    _, cluster, manager = make(Flaky(lambda op: isinstance(op, Create) and op.kind == POD, -1, Unavailable("down")))
    admit(cluster)
    manager.step()
    assert "pending" not in cluster.get(JOB, key("j"))["status"]


def test_a_conflict_is_looked_at_anew() -> None:
    """With what has changed in between; it is no event, for nobody need do anything about it."""
    flaky = Flaky(lambda op: isinstance(op, PatchStatus), 0, Conflict("stale"))
    clock, cluster, manager = make(flaky)
    flaky.times = 3
    admit(cluster)
    on(clock, manager, 1)
    warnings = [event for event in cluster.list(EVENT).objects if event["type"] == "Warning"]
    assert (cluster.get(JOB, key("j"))["status"]["pending"], flaky.times, warnings) == (3, 0, [])


def test_the_budget_ends_a_job() -> None:
    """With --max-requeue-num 2."""
    broken = Flaky(lambda op: isinstance(op, Create) and op.kind == POD, -1, Unavailable("down"))
    clock, cluster, manager = make(broken, max_requeue=2)
    admit(cluster)
    on(clock, manager, 5)
    assert cluster.get(JOB, key("j"))["status"]["state"]["phase"] == "Terminated"


def test_what_is_given_up_is_told_as_people_name_it(caplog: pytest.LogCaptureFixture) -> None:
    """By namespace and name, whatever the request is to the controller."""
    broken = Flaky(lambda op: isinstance(op, Create) and op.kind == POD_GROUP, -1, Unavailable("down"))
    clock, cluster, manager = make(broken, max_requeue=2)
    bare: Json = {
        "metadata": {"name": "old", "namespace": "team"},
        "spec": {"schedulerName": "volcano", "containers": [CONTAINER]},
    }
    cluster.create(POD, {"apiVersion": "v1", "kind": "Pod", **bare})
    on(clock, manager, 5)
    told = {message.split(" up after ")[0] for message in caplog.messages if " up after " in message}
    assert told == {"job-controller gives default/j", "pg-controller gives team/old"}


def test_no_budget() -> None:
    """With --max-requeue-num -1."""
    broken = Flaky(lambda op: isinstance(op, Create) and op.kind == POD, -1, Unavailable("down"))
    clock, cluster, manager = make(broken, max_requeue=-1)
    admit(cluster)
    on(clock, manager, 5000)
    assert cluster.get(JOB, key("j"))["status"]["state"]["phase"] == "Pending"


def test_a_watch_that_loses_its_place_lists_again() -> None:
    """What has gone in the meantime is noticed."""
    clock = VirtualClock(1e9)
    cluster = MemoryCluster(clock, history=5)
    cluster.load([QUEUE_OBJECT])
    manager = Manager(cluster, clock, Settings(make_keys=lambda: KEYS))
    manager.start()
    cluster.create(JOB, {**job(task(replicas=1)), "metadata": {"name": "j", "namespace": "default"}})
    manager.step()
    admit(cluster)
    manager.step()
    first = cluster.get(POD, key("j-w-0"))["metadata"]["uid"]
    cluster.delete(POD, key("j-w-0"), grace_seconds=0)
    for number in range(20):
        pod = {"metadata": {"name": f"x{number}", "namespace": "default"}, "spec": {"containers": [{"name": "m", "image": "i"}]}}
        cluster.create(POD, {"apiVersion": "v1", "kind": "Pod", **pod})
    manager.step()
    assert cluster.get(POD, key("j-w-0"))["metadata"]["uid"] != first


def test_a_second_manager_finds_nothing_to_do() -> None:
    """All that matters is in the cluster."""
    clock, cluster, manager = make()
    admit(cluster)
    manager.step()
    before = cluster.get(JOB, key("j"))["metadata"]["resourceVersion"]
    other = Manager(cluster, clock, Settings(make_keys=lambda: KEYS))
    other.start()
    other.step()
    assert cluster.get(JOB, key("j"))["metadata"]["resourceVersion"] == before


def test_threads() -> None:
    """The same, driven by threads, on the machine's clock."""
    clock = SystemClock()
    cluster = MemoryCluster(clock)
    cluster.load([QUEUE_OBJECT])
    manager = Manager(cluster, clock, Settings(make_keys=lambda: KEYS))
    stop = threading.Event()
    thread = threading.Thread(target=manager.run, args=(stop,))
    thread.start()
    watch = cluster.watch(POD, "0")
    groups = cluster.watch(POD_GROUP, "0")
    try:
        for number in range(5):
            raw = job(task(replicas=20))
            cluster.create(JOB, {**raw, "metadata": {"name": f"j{number}", "namespace": "default"}})
        seen: set[str] = set()

        def all_made() -> bool:
            """However few events a look brings."""
            for event in groups.poll():
                if event.type == "ADDED":
                    name = event.object["metadata"]["name"]
                    cluster.patch(POD_GROUP, Key("default", name), {"status": {"phase": "Inqueue"}})
            seen.update(event.object["metadata"]["name"] for event in watch.poll())
            return len(seen) == 100

        wait_until(all_made, "the pods")
    finally:
        stop.set()
        thread.join()


CHOICES = {
    "nothing said": ([], 10),
    "all but one": (["*", "-gc-controller"], 9),
    "one only": (["gc-controller"], 1),
    "one more than none": (["+gc-controller"], 1),
    "the default": (["*", "-sharding-controller"], 9),
}


@pytest.mark.parametrize(("words", "want"), CHOICES.values(), ids=CHOICES)
def test_which_controllers_run(words: list[str], want: int) -> None:
    """--controllers."""
    assert len(chosen(words)) == want


@pytest.mark.parametrize(("words", "message"), [
    (["job-controler"], "did you mean 'job-controller'"), (["gc-controller", "-gc-controller"], "more than once"),
])  # fmt: skip
def test_what_cannot_be_chosen(words: list[str], message: str) -> None:
    """Says so at the start."""
    with pytest.raises(ConfError, match=message):
        chosen(words)


class Unchecked(MemoryCluster):
    """An API server with a job from before it checked what tasks are."""

    def list(self, kind: Kind, namespace: str = "", label_selector: str = "", field_selector: str = "") -> Listing:
        found = super().list(kind, namespace, label_selector, field_selector)
        known = {"apiVersion": JOB.api_version, "kind": JOB.name, "metadata": {"name": "broken", "namespace": "default"}}
        broken = {**known, "spec": {"tasks": [{"name": "w", "template": "none"}]}}
        return Listing([broken, *found.objects], found.resource_version) if kind == JOB else found


def test_an_object_that_cannot_be_read_is_passed_over() -> None:
    """The others are looked at."""
    clock = VirtualClock(1e9)
    cluster = Unchecked(clock)
    cluster.load([QUEUE_OBJECT])
    cluster.create(JOB, {**job(task(replicas=3)), "metadata": {"name": "j", "namespace": "default"}})
    manager = Manager(cluster, clock, Settings(make_keys=lambda: KEYS))
    manager.start()
    manager.step()
    admit(cluster)
    manager.step()
    assert len(cluster.list(POD).objects) == 3


class Older(MemoryCluster):
    """An API server without the CRD of job flows, until it is installed."""

    knows_flows = False

    def list(self, kind: Kind, namespace: str = "", label_selector: str = "", field_selector: str = "") -> Listing:
        if kind == JOB_FLOW and not self.knows_flows:
            raise NotFound("the server could not find the requested resource")
        return super().list(kind, namespace, label_selector, field_selector)


def test_a_kind_that_the_server_does_not_know() -> None:
    """The others work; when its CRD comes, so does this one."""
    clock = VirtualClock(1e9)
    cluster = Older(clock)
    cluster.load([QUEUE_OBJECT])
    manager = Manager(cluster, clock, Settings(make_keys=lambda: KEYS))
    manager.start()
    flow = {"apiVersion": JOB_FLOW.api_version, "kind": JOB_FLOW.name, "metadata": {"name": "f", "namespace": "default"}}
    cluster.load([{**flow, "spec": {"flows": []}}])
    manager.step()
    before = cluster.get(JOB_FLOW, key("f")).get("status")
    cluster.knows_flows = True
    manager.step()
    assert (before, cluster.get(JOB_FLOW, key("f"))["status"]["state"]["phase"]) == (None, "Pending")
