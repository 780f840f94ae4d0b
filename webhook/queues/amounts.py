"""Amounts of queues: sums and comparisons per resource, in nano-units, rounded up as the scheduler counts them.

Only what a queue can count takes part in the comparison of parents and children (volcano ed72c7c, api.NewResource): cpu,
memory, pods, ephemeral-storage, huge pages, attachable volumes, extended resources and those of Kubernetes that have a
domain. Other names are ignored there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from extender.api import quantity
from extender.api.checks import is_extended
from extender.api.meta import Json

Amounts = Mapping[str, int]


def amounts(queue: Json, field: str) -> dict[str, int]:
    """The countable resources of `capability`, `deserved` or `guarantee`."""
    given = resources(queue, field)
    return {name: _rounded(name, amount) for name, amount in given.items() if _countable(name)}


def _rounded(name: str, amount: Any) -> int:
    """Bytes of memory and pods are whole, all else is counted in thousandths."""
    unit = quantity.NANO if name in ("memory", "pods") else quantity.NANO // 1000
    return -(-quantity.nanos(amount) // unit) * unit


def resources(queue: Json, field: str) -> Json:
    """As written; the guarantee lies one level deeper."""
    given: Json = queue.get("spec", {}).get(field, {})
    return given.get("resource", {}) if field == "guarantee" else given


def field_path(field: str) -> str:
    return "spec.guarantee.resource" if field == "guarantee" else f"spec.{field}"


def total(parts: Iterable[Amounts]) -> dict[str, int]:
    result: dict[str, int] = {}
    for part in parts:
        for name, amount in part.items():
            result[name] = result.get(name, 0) + amount
    return result


def shown(name: str, amount: int) -> str:
    return quantity.format_nanos(amount, binary=name == "memory")


def _countable(name: str) -> bool:
    if name.startswith("count/"):  # a quota of objects
        return False
    counted = name in ("cpu", "memory", "pods", "ephemeral-storage") or name.startswith(("hugepages-", "attachable-volumes-"))
    return counted or "kubernetes.io/" in name or is_extended(name)
