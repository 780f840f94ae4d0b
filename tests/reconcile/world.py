"""A whole cluster for stories about controllers, on a virtual clock: the embedded API with admission, our controllers,
workload controllers, kubelets and the scheduler, with the configuration that its chart ships."""

from __future__ import annotations

from collections.abc import Callable

from controller.manager import Manager
from controller.reconciler import Settings
from controller.writing import Apply
from extender.actions import ACTIONS
from extender.api.meta import (
    EVENT,
    KINDS,
    LEASE,
    NODE,
    POD,
    QUEUE,
    Json,
    Key,
    Kind,
    key_of,
)
from extender.cluster.clock import VirtualClock
from extender.cluster.kubelet import Kubelet
from extender.cluster.memory import MemoryCluster
from extender.cluster.workloads import Workloads
from extender.core.conf import load
from extender.loop import Loop
from extender.plugins import PLUGINS
from tests.reconcile.stage import PATIENCE, QUIET, Seen, placed
from webhook.admission import WebhookAdmission
from webhook.routes import ROUTES
from webhook.settings import Settings as WebhookSettings

START = 1_736_121_600.0  # 2025-01-06T00:00:00Z
GROUP = "scheduling.k8s.io/group-name"
CONF = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
"""
KEYS = ("-----BEGIN RSA PRIVATE KEY-----\nfor tests\n-----END RSA PRIVATE KEY-----\n", "ssh-rsa for-tests\n")


class World:
    """`settle` lets things happen until nothing changes any more; `seen` is what a watch sees."""

    def __init__(self, *, admission: bool = True, graceful: bool = False, not_ready: tuple[str, ...] = (),
                 apply: Apply | None = None) -> None:  # fmt: skip
        self._apply = apply
        self.clock = VirtualClock(START)
        self.cluster = MemoryCluster(self.clock)
        self.cluster.load(nodes())
        self.cluster.load([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "volcano-system"}}])
        self.cluster.load([_queue("root", {"reclaimable": False}), _queue("default", {"parent": "root"})])
        if admission:
            paths = tuple(route.path for route in ROUTES)
            self.cluster.admission = WebhookAdmission(self.cluster, WebhookSettings(enabled=paths))
        self.manager = Manager(self.cluster, self.clock, Settings(make_keys=lambda: KEYS), apply=self._apply)
        self.workloads = Workloads(self.cluster, self.clock)
        self.kubelet = Kubelet(self.cluster, self.clock, start_seconds=1.0, graceful=graceful, not_ready=not_ready)
        self.seen = Seen()
        self.changes = 0
        self._watches = [(kind, self.cluster.watch(kind, "0")) for kind in WATCHED]
        self.loop = Loop(self.cluster, load(CONF, PLUGINS, ACTIONS), self.clock)
        self.manager.start()
        self.loop.start()
        self.settle()

    def react(self) -> None:
        self.manager.step()

    def settle(self, wait: float = 0.0, settled: Callable[[], bool] = lambda: True) -> None:  # noqa: ARG002
        """Nothing more comes of itself where nothing has changed for QUIET seconds: there is no need to ask `settled`."""
        began = self.clock.now()
        quiet_since = began
        while True:
            if self.tick():
                quiet_since = self.clock.now()
            now = self.clock.now()
            if (now - quiet_since >= QUIET or now - began >= PATIENCE) and now - began >= wait:
                return
            due = self.manager.next_due()
            next_second = now + 1.0
            self.clock.advance_to(next_second if due is None or due <= now or due > next_second else due)

    def restart_controllers(self) -> None:
        """They come back with nothing but what the cluster shows."""
        self.manager.close()
        self.manager = Manager(self.cluster, self.clock, Settings(make_keys=lambda: KEYS), apply=self._apply)
        self.manager.start()

    def run_until(self, second: float) -> None:
        """Until that many seconds after the start of the story."""
        self.settle_until(START + QUIET + second)

    def settle_until(self, when: float) -> None:
        while True:
            self.tick()
            if self.clock.now() >= when:
                return
            due = self.manager.next_due() or when
            self.clock.advance_to(min(when, max(due, self.clock.now() + 0.001), self.clock.now() + 1.0))

    def tick(self) -> bool:
        """All that can happen at this moment; whether anything did that people would notice."""
        before = self.changes
        for _ in range(200):
            if not (self.manager.step() + self.workloads.reconcile() + self.cluster.settle() + self.kubelet.tick()):
                break
        self.look()
        self.loop.step()
        self.manager.step()
        self.look()
        return self.changes != before

    def look(self) -> None:
        for kind, watch in self._watches:
            for event in watch.poll():
                self.changes += 1
                self.seen.note(kind, event.object)

    def get(self, kind: Kind, name: str, namespace: str = "default") -> Json:
        return self.cluster.get(kind, Key(namespace if kind.namespaced else "", name))

    def create(self, obj: Json) -> None:
        self.cluster.create(*placed(obj))

    def report(self, pod: Json, phase: str, exit_code: int | None, restarts: int, ready: bool) -> None:
        """The kubelet says so."""
        status = reported(pod, phase, exit_code, restarts, ready)
        self.cluster.patch(POD, key_of(pod), {"status": status}, subresource="status")


def reported(pod: Json, phase: str, exit_code: int | None, restarts: int, ready: bool) -> Json:
    """The status of a pod after its kubelet said so of every container. A code that it leaves out is 1 for Failed, else 0."""
    code = exit_code if exit_code is not None else int(phase == "Failed")
    state = {
        "Running": {"running": {}},
        "Pending": {"waiting": {"reason": "ContainerCreating"}},
    }.get(phase, {"terminated": {"exitCode": code}})
    containers = [
        {"name": each["name"], "ready": ready and phase == "Running", "restartCount": restarts, "state": state}
        for each in pod["spec"]["containers"]
    ]
    return {**(pod.get("status") or {}), "phase": phase, "containerStatuses": containers}


WATCHED = tuple(kind for kind in KINDS if kind not in (EVENT, LEASE, NODE))


def nodes() -> list[Json]:
    nodes = []
    for number in range(1, 6):
        room = {"cpu": "64", "memory": "256Gi", "pods": "250", "ephemeral-storage": "256Gi"}
        room |= {"nvidia.com/gpu": "8"} if number <= 2 else {}
        labels = {"kubernetes.io/hostname": f"n{number}", "kubernetes.io/os": "linux"}
        nodes.append({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{number}", "labels": labels},
            "status": {"allocatable": room, "capacity": room, "conditions": [{"type": "Ready", "status": "True"}]},
        })  # fmt: skip
    return nodes


def _queue(name: str, spec: Json) -> Json:
    known = {"apiVersion": QUEUE.api_version, "kind": QUEUE.name, "metadata": {"name": name}}
    return {**known, "spec": spec, "status": {"state": "Open"}}
