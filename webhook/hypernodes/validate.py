"""What a HyperNode must satisfy (POST /hypernodes/validate, CREATE and UPDATE). The tree as a whole is the controller's.

Differences from volcano ed72c7c: a label selector that can never be evaluated and a HyperNode that is its own member are
refused."""

from __future__ import annotations

from extender.api.checks import Faults, selector_faults
from extender.api.errors import Fault, InvalidObject
from extender.api.meta import Json
from extender.api.pattern import pattern
from extender.cluster.port import AdmissionRequest
from webhook.settings import Settings
from webhook.verdict import Verdict, verdict
from webhook.view import ClusterView


def validate(request: AdmissionRequest, _cluster: ClusterView, _settings: Settings) -> Verdict:
    return verdict(_faults(request.object or {}))


def _faults(hyper_node: Json) -> Faults:
    name, members = hyper_node.get("metadata", {}).get("name", ""), hyper_node.get("spec", {}).get("members", [])
    if not members:
        yield Fault("spec.members", "at least one member is required")
    for index, member in enumerate(members):
        selector, at = member.get("selector", {}), f"spec.members[{index}].selector"
        try:
            pattern(selector.get("regexMatch", {}).get("pattern", ""))
        except InvalidObject as error:
            yield Fault(f"{at}.regexMatch.pattern", str(error))
        yield from selector_faults(selector.get("labelMatch", {}), f"{at}.labelMatch")
        exact = selector.get("exactMatch", {}).get("name", "")
        if member.get("type") == "HyperNode" and exact and exact == name:
            yield Fault(f"{at}.exactMatch.name", f"'{name}' cannot be a member of itself")
