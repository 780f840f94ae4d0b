"""What is written to a claim before its pod is bound: its allocation, as the API server wants it.

Source: k8s.io/dynamic-resource-allocation v0.36.1, structured/internal/incubating/allocator_incubating.go."""

from __future__ import annotations

import uuid
from typing import Any

import msgspec

from extender.api import quantity
from extender.api.claim import Consumer, DeviceConfiguration
from extender.api.meta import Json
from extender.api.pod import Pod
from extender.api.selectors import NodeSelectorTerm, Requirement
from extender.api.views import View
from extender.core.dra.allocator import Allocated, Given


def allocation(allocated: Allocated) -> Json:
    devices: Json = {"results": [_result(allocated, number, given) for number, given in enumerate(allocated.given)]}
    config = [*_of_classes(allocated), *_of_claim(allocated)]
    if config:
        devices["config"] = config
    selector = node_selector(allocated)
    return {"devices": devices, **({"nodeSelector": selector} if selector else {})}


def _result(allocated: Allocated, number: int, given: Given) -> Json:
    device = given.offer.id
    result: Json = {"request": given.asked.name, "driver": device.driver, "pool": device.pool, "device": device.name}
    if given.asked.admin:
        result["adminAccess"] = True
    if given.asked.what.tolerations:
        result["tolerations"] = [_plain(toleration) for toleration in given.asked.what.tolerations]
    if given.share is not None:
        result["shareID"] = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{allocated.claim.metadata.uid}/{device}/{number}"))
        result["consumedCapacity"] = {name: quantity.format_nanos(amount) for name, amount in given.share.items()}
    return result


def _of_classes(allocated: Allocated) -> list[Json]:
    """The settings of each class once, with all requests of that class."""
    by_class: dict[str, list[Json]] = {}
    for asked in allocated.requests:
        class_ = asked.class_
        if class_.metadata.name not in by_class:
            made = [_configuration("FromClass", config, ()) for config in class_.spec.config or ()]
            by_class[class_.metadata.name] = made
        for config in by_class[class_.metadata.name]:
            config.setdefault("requests", []).append(asked.name)
    return [config for made in by_class.values() for config in made]


def _of_claim(allocated: Allocated) -> list[Json]:
    names = {name for asked in allocated.requests for name in (asked.request, asked.name)}
    return [
        _configuration("FromClaim", config, config.requests or ())
        for config in allocated.claim.spec.devices.config or ()
        if not config.requests or names & set(config.requests)
    ]


def _configuration(source: str, config: DeviceConfiguration, requests: tuple[str, ...]) -> Json:
    made: Json = {"source": source, **({"opaque": config.opaque} if config.opaque is not None else {})}
    return {**made, "requests": list(requests)} if requests else made


def node_selector(allocated: Allocated) -> Json | None:
    """Which nodes can use the devices: the one they are on, or those that all of them can be reached from; None: all."""
    fields: list[Requirement] = []
    expressions: list[Requirement] = []
    for given in allocated.given:
        slice_ = given.offer.slice.spec
        place = given.offer.device if slice_.per_device_node_selection else slice_
        if place.node_name:
            only = Requirement(key="metadata.name", operator="In", values=(place.node_name,))
            return _selector(NodeSelectorTerm(match_fields=(only,)))
        for term in place.node_selector.node_selector_terms[:1] if place.node_selector is not None else ():
            fields += [each for each in term.match_fields or () if each not in fields]
            expressions += [each for each in term.match_expressions or () if each not in expressions]
    if not fields and not expressions:
        return None
    return _selector(NodeSelectorTerm(match_fields=tuple(fields) or None, match_expressions=tuple(expressions) or None))


def _selector(term: NodeSelectorTerm) -> Json:
    return {"nodeSelectorTerms": [_plain(term)]}


def consumer(pod: Pod) -> Json:
    return {"resource": "pods", "name": pod.metadata.name, "uid": pod.metadata.uid}


def consumer_of(reserved: Consumer) -> Json:
    return _plain(reserved)


def _plain(view: View) -> Json:
    """JSON without what is not set."""
    return {key: _bare(value) for key, value in msgspec.to_builtins(view).items() if value not in (None, "")}


def _bare(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _bare(inner) for key, inner in value.items() if inner not in (None, "")}
    if isinstance(value, (list, tuple)):
        return [_bare(inner) for inner in value]
    return value
