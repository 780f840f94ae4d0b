"""What claims count as in a queue: keys as in a queue's lists that name a device class.

    deviceclass/<class>              number of devices
    <dimension>.deviceclass/<class>  capacity that is consumed of them

Requests for all devices of a pool, or for the first that is available, have no number and are not counted.
Source: volcano ed72c7c, pkg/scheduler/cache and plugins/capacity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from extender.api import meta, quantity
from extender.api.claim import ALL, ResourceClaim
from extender.api.meta import Key, Kind
from extender.api.pod import Pod
from extender.api.views import View
from extender.core import status as st
from extender.core.axis import read_quantities
from extender.core.session import Session

CLASS = "deviceclass/"
DIMENSION = ".deviceclass/"
Amounts = Counter[str]  # key as in a queue's list -> nano-units


def is_about_devices(name: str) -> bool:
    return name.startswith(CLASS) or DIMENSION in name


def counted(claim: ResourceClaim, *, consumable: bool) -> Amounts:
    total: Amounts = Counter()
    for request in claim.spec.devices.requests or ():
        exactly = request.exactly
        if exactly is None or exactly.allocation_mode == ALL or not exactly.device_class_name:
            continue
        count = exactly.count or 1
        total[CLASS + exactly.device_class_name] += count * quantity.NANO
        if consumable:
            for name, amount in read_quantities(exactly.capacity.requests, "").items():
                total[f"{name}{DIMENSION}{exactly.device_class_name}"] += count * amount
    return total


def claims_of(pod: Pod, facts: Mapping[Kind, Mapping[Key, View]]) -> dict[Key, ResourceClaim]:
    """The claims of a pod that exist."""
    keys = (Key(pod.metadata.namespace, name) for name in pod.claims)
    found = {key: facts[meta.RESOURCE_CLAIM].get(key) for key in keys}
    return {key: claim for key, claim in found.items() if isinstance(claim, ResourceClaim)}


def holding(ssn: Session) -> list[int]:
    """Tasks that hold a node and have claims; found by their shapes, not one by one."""
    by_claim = np.array([shape is not None and bool(shape.spec.resource_claims) for shape in ssn.snapshot.shapes], dtype=bool)
    if not by_claim.any():
        return []
    holds = by_claim[ssn.tasks.shape] & st.IS_ALLOCATED[ssn.task_status] & (ssn.tasks.job >= 0)
    rows: list[int] = np.flatnonzero(holds).tolist()
    return rows
