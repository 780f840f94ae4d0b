"""Builders for dynamic resource allocation: `offers("n1", device("gpu-0", model="H100"))`, `claim("mine", asks(2))`."""

from __future__ import annotations

from typing import Any

from extender.api import meta
from extender.api.meta import Json
from extender.testing.builders import Built, PodBuilder

DRIVER = "gpu.test"
CLASS = "gpu"


def device(name: str, *, capacity: dict[str, str] | None = None, **attributes: str | int | bool) -> Json:
    """A device with attributes of its driver. More fields are set in the dict itself."""
    kinds = {bool: "bool", int: "int", str: "string"}
    made: Json = {"name": name, "attributes": {key: {kinds[type(value)]: value} for key, value in attributes.items()}}
    return made | ({"capacity": {key: {"value": amount} for key, amount in capacity.items()}} if capacity else {})


def offers(node: str, *devices: Json, pool: str = "", driver: str = DRIVER, generation: int = 1, count: int = 1) -> Built:
    """The slice of a node, in a pool of its own unless one is named; `count`: of how many slices the pool consists.

    Without a node it is reached from all of them."""
    pool = pool or node or "net"
    made = Built(meta.RESOURCE_SLICE, f"{driver}-{pool}-{generation}-{node or 'all'}")
    made["spec"] = {
        "driver": driver, "devices": list(devices), **({"nodeName": node} if node else {"allNodes": True}),
        "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
    }  # fmt: skip
    return made


def device_class(name: str = CLASS, *expressions: str) -> Built:
    """Without an expression: every device of DRIVER."""
    listed = expressions or (f'device.driver == "{DRIVER}"',)
    return Built(meta.DEVICE_CLASS, name).with_("spec.selectors", [_selector(text) for text in listed])


def asks(count: int = 1, *selectors: str, class_name: str = CLASS, **more: Any) -> Json:
    """What one request asks for; `more`: fields as in the API."""
    exactly: Json = {"deviceClassName": class_name, "allocationMode": "ExactCount", "count": count, **more}
    return exactly | ({"selectors": [_selector(text) for text in selectors]} if selectors else {})


def claim(name: str, *requests: Json | list[Json], **more: Any) -> Built:
    """Requests are named r0, r1 ...; a list is one request with alternatives s0, s1 ... `more`: fields of spec.devices."""
    listed = [
        {"name": f"r{i}", "firstAvailable": [{"name": f"s{k}", **each} for k, each in enumerate(request)]}
        if isinstance(request, list)
        else {"name": f"r{i}", "exactly": request}
        for i, request in enumerate(requests or (asks(),))
    ]
    return Built(meta.RESOURCE_CLAIM, name).with_("spec.devices", {"requests": listed, **more})


def given(made: Built, *devices: str, node: str = "", driver: str = DRIVER, pool: str = "") -> Built:
    """The claim with devices that it was given before, on a node."""
    pool = pool or node
    results = [{"request": "r0", "driver": driver, "pool": pool, "device": name} for name in devices]
    allocation: Json = {"devices": {"results": results}}
    if node:
        only = {"key": "metadata.name", "operator": "In", "values": [node]}
        allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [only]}]}
    return made.with_("status.allocation", allocation)


def claims(pod: PodBuilder, *names: str) -> PodBuilder:
    """The pod with ResourceClaims by name."""
    return pod.with_("spec.resourceClaims", [{"name": name, "resourceClaimName": name} for name in names])


def from_template(pod: PodBuilder, template: str, made: str = "") -> PodBuilder:
    """The pod with a claim `gpu` from a template; `made`: the claim that was created from it."""
    pod.with_("spec.resourceClaims", [{"name": "gpu", "resourceClaimTemplateName": template}])
    return pod.with_("status.resourceClaimStatuses", [{"name": "gpu", "resourceClaimName": made}]) if made else pod


def _selector(text: str) -> Json:
    return {"cel": {"expression": text}}
