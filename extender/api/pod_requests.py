"""What a pod asks of its node: effective requests, also while a resize is under way."""

from __future__ import annotations

from msgspec.structs import replace

from extender.api import quantity
from extender.api.errors import InvalidObject
from extender.api.pod import Container, ContainerStatus, Pod, PodSpec, PodStatus, is_pod_level
from extender.api.views import Quantities


def effective_requests(spec: PodSpec, subject: str = "") -> dict[str, int]:
    """What the pod asks of its node: resource name -> nano-units, zero entries kept, without the pod itself.

    max over time of what runs side by side: sum of containers and sidecars (init containers with restartPolicy
    Always), or a running init container together with the sidecars started before it; pod-level resources replace the
    dimensions that they name; overhead is added. Raises InvalidObject naming the field. Limits are not looked at: where
    a request is missing the API server has written the limit there already, on creation.
    Source: k8s.io/component-helpers v0.36.1 resource.PodRequests."""
    total: dict[str, int] = {}
    for i, container in enumerate(spec.containers):
        _add(total, _amounts(container.resources.requests, f"spec.containers[{i}].resources.requests", subject))
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for i, container in enumerate(spec.init_containers or ()):
        asked = _amounts(container.resources.requests, f"spec.initContainers[{i}].resources.requests", subject)
        if container.sidecar:
            _add(total, asked)
            _add(sidecars, asked)
            running = sidecars
        else:
            running = dict(sidecars)
            _add(running, asked)
        for name, amount in running.items():
            peak[name] = max(peak.get(name, 0), amount)
    for name, amount in peak.items():
        total[name] = max(total.get(name, 0), amount)
    if spec.resources is not None:
        asked = _amounts(spec.resources.requests, "spec.resources.requests", subject)
        total.update((name, amount) for name, amount in asked.items() if is_pod_level(name))
    if spec.overhead:
        _add(total, _amounts(spec.overhead, "spec.overhead", subject))
    return total


def sized(pod: Pod) -> PodSpec:
    """The spec with requests as large as the pod now is: while a resize is under way the largest of asked, granted and in use.

    A resize that the node called infeasible does not count as asked. Without a resize it is the pod's own spec.
    Source: k8s.io/component-helpers v0.36.1 resource.PodRequests with UseStatusResources, on since Kubernetes 1.33."""
    spec, status = pod.spec, pod.status
    if not (status.container_statuses or status.init_container_statuses or status.resources):
        return spec
    asked_counts = not _resize_infeasible(status)
    states = {state.name: state for state in (*(status.container_statuses or ()), *(status.init_container_statuses or ()))}
    changes: dict[str, object] = {}
    containers = tuple(_sized(c, states.get(c.name), asked_counts) for c in spec.containers)
    if containers != spec.containers:
        changes["containers"] = containers
    inits = tuple(_sized(c, states.get(c.name), asked_counts) if c.sidecar else c for c in spec.init_containers or ())
    if inits != (spec.init_containers or ()):
        changes["init_containers"] = inits
    if spec.resources is not None and spec.resources.requests and status.resources is not None:
        grown = _largest(spec.resources.requests, status.resources.requests, status.allocated_resources, asked_counts)
        requests = {name: grown.get(name, 0) for name in spec.resources.requests}
        if requests != spec.resources.requests:
            changes["resources"] = replace(spec.resources, requests=requests)
    return replace(spec, **changes) if changes else spec


def _sized(container: Container, state: ContainerStatus | None, asked_counts: bool) -> Container:
    asked = container.resources.requests
    if state is None or state.resources is None or asked == state.resources.requests == (state.allocated_resources or asked):
        return container
    requests = _largest(asked, state.resources.requests, state.allocated_resources, asked_counts)
    if requests == (asked or {}):
        return container
    return replace(container, resources=replace(container.resources, requests=requests))


def _largest(asked: Quantities | None, used: Quantities | None, granted: Quantities | None, asked_counts: bool) -> Quantities:
    """Per resource the largest amount, in the words of who has it; what cannot be read is left for effective_requests."""
    largest: Quantities = {}
    for listed in (asked if asked_counts else None, used, granted):
        for name, text in (listed or {}).items():
            if name not in largest or _comparable(text) > _comparable(largest[name]):
                largest[name] = text
    return largest


def _comparable(text: str | int | float) -> float:
    try:
        return quantity.nanos(text)
    except InvalidObject:
        return float("inf")


def _resize_infeasible(status: PodStatus) -> bool:
    pending = next((c for c in status.conditions or () if c.type == "PodResizePending"), None)
    return pending is not None and pending.reason == "Infeasible"


def _amounts(listed: Quantities | None, path: str, subject: str) -> dict[str, int]:
    if not listed:
        return {}
    amounts = {}
    for name, text in listed.items():
        try:
            amounts[name] = quantity.nanos(text)
        except InvalidObject as error:
            raise InvalidObject(str(error), path=f"{path}[{name}]", subject=subject) from None
        if amounts[name] < 0:
            raise InvalidObject(f"'{text}' is negative", path=f"{path}[{name}]", subject=subject)
    return amounts


def _add(total: dict[str, int], amounts: dict[str, int]) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + amount
