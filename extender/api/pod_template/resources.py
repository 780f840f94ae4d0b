"""Requests and limits of a container or of a pod, and the claims it names.

Source: kubernetes v1.36.1, validation.go, validateResourceRequirements, validatePodResourceConsistency."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from extender.api import quantity
from extender.api.checks import DNS_LABEL, Check, Faults, amount_fault, is_extended, is_native, qualified_name
from extender.api.errors import Fault, InvalidObject
from extender.api.meta import Json

_HUGE = "hugepages-"
_COMPUTE = ("cpu", "memory", "ephemeral-storage")


def container_resource(name: str) -> str:
    """What a container may ask for: compute, huge pages, or a resource with a domain."""
    wrong = qualified_name(name)
    if wrong:
        return wrong
    if "/" not in name:
        known = name in _COMPUTE or name.startswith(_HUGE)
        return "" if known else f"'{name}' is no resource of containers: use {', '.join(_COMPUTE)} or a name with a domain"
    return "" if is_native(name) or is_extended(name) else f"'{name}' is not the name of an extended resource"


def pod_resource(name: str) -> str:
    """What may be asked for a pod as a whole."""
    known = name in ("cpu", "memory") or name.startswith(_HUGE)
    return "" if known else f"'{name}' cannot be asked for a whole pod: use cpu, memory or hugepages"


def resource_faults(resources: Json, claims: Iterable[str], path: str, named: Check = container_resource) -> Faults:
    """Names and amounts, requests within limits, and what cannot be overcommitted equal to its limit."""
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    yield from amounts_faults(limits, f"{path}.limits", named)
    yield from amounts_faults(requests, f"{path}.requests", named)
    for name, amount in requests.items():
        strict = not is_native(name) or name.startswith(_HUGE)
        if name not in limits:
            if strict:
                yield Fault(f"{path}.limits", f"{name} cannot be overcommitted: set its limit equal to the request ({amount})")
        elif strict and quantity.nanos(amount) != quantity.nanos(limits[name]):
            yield Fault(f"{path}.requests.{name}", f"is {amount}, must be equal to the limit of {limits[name]}")
        elif quantity.nanos(amount) > quantity.nanos(limits[name]):
            yield Fault(f"{path}.requests.{name}", f"is {amount}, must be at most the limit of {limits[name]}")
    yield from huge_page_faults({*limits, *requests}, path)
    yield from _claim_faults(resources.get("claims", []), set(claims), f"{path}.claims")


def amounts_faults(amounts: Json, path: str, named: Check = container_resource) -> Faults:
    """Each resource by itself: its name and its amount."""
    for name, amount in amounts.items():
        for wrong in filter(None, (named(name), amount_fault(name, amount), _huge_page_fault(name, amount))):
            yield Fault(f"{path}.{name}", wrong)


def huge_page_faults(names: set[str], path: str) -> Faults:
    if any(name.startswith(_HUGE) for name in names) and not names & {"cpu", "memory"}:
        yield Fault(path, "huge pages need cpu or memory beside them")


def _huge_page_fault(name: str, amount: Any) -> str:
    if not name.startswith(_HUGE):
        return ""
    try:
        page = quantity.nanos(name.removeprefix(_HUGE))
    except InvalidObject:
        page = 0
    whole = page > 0 and quantity.nanos(amount) % page == 0
    return "" if whole else f"is {amount}, must be a multiple of the page size"


def _claim_faults(used: list[Json], declared: set[str], path: str) -> Faults:
    seen: set[tuple[str, str]] = set()
    for index, claim in enumerate(used):
        name, request, at = claim.get("name", ""), claim.get("request", ""), f"{path}[{index}]"
        if not name:
            yield Fault(at, "name is required")
            continue
        if name not in declared:
            yield Fault(at, f"'{name}' is not among the pod's resourceClaims ({', '.join(sorted(declared)) or 'it has none'})")
        if request and DNS_LABEL(request):
            yield Fault(f"{at}.request", DNS_LABEL(request))
        whole = (name, "") in seen or (not request and any(other == name for other, _ in seen))
        if whole or (name, request) in seen:
            yield Fault(at, f"duplicates an earlier use of the claim '{name}'")
        seen.add((name, request))


def pod_resource_faults(spec: Json, claims: Iterable[str], path: str) -> Faults:
    """Amounts for the pod as a whole must hold what its containers ask for."""
    resources, at = spec["resources"], f"{path}.resources"
    if "claims" in resources:
        yield Fault(f"{at}.claims", "claims cannot be made for a pod as a whole: name them in a container")
    yield from resource_faults(resources, claims, at, pod_resource)
    for name, amount in resources.get("requests", {}).items():
        total = _containers_need(spec, name)
        if total > quantity.nanos(amount):
            shown = quantity.format_nanos(total)
            yield Fault(f"{at}.requests.{name}", f"is {amount}, must be at least the {shown} that the containers request")
    for index, container in enumerate(spec.get("containers", [])):
        for name, amount in container.get("resources", {}).get("limits", {}).items():
            bound = resources.get("limits", {}).get(name)
            if bound is not None and quantity.nanos(amount) > quantity.nanos(bound):
                where = f"{path}.containers[{index}].resources.limits.{name}"
                yield Fault(where, f"is {amount}, must be at most the pod's limit of {bound}")


def _containers_need(spec: Json, resource: str) -> int:
    """max(containers + sidecars, every init container + the sidecars before it), in nano-units."""
    together = sum(_request(container, resource) for container in spec.get("containers", []))
    sidecars = peak = 0
    for container in spec.get("initContainers", []):
        asked = _request(container, resource)
        if container.get("restartPolicy") == "Always":
            sidecars += asked
            peak = max(peak, sidecars)
        else:
            peak = max(peak, sidecars + asked)
    return max(together + sidecars, peak)


def _request(container: Json, resource: str) -> int:
    amount = container.get("resources", {}).get("requests", {}).get(resource)
    return 0 if amount is None else quantity.nanos(amount)
