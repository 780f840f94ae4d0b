"""A whole cluster for stories about controllers, on a virtual clock: the embedded API with admission, our controllers,
workload controllers and kubelets; only the scheduler is played, by rules as plain as they can be."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from controller.manager import Manager
from controller.reconciler import Settings
from extender.api import quantity
from extender.api.meta import (
    BATCH_JOB,
    EVENT,
    JOB,
    JOB_FLOW,
    KINDS,
    LEASE,
    NODE,
    POD,
    POD_GROUP,
    PV,
    QUEUE,
    Json,
    Key,
    Kind,
    annotations_of,
    key_of,
    kind_of,
)
from extender.api.pod import PodSpec, effective_requests
from extender.api.views import view
from extender.cluster.clock import VirtualClock
from extender.cluster.kubelet import Kubelet
from extender.cluster.memory import MemoryCluster
from extender.cluster.workloads import Workloads
from webhook.admission import WebhookAdmission
from webhook.routes import ROUTES
from webhook.settings import Settings as WebhookSettings

START = 1_736_121_600.0  # 2025-01-06T00:00:00Z
QUIET, PATIENCE = 4, 25  # seconds without a change; seconds at most
GROUP = "scheduling.k8s.io/group-name"
KEYS = ("-----BEGIN RSA PRIVATE KEY-----\nfor tests\n-----END RSA PRIVATE KEY-----\n", "ssh-rsa for-tests\n")


class World:
    """`settle` lets things happen until nothing changes any more; `phases` records what a watch sees."""

    def __init__(self, *, admission: bool = True, graceful: bool = False, not_ready: tuple[str, ...] = ()) -> None:
        self.clock = VirtualClock(START)
        self.cluster = MemoryCluster(self.clock)
        self.cluster.load(_nodes())
        self.cluster.load([_queue("root", {"reclaimable": False}), _queue("default", {"parent": "root"})])
        if admission:
            paths = tuple(route.path for route in ROUTES)
            self.cluster.admission = WebhookAdmission(self.cluster, WebhookSettings(enabled=paths))
        self.manager = Manager(self.cluster, self.clock, Settings(make_keys=lambda: KEYS))
        self.workloads = Workloads(self.cluster, self.clock)
        self.kubelet = Kubelet(self.cluster, self.clock, start_seconds=1.0, graceful=graceful, not_ready=not_ready)
        self.phases: dict[str, list[str]] = defaultdict(list)
        self.born: dict[str, list[str]] = defaultdict(list)
        self.changes = 0
        self._watches = [(kind, self.cluster.watch(kind, "0")) for kind in WATCHED]
        self.manager.start()
        self.settle()

    def settle(self, wait: float = 0.0) -> None:
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
        self.manager = Manager(self.cluster, self.clock, Settings(make_keys=lambda: KEYS))
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
        _schedule(self.cluster)
        self.manager.step()
        self.look()
        return self.changes != before

    def look(self) -> None:
        for kind, watch in self._watches:
            for event in watch.poll():
                self.changes += 1
                self._note(kind, event.object)

    def _note(self, kind: Kind, obj: Json) -> None:
        name, uid = f"{kind.name}/{obj['metadata']['name']}", obj["metadata"]["uid"]
        if kind == BATCH_JOB:
            return
        if uid not in self.born[name]:
            self.born[name].append(uid)
        status = obj.get("status") or {}
        phase = {
            JOB: lambda: (status.get("state") or {}).get("phase"),
            QUEUE: lambda: status.get("state"),
            JOB_FLOW: lambda: (status.get("state") or {}).get("phase"),
            POD_GROUP: lambda: status.get("phase"),
        }.get(kind, lambda: None)()
        if phase and (not self.phases[name] or self.phases[name][-1] != phase):
            self.phases[name].append(phase)

    def get(self, kind: Kind, name: str, namespace: str = "default") -> Json:
        return self.cluster.get(kind, Key(namespace if kind.namespaced else "", name))

    def create(self, obj: Json) -> None:
        kind = kind_of(obj)
        if kind.namespaced:
            obj = {**obj, "metadata": {"namespace": "default", **obj["metadata"]}}
        self.cluster.create(kind, obj)

    def report(self, pod: Json, phase: str, exit_code: int | None, restarts: int, ready: bool) -> None:
        """The kubelet says so."""
        status = dict(pod.get("status") or {})
        code = exit_code if exit_code is not None else int(phase == "Failed")
        state = {
            "Running": {"running": {}},
            "Pending": {"waiting": {"reason": "ContainerCreating"}},
        }.get(phase, {"terminated": {"exitCode": code}})
        containers = [
            {"name": each["name"], "ready": ready and phase == "Running", "restartCount": restarts, "state": state}
            for each in pod["spec"]["containers"]
        ]
        status |= {"phase": phase, "containerStatuses": containers}
        self.cluster.patch(POD, key_of(pod), {"status": status}, subresource="status")


WATCHED = tuple(kind for kind in KINDS if kind not in (EVENT, LEASE, NODE))


def _nodes() -> list[Json]:
    nodes = []
    for number in range(1, 6):
        room = {"cpu": "64", "memory": "256Gi", "pods": "250", **({"nvidia.com/gpu": "8"} if number <= 2 else {})}
        labels = {"kubernetes.io/hostname": f"n{number}", "kubernetes.io/os": "linux"}
        nodes.append({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{number}", "labels": labels},
            "status": {"allocatable": room, "capacity": room, "conditions": [{"type": "Ready", "status": "True"}]},
        })  # fmt: skip
    return nodes


def _queue(name: str, spec: Json) -> Json:
    known = {"apiVersion": QUEUE.api_version, "kind": QUEUE.name, "metadata": {"name": name}}
    return {**known, "spec": spec, "status": {"state": "Open"}}


# --- the scheduler --------------------------------------------------------------------------------------------------------


def _schedule(cluster: MemoryCluster) -> None:
    """Admit groups that could fit at all, start each when its minimum fits, say in its status how it is."""
    free = _free(cluster)
    pods: dict[Key, list[Json]] = defaultdict(list)
    for pod in cluster.list(POD).objects:
        named = annotations_of(pod).get(GROUP)
        if named and pod["spec"].get("schedulerName") == "volcano":
            pods[Key(pod["metadata"]["namespace"], named)].append(pod)
    queues = {key_of(queue).name for queue in cluster.list(QUEUE).objects}
    for group in cluster.list(POD_GROUP).objects:
        if group["spec"].get("queue") not in queues:
            continue
        _schedule_group(cluster, group, pods[key_of(group)], free)


def _schedule_group(cluster: MemoryCluster, group: Json, pods: list[Json], free: dict[str, Counter[str]]) -> None:
    status = dict(group.get("status") or {})
    minimum = group["spec"].get("minMember") or 0
    if status.get("phase") in (None, "", "Pending") and _could_fit(group, free):
        status["phase"] = "Inqueue"
    alive = [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]
    volumes = cluster.list(PV).objects
    waiting = [pod for pod in alive if not pod["spec"].get("nodeName") and not pod["spec"].get("schedulingGates")
               and (volumes or not _claims(pod))]  # fmt: skip
    placed = [pod for pod in alive if pod["spec"].get("nodeName")]
    counted = Counter(pod["status"].get("phase") for pod in placed)
    started = counted["Running"] + counted["Pending"] + counted["Succeeded"]
    if status.get("phase") not in (None, "", "Pending"):
        started += _bind(cluster, waiting, free, max(minimum - started, 0))
        if started >= minimum and started:
            all_ended = not waiting and placed and not counted["Running"] and not counted["Pending"]
            status["phase"] = "Completed" if all_ended else "Running"
        elif counted["Running"]:
            status["phase"] = "Unknown"
        elif not pods and status["phase"] == "Running":
            status["phase"] = "Pending"
    for name, phase in (("running", "Running"), ("succeeded", "Succeeded"), ("failed", "Failed")):
        if counted[phase]:
            status[name] = counted[phase]
        else:
            status[name] = None
    conditions: list[dict[str, Any]] = []
    if status.get("phase") in ("Unknown", "Inqueue") and (waiting or status["phase"] == "Unknown"):
        conditions = [{"type": "Unschedulable", "status": "True", "message": f"{started}/{minimum} tasks in gang unschedulable"}]
    if conditions != (group.get("status") or {}).get("conditions", []):
        status["conditions"] = conditions
    changed = {name: value for name, value in status.items() if (group.get("status") or {}).get(name) != value}
    if changed:
        cluster.patch(POD_GROUP, key_of(group), {"status": changed})


def _bind(cluster: MemoryCluster, waiting: list[Json], free: dict[str, Counter[str]], needed: int) -> int:
    """All or nothing below the minimum; the number bound."""
    trial = {node: Counter(room) for node, room in free.items()}
    chosen = []
    for pod in waiting:
        wanted = _requests(pod)
        node = next((node for node in sorted(trial) if _matches(pod, node) and _holds(trial[node], wanted)), None)
        if node is not None:
            trial[node].subtract(wanted)
            chosen.append((pod, node))
    if len(chosen) < needed:
        return 0
    for pod, node in chosen:
        cluster.bind(key_of(pod), node)
        free[node].subtract(_requests(pod))
    return len(chosen)


def _matches(pod: Json, node: str) -> bool:
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    fields = [field for term in required.get("nodeSelectorTerms", ()) for field in term.get("matchFields", ())]
    wanted = (pod["spec"].get("nodeSelector") or {}).get("kubernetes.io/hostname", node)
    return wanted == node and all(node in field["values"] for field in fields)


def _claims(pod: Json) -> list[Json]:
    return [volume for volume in pod["spec"].get("volumes") or () if "persistentVolumeClaim" in volume]


def _requests(pod: Json) -> Counter[str]:
    wanted = {**effective_requests(view(PodSpec, pod["spec"])), "pods": quantity.NANO}
    wanted.pop("ephemeral-storage", None)
    return Counter(wanted)


def _holds(room: Counter[str], wanted: Counter[str]) -> bool:
    return all(room[name] >= amount for name, amount in wanted.items())


def _free(cluster: MemoryCluster) -> dict[str, Counter[str]]:
    free = {
        node["metadata"]["name"]: Counter({name: quantity.nanos(text) for name, text in _room(node).items()})
        for node in cluster.list(NODE).objects
    }
    for pod in cluster.list(POD).objects:
        if pod["spec"].get("nodeName") in free and pod["status"].get("phase") not in ("Succeeded", "Failed"):
            free[pod["spec"]["nodeName"]].subtract(_requests(pod))
    return free


def _room(node: Json) -> Json:
    return (node.get("status") or {}).get("allocatable") or {}


def _could_fit(group: Json, free: dict[str, Counter[str]]) -> bool:
    total: Counter[str] = Counter()
    for room in free.values():
        total.update(room)
    asked = {name: quantity.nanos(text) for name, text in (group["spec"].get("minResources") or {}).items()}
    plain = {name: amount for name, amount in asked.items() if not name.startswith(("requests.", "limits.", "count/"))}
    return all(total[name] >= amount for name, amount in plain.items() if name not in ("cpu", "memory", "ephemeral-storage"))
