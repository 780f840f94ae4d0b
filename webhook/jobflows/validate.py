"""What a JobFlow must satisfy (POST /jobflows/validate, CREATE and UPDATE): flows wait only for flows, and never in a ring.

Difference from volcano ed72c7c: two flows of one name are refused (there the second silently replaces the first)."""

from __future__ import annotations

from extender.api.checks import Faults, repeated
from extender.api.errors import Fault
from extender.api.meta import Json
from extender.cluster.port import AdmissionRequest
from webhook.graph import cycle, edges
from webhook.settings import Settings
from webhook.verdict import Verdict, verdict
from webhook.view import ClusterView


def validate(request: AdmissionRequest, _cluster: ClusterView, _settings: Settings) -> Verdict:
    return verdict(_faults((request.object or {}).get("spec", {}).get("flows", [])))


def _faults(flows: list[Json]) -> Faults:
    needs = edges((flow.get("name", ""), flow.get("dependsOn", {}).get("targets", [])) for flow in flows)
    yield from repeated((flow.get("name") for flow in flows), "spec.flows", "name")
    for index, flow in enumerate(flows):
        for position, target in enumerate(flow.get("dependsOn", {}).get("targets", [])):
            if target not in needs:
                where = f"spec.flows[{index}].dependsOn.targets[{position}]"
                yield Fault(where, f"flow '{target}' is not defined; the flows are {', '.join(needs)}")
    ring = cycle(needs)
    if ring:
        yield Fault("spec.flows", f"flows wait for each other in a cycle: {' -> '.join(ring)}; dependsOn must be acyclic")
