"""A pod > its ResourceClaims, or what keeps them from being served on any node.

Source: kube-scheduler v1.36.1, plugins/dynamicresources, PreFilter; k8s.io/dynamic-resource-allocation, resourceclaim."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from extender.api import meta
from extender.api.claim import DeviceRequest, ResourceClaim
from extender.api.meta import Key, Kind
from extender.api.pod import Pod, PodClaim
from extender.api.views import View

Facts = Mapping[Kind, Mapping[Key, View]]


@dataclass(frozen=True, slots=True, eq=False)
class WantedClaim:
    """`own`: it was made for this pod from a template, and nobody else uses it."""

    claim: ResourceClaim
    own: bool

    @property
    def key(self) -> Key:
        return self.claim.metadata.key


@dataclass(frozen=True, slots=True, eq=False)
class Wanted:
    """`problem`: why no node will do for now, "" where nothing is wrong."""

    claims: tuple[WantedClaim, ...] = ()
    problem: str = ""


class _NotNow(Exception):
    """The text is the problem."""


def wanted(pod: Pod, facts: Facts) -> Wanted:
    try:
        claims = [_claim(pod, listed, facts) for listed in pod.spec.resource_claims or ()]
        found = tuple(each for each in claims if each is not None)
        for each in found:
            if each.claim.status.allocation is None:
                for request in each.claim.spec.devices.requests or ():
                    _check_classes(request, facts)
    except _NotNow as problem:
        return Wanted(problem=str(problem))
    return Wanted(found)


def _claim(pod: Pod, listed: PodClaim, facts: Facts) -> WantedClaim | None:
    name, own = listed.resource_claim_name, False
    if not name:
        name, own = _made_for(pod, listed, facts), True
        if not name:
            return None  # Kubernetes decided that the pod needs none
    claim = facts[meta.RESOURCE_CLAIM].get(Key(pod.metadata.namespace, name))
    if not isinstance(claim, ResourceClaim):
        raise _NotNow(f'resourceclaim "{name}" not found')
    if claim.metadata.deletion_timestamp:
        raise _NotNow(f'resourceclaim "{name}" is being deleted')
    owner = claim.metadata.controller
    if own and (owner is None or owner.uid != pod.metadata.uid):
        raise _NotNow(f'resourceclaim "{name}" was not created for the pod: the pod is not its owner')
    return WantedClaim(claim, own)


def _made_for(pod: Pod, listed: PodClaim, facts: Facts) -> str:
    """Name of the claim that was made from the template that the pod names, "" where none is needed."""
    template = listed.resource_claim_template_name
    if not template:
        raise _NotNow(f'claim "{listed.name}" of the pod names neither a ResourceClaim nor a template')
    for status in pod.status.resource_claim_statuses or ():
        if status.name == listed.name:
            return status.resource_claim_name
    if Key(pod.metadata.namespace, template) not in facts[meta.RESOURCE_CLAIM_TEMPLATE]:
        raise _NotNow(f'ResourceClaim not created yet: there is no ResourceClaimTemplate "{template}"')
    raise _NotNow(f'ResourceClaim not created yet from template "{template}"')


def _check_classes(request: DeviceRequest, facts: Facts) -> None:
    if request.exactly is not None:
        asked = [(request.name, request.exactly.device_class_name)]
    else:
        asked = [(f"{request.name}/{sub.name}", sub.device_class_name) for sub in request.first_available or ()]
    if not asked:
        raise _NotNow(f"request {request.name}: unknown request type")
    for name, class_ in asked:
        if Key("", class_) not in facts[meta.DEVICE_CLASS]:
            raise _NotNow(f"request {name}: device class {class_} does not exist")
