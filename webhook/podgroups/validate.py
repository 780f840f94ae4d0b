"""What a PodGroup must satisfy (POST /podgroups/validate, CREATE). Root and inner queues are not refused here.

Differences from volcano ed72c7c: two subgroups of one name and negative minimums are refused."""

from __future__ import annotations

from extender.api import quantity
from extender.api.checks import Faults, repeated
from extender.api.errors import Fault
from extender.api.meta import Json
from extender.cluster.port import AdmissionRequest
from webhook.destination import open_queue_faults, topology_faults
from webhook.settings import Settings
from webhook.verdict import Verdict, verdict
from webhook.view import ClusterView


def validate(request: AdmissionRequest, cluster: ClusterView, _settings: Settings) -> Verdict:
    return verdict(_faults((request.object or {}).get("spec", {}), cluster))


def _faults(spec: Json, cluster: ClusterView) -> Faults:
    if spec.get("queue"):
        yield from open_queue_faults(spec["queue"], cluster, "spec.queue")
    yield from topology_faults(spec.get("networkTopology", {}), "spec.networkTopology")
    subgroups = spec.get("subGroupPolicy", [])
    for index, subgroup in enumerate(subgroups):
        yield from topology_faults(subgroup.get("networkTopology", {}), f"spec.subGroupPolicy[{index}].networkTopology")
    yield from repeated((subgroup.get("name") for subgroup in subgroups), "spec.subGroupPolicy", "name")
    for name, amount in spec.get("minResources", {}).items():
        if quantity.nanos(amount) < 0:
            yield Fault(f"spec.minResources.{name}", f"is {amount}, must not be negative")
    for task, least in spec.get("minTaskMember", {}).items():
        if least < 0:
            yield Fault(f"spec.minTaskMember.{task}", f"is {least}, must not be negative")
