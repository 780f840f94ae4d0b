"""Pods that go to our scheduler, to a resource group or wait for their queue (POST /pods/mutate, CREATE).

Three things, each only where it is asked for:

* a label of the namespace or of the pod asks for our scheduler: the pod gets its name and, where a workload controls it,
  joins the workload's group, which is made (`labels.SCHEDULE`). A pod without an owner has no uid yet, after which its
  group is called: the podgroup controller makes it. So it does whatever could not be made here;
* the pod belongs to a resource group of the admission configuration;
* the pod waits for its queue behind a scheduling gate. Only with an admission configuration, upstream's trap, kept because
  a gate that appears with an unrelated flag's default would hold pods back."""

from __future__ import annotations

from extender.api.errors import ClusterError, InvalidObject
from extender.api.grouping import group_name, new_group, owner_kind
from extender.api.labels import DEFAULT_SCHEDULER, GROUP_NAME, QUEUE_ALLOCATION_GATE, SCHEDULE
from extender.api.meta import POD_GROUP, Json, Key, annotations_of, controller_of, labels_of
from extender.api.operations import Create, Operation
from extender.cluster.port import AdmissionRequest
from webhook.pods.groups import ResourceGroup
from webhook.settings import Settings
from webhook.verdict import Allow, Verdict, json_patch
from webhook.view import ClusterView


def mutate(request: AdmissionRequest, cluster: ClusterView, settings: Settings) -> Verdict:
    pod = request.object or {}
    meta = pod.get("metadata", {})
    namespace = meta.get("namespace") or request.key.namespace
    wanted = {name: dict(part) if name in ("metadata", "spec") else part for name, part in pod.items()}
    if settings.resource_groups is not None:
        _follow_configuration(wanted, namespace, settings)
    operations: tuple[Operation, ...] = ()
    if _asks(wanted, namespace, cluster) and _may_be_ours(wanted, settings):
        wanted.setdefault("spec", {})["schedulerName"] = _scheduler(wanted, settings)
        operations = _join_workload(wanted, namespace, cluster)
    return Allow(patch=json_patch(pod, wanted), operations=operations)


def _follow_configuration(pod: Json, namespace: str, settings: Settings) -> None:
    annotations = annotations_of(pod)
    spec = pod.setdefault("spec", {})
    if settings.queue_allocation_gate and annotations.get(QUEUE_ALLOCATION_GATE) == "true":
        _gate(spec)
    groups = settings.resource_groups or ()
    group = next((group for group in groups if group.holds(namespace, annotations)), None)
    if group:
        _enter(spec, group)


def _gate(spec: Json) -> None:
    gates = spec.get("schedulingGates", [])
    if all(gate.get("name") != QUEUE_ALLOCATION_GATE for gate in gates):
        spec["schedulingGates"] = [*gates, {"name": QUEUE_ALLOCATION_GATE}]


def _enter(spec: Json, group: ResourceGroup) -> None:
    """Labels and scheduler of the group win over the pod's; a toleration the pod already has is not repeated."""
    if group.labels:
        spec["nodeSelector"] = {**spec.get("nodeSelector", {}), **group.labels}
    if group.affinity is not None and "affinity" not in spec:
        spec["affinity"] = group.affinity
    have = spec.get("tolerations", [])
    added = [toleration for toleration in group.tolerations if toleration not in have]
    if added:
        spec["tolerations"] = [*have, *added]
    if group.scheduler_name:
        spec["schedulerName"] = group.scheduler_name


def _asks(pod: Json, namespace: str, cluster: ClusterView) -> bool:
    """The pod's own word counts before its namespace's. A namespace that cannot be read asks for nothing."""
    said = labels_of(pod).get(SCHEDULE)
    if said is None:
        try:
            said = labels_of(cluster.namespace(namespace) or {}).get(SCHEDULE)
        except ClusterError:
            return False
    return said == "true"


def _may_be_ours(pod: Json, settings: Settings) -> bool:
    """Not if it has its node already, or was given to a third scheduler."""
    spec = pod.get("spec", {})
    return not spec.get("nodeName") and spec.get("schedulerName", "") in ("", DEFAULT_SCHEDULER, *settings.scheduler_names)


def _scheduler(pod: Json, settings: Settings) -> str:
    named: str = pod["spec"].get("schedulerName", "")
    return named if named in settings.scheduler_names else settings.scheduler_name


def _join_workload(pod: Json, namespace: str, cluster: ClusterView) -> tuple[Operation, ...]:
    """Names the group of the pod's workload; what to do so that there is one. Repeated, it changes nothing."""
    owner = controller_of(pod)
    if owner is None or not owner.get("uid") or annotations_of(pod).get(GROUP_NAME):
        return ()
    pod["metadata"]["annotations"] = {**annotations_of(pod), GROUP_NAME: group_name(pod)}
    try:
        group = new_group(pod, _workloads(pod, namespace, cluster))
    except (ClusterError, InvalidObject):
        return ()
    group["metadata"]["namespace"] = namespace
    return (Create(POD_GROUP, group),)


def _workloads(pod: Json, namespace: str, cluster: ClusterView) -> list[Json]:
    found = []
    for reference in pod["metadata"]["ownerReferences"]:
        kind = owner_kind(reference)
        if kind is not None:
            workload = cluster.owner(kind, Key(namespace, reference.get("name", "")), reference.get("uid", ""))
            if workload is not None:
                found.append(workload)
    return found
