"""Objects for tests, in one breath: `node("n1").cpu(2).gpu(8)`, `task("t", group="g").cpu("500m").on("n1")`.

What a builder gives is the JSON dict itself, as it would come from an API server; each call sets one thing more, so a
test writes only what matters to it. Every field that is not covered is set with `with_(path, value)`."""

from __future__ import annotations

from typing import Any, Self

from extender.api import labels as names
from extender.api.meta import NODE, POD, POD_GROUP, PRIORITY_CLASS, QUEUE, Json, Kind, Time, format_time

NAMESPACE = "default"
SCHEDULER = "volcano"
GPU = "nvidia.com/gpu"
Amount = int | float | str


class Built(dict[str, Any]):
    """A JSON object under construction."""

    def __init__(self, kind: Kind, name: str, namespace: str = NAMESPACE) -> None:
        metadata: Json = {"name": name, "uid": f"{kind.name.lower()}-{name}"}
        if kind.namespaced:
            metadata["namespace"] = namespace
            metadata["uid"] = f"{kind.name.lower()}-{namespace}-{name}"
        super().__init__(apiVersion=kind.api_version, kind=kind.name, metadata=metadata)

    def with_(self, path: str, value: Any) -> Self:
        """Set the field at a dotted path, making the maps on the way."""
        *way, last = path.split(".")
        place: dict[str, Any] = self
        for step in way:
            place = place.setdefault(step, {})
        place[last] = value
        return self

    def uid(self, uid: str) -> Self:
        return self.with_("metadata.uid", uid)

    def created(self, when: Time) -> Self:
        """Seconds since the epoch."""
        return self.with_("metadata.creationTimestamp", format_time(when))

    def labels(self, labels: dict[str, str] | None = None, **more: str) -> Self:
        self["metadata"].setdefault("labels", {}).update(labels or {}, **more)
        return self

    def annotate(self, key: str, value: str) -> Self:
        self["metadata"].setdefault("annotations", {})[key] = value
        return self

    def owned_by(self, owner: Json) -> Self:
        """A controller reference to another object."""
        reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"]}
        reference |= {"uid": owner["metadata"]["uid"], "controller": True}
        self["metadata"].setdefault("ownerReferences", []).append(reference)
        return self


class NodeBuilder(Built):
    """A node that is ready, with room for 110 pods and nothing else until something is given."""

    def __init__(self, name: str) -> None:
        super().__init__(NODE, name)
        self.labels({names.HOSTNAME: name})
        self["spec"] = {}
        self["status"] = {"capacity": {}, "allocatable": {}, "conditions": [{"type": "Ready", "status": "True"}]}
        self.pods(110)

    def resource(self, name: str, amount: Amount) -> Self:
        self["status"]["capacity"][name] = self["status"]["allocatable"][name] = str(amount)
        return self

    def cpu(self, amount: Amount) -> Self:
        return self.resource("cpu", amount)

    def memory(self, amount: Amount) -> Self:
        return self.resource("memory", amount)

    def pods(self, amount: int) -> Self:
        return self.resource("pods", amount)

    def gpu(self, amount: int) -> Self:
        return self.resource(GPU, amount)

    def zone(self, zone: str) -> Self:
        return self.labels({names.ZONE: zone})

    def taint(self, key: str, value: str = "", effect: str = "NoSchedule") -> Self:
        self["spec"].setdefault("taints", []).append({"key": key, "value": value, "effect": effect})
        return self

    def unschedulable(self) -> Self:
        return self.with_("spec.unschedulable", True)


class PodBuilder(Built):
    """A pending pod of one container that asks nothing."""

    def __init__(self, name: str, namespace: str = NAMESPACE) -> None:
        super().__init__(POD, name, namespace)
        self["spec"] = {"containers": [{"name": "main", "image": "example.test/app:1", "resources": {"requests": {}}}]}
        self["status"] = {"phase": "Pending"}

    def resource(self, name: str, amount: Amount) -> Self:
        """An extended resource has the same limit, as the API server wants it."""
        resources = self["spec"]["containers"][0]["resources"]
        resources["requests"][name] = str(amount)
        if "/" in name:
            resources.setdefault("limits", {})[name] = str(amount)
        return self

    def cpu(self, amount: Amount) -> Self:
        return self.resource("cpu", amount)

    def memory(self, amount: Amount) -> Self:
        return self.resource("memory", amount)

    def gpu(self, amount: int) -> Self:
        return self.resource(GPU, amount)

    def scheduler(self, name: str) -> Self:
        return self.with_("spec.schedulerName", name)

    def group(self, name: str) -> Self:
        return self.annotate(names.GROUP_NAME, name)

    def role(self, role: str) -> Self:
        """The task of a job that the pod plays."""
        return self.annotate(names.TASK_SPEC, role)

    def priority(self, value: int, class_name: str = "") -> Self:
        if class_name:
            self.with_("spec.priorityClassName", class_name)
        return self.with_("spec.priority", value)

    def on(self, node: str, phase: str = "Running") -> Self:
        """On a node, and running unless told otherwise."""
        return self.with_("spec.nodeName", node).phase(phase)

    def phase(self, phase: str) -> Self:
        return self.with_("status.phase", phase)

    def leaving(self, when: Time = 0.0) -> Self:
        """Being deleted."""
        return self.with_("metadata.deletionTimestamp", format_time(when))

    def select(self, **labels: str) -> Self:
        return self.with_("spec.nodeSelector", labels)

    def tolerate(self, key: str, value: str = "", effect: str = "") -> Self:
        toleration = {
            "key": key,
            "effect": effect,
            **({"operator": "Equal", "value": value} if value else {"operator": "Exists"}),
        }
        self["spec"].setdefault("tolerations", []).append(toleration)
        return self

    def gated(self, gate: str = "example.test/wait") -> Self:
        self["spec"].setdefault("schedulingGates", []).append({"name": gate})
        return self

    def preemptable(self, yes: bool = True) -> Self:
        return self.annotate(names.PREEMPTABLE, str(yes).lower())


class GroupBuilder(Built):
    """A PodGroup that enqueue has let in; `phase("Pending")` for one that has still to pass."""

    def __init__(self, name: str, namespace: str = NAMESPACE) -> None:
        super().__init__(POD_GROUP, name, namespace)
        self["spec"] = {"minMember": 1, "queue": "default"}
        self.phase("Inqueue")

    def members(self, least: int, by_role: dict[str, int] | None = None) -> Self:
        if by_role is not None:
            self.with_("spec.minTaskMember", by_role)
        return self.with_("spec.minMember", least)

    def queue(self, name: str) -> Self:
        return self.with_("spec.queue", name)

    def priority(self, class_name: str) -> Self:
        return self.with_("spec.priorityClassName", class_name)

    def asks(self, **resources: Amount) -> Self:
        """spec.minResources."""
        return self.with_("spec.minResources", _amounts(resources))

    def phase(self, phase: str) -> Self:
        return self.with_("status.phase", phase)


class QueueBuilder(Built):
    """An open queue of weight 1."""

    def __init__(self, name: str) -> None:
        super().__init__(QUEUE, name)
        self["spec"] = {"weight": 1}
        self["status"] = {"state": "Open"}

    def weight(self, weight: int) -> Self:
        return self.with_("spec.weight", weight)

    def capability(self, **resources: Amount) -> Self:
        return self.with_("spec.capability", _amounts(resources))

    def deserved(self, **resources: Amount) -> Self:
        return self.with_("spec.deserved", _amounts(resources))

    def guarantee(self, **resources: Amount) -> Self:
        return self.with_("spec.guarantee.resource", _amounts(resources))

    def parent(self, name: str) -> Self:
        return self.with_("spec.parent", name)

    def reclaimable(self, yes: bool = True) -> Self:
        return self.with_("spec.reclaimable", yes)

    def state(self, state: str) -> Self:
        return self.with_("status.state", state)


def node(name: str = "n1") -> NodeBuilder:
    return NodeBuilder(name)


def pod(name: str = "p", namespace: str = NAMESPACE) -> PodBuilder:
    """A pod of some other scheduler."""
    return PodBuilder(name, namespace).scheduler("default-scheduler")


def task(name: str = "t-0", group: str = "g", namespace: str = NAMESPACE) -> PodBuilder:
    """A pod of ours, member of a group."""
    return PodBuilder(name, namespace).scheduler(SCHEDULER).group(group)


def podgroup(name: str = "g", namespace: str = NAMESPACE) -> GroupBuilder:
    return GroupBuilder(name, namespace)


def queue(name: str = "default") -> QueueBuilder:
    return QueueBuilder(name)


def priority_class(name: str, value: int, *, default: bool = False) -> Built:
    return Built(PRIORITY_CLASS, name).with_("value", value).with_("globalDefault", default)


def _amounts(resources: dict[str, Amount]) -> dict[str, str]:
    """Python names to resource names: gpu stands for nvidia.com/gpu."""
    return {GPU if name == "gpu" else name: str(amount) for name, amount in resources.items()}
