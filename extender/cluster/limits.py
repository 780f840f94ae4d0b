"""LimitRanges: what containers ask for that say nothing, and how little and how much may be asked.

Source: kubernetes v1.36.1 plugin/pkg/admission/limitranger, pkg/apis/core/v1/defaults.go; the words are theirs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from extender.api.meta import POD, PVC, Json, Kind
from extender.api.pod import PodSpec
from extender.api.pod_requests import effective_requests
from extender.api.quantity import format_nanos, nanos
from extender.api.views import view
from extender.cluster import refusals
from extender.cluster.quota import limits_as_requests

Amounts = Mapping[str, int]
_CONTAINERS = ("containers", "initContainers")


def with_defaults(limit_range: Json) -> Json:
    """A container's default limit is the maximum, its default request that limit or else the minimum."""
    spec = limit_range.get("spec") or {}
    whole = [_item_with_defaults(item) for item in spec.get("limits") or ()]
    return {**limit_range, "spec": {**spec, "limits": whole}}


def _item_with_defaults(item: Json) -> Json:
    if item.get("type") != "Container":
        return item
    limits = {**(item.get("max") or {}), **(item.get("default") or {})}
    requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
    return {**item, **({"default": limits} if limits else {}), **({"defaultRequest": requests} if requests else {})}


def with_limits(pod: Json, ranges: Sequence[Json]) -> Json:
    """The pod with what its namespace's ranges say for containers that do not; what a container writes comes first."""
    items = [item for item in _items(ranges) if item.get("type") == "Container"]
    spec = pod.get("spec")
    if not items or not spec:
        return pod
    limits: Json = {}
    requests: Json = {}
    for item in items:  # the first that says something counts
        limits = {**(item.get("default") or {}), **limits}
        requests = {**(item.get("defaultRequest") or {}), **requests}
    filled = {part: [_filled(each, limits, requests) for each in spec[part]] for part in _CONTAINERS if spec.get(part)}
    return {**pod, "spec": {**spec, **filled}}


def _filled(container: Json, limits: Json, requests: Json) -> Json:
    resources = container.get("resources") or {}
    own = resources.get("limits") or {}
    asked = {**requests, **own, **(resources.get("requests") or {})}
    return {**container, "resources": {**resources, "limits": {**limits, **own}, "requests": asked}}


def check(kind: Kind, obj: Json, ranges: Sequence[Json]) -> None:
    """Raises Denied with every limit of the namespace that the object does not keep."""
    broken = [why for item in _items(ranges) for why in _broken(kind, obj, item)]
    if broken:
        raise refusals.forbidden(kind, obj["metadata"]["name"], broken[0] if len(broken) == 1 else f"[{', '.join(broken)}]")


def _items(ranges: Iterable[Json]) -> Iterator[Json]:
    return (item for each in ranges for item in (each.get("spec") or {}).get("limits") or ())


def _broken(kind: Kind, obj: Json, item: Json) -> Iterator[str]:
    spec, sort = obj.get("spec") or {}, item.get("type", "")
    if kind == PVC and sort == "PersistentVolumeClaim":
        asked = _amounts((spec.get("resources") or {}).get("requests"))
        yield from _below(item, asked, asked)
        yield from _above(item, asked, "request")
    elif kind == POD and sort == "Container":
        for container in (each for part in _CONTAINERS for each in spec.get(part) or ()):
            resources = container.get("resources") or {}
            yield from _beyond(item, _amounts(resources.get("requests")), _amounts(resources.get("limits")))
    elif kind == POD and sort == "Pod":
        requests, limits = (effective_requests(view(PodSpec, each)) for each in (spec, limits_as_requests(spec)))
        yield from _beyond(item, {n: a for n, a in requests.items() if a}, {n: a for n, a in limits.items() if a})


def _amounts(listed: Any) -> Amounts:
    return {name: nanos(amount) for name, amount in (listed or {}).items()}


def _beyond(item: Json, requests: Amounts, limits: Amounts) -> Iterator[str]:
    yield from _below(item, requests, limits)
    yield from _above(item, limits, "limit")
    yield from _apart(item, requests, limits)


def _below(item: Json, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for name, amount in (item.get("min") or {}).items():
        said = f"minimum {name} usage per {item['type']} is {amount}"
        if name not in requests:
            yield f"{said}.  No request is specified"
        elif requests[name] < nanos(amount):
            yield f"{said}, but request is {_text(name, requests[name])}"
        elif limits.get(name, requests[name]) < nanos(amount):
            yield f"{said}, but limit is {_text(name, limits[name])}"


def _above(item: Json, amounts: Amounts, what: str) -> Iterator[str]:
    """A request is never above its limit: that is checked of every pod."""
    for name, amount in (item.get("max") or {}).items():
        said = f"maximum {name} usage per {item['type']} is {amount}"
        if name not in amounts:
            yield f"{said}.  No {what} is specified"
        elif amounts[name] > nanos(amount):
            yield f"{said}, but {what} is {_text(name, amounts[name])}"


def _apart(item: Json, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for name, ratio in (item.get("maxLimitRequestRatio") or {}).items():
        said = f"{name} max limit to request ratio per {item['type']} is {ratio}"
        if not requests.get(name):
            yield f"{said}, but no request is specified or request is 0"
        elif not limits.get(name):
            yield f"{said}, but no limit is specified or limit is 0"
        elif limits[name] * nanos(1) > nanos(ratio) * requests[name]:
            yield f"{said}, but provided ratio is {limits[name] / requests[name]:f}"


def _text(name: str, amount: int) -> str:
    return format_nanos(amount, binary=name in ("memory", "storage", "ephemeral-storage"))
