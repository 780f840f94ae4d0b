"""Pods that go to a resource group or wait for their queue (POST /pods/mutate, CREATE).

Does nothing unless an admission configuration was loaded, the scheduling gate included: upstream's trap, kept because a
gate that appears with an unrelated flag's default would hold pods back."""

from __future__ import annotations

import copy

from extender.api.labels import QUEUE_ALLOCATION_GATE
from extender.api.meta import Json
from extender.cluster.port import AdmissionRequest
from webhook.pods.groups import ResourceGroup
from webhook.settings import Settings
from webhook.verdict import Allow, Verdict, json_patch
from webhook.view import ClusterView


def mutate(request: AdmissionRequest, _cluster: ClusterView, settings: Settings) -> Verdict:
    if settings.resource_groups is None:
        return Allow()
    pod = request.object or {}
    meta = pod.get("metadata", {})
    annotations = meta.get("annotations", {})
    wanted = copy.deepcopy(pod)
    spec = wanted.setdefault("spec", {})
    if settings.queue_allocation_gate and annotations.get(QUEUE_ALLOCATION_GATE) == "true":
        _gate(spec)
    namespace = meta.get("namespace") or request.key.namespace
    group = next((group for group in settings.resource_groups if group.holds(namespace, annotations)), None)
    if group:
        _join(spec, group)
    return Allow(patch=json_patch(pod, wanted))


def _gate(spec: Json) -> None:
    gates = spec.get("schedulingGates", [])
    if all(gate.get("name") != QUEUE_ALLOCATION_GATE for gate in gates):
        spec["schedulingGates"] = [*gates, {"name": QUEUE_ALLOCATION_GATE}]


def _join(spec: Json, group: ResourceGroup) -> None:
    """Labels and scheduler of the group win over the pod's; a toleration the pod already has is not repeated."""
    if group.labels:
        spec["nodeSelector"] = {**spec.get("nodeSelector", {}), **group.labels}
    if group.affinity is not None and "affinity" not in spec:
        spec["affinity"] = copy.deepcopy(group.affinity)
    have = spec.get("tolerations", [])
    added = [toleration for toleration in group.tolerations if toleration not in have]
    if added:
        spec["tolerations"] = [*have, *copy.deepcopy(added)]
    if group.scheduler_name:
        spec["schedulerName"] = group.scheduler_name
