"""What a pod of a template uses, as a ResourceQuota counts it, plus extended resources under their bare names.

Source: k8s.io/kubernetes v1.36.1, pkg/quota/v1/evaluator/core/pods.go; volcano ed72c7c, pkg/controllers/util.
Limits do not stand in for requests: a template has not been defaulted by the API server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from extender.api import quantity
from extender.api.meta import Json
from extender.api.pod import Container, PodSpec, Resources
from extender.api.pod_requests import effective_requests
from extender.api.views import view

Amounts = dict[str, int]  # resource name -> nano-units

_PLAIN = ("cpu", "memory", "ephemeral-storage")


def pod_usage(spec: Json) -> Amounts:
    """Of one pod with this spec. Raises InvalidObject."""
    pod = view(PodSpec, spec)
    requests = effective_requests(pod)
    limits = effective_requests(_with_limits_for_requests(pod))
    usage: Amounts = {"count/pods": quantity.NANO, "pods": quantity.NANO}
    for name, amount in requests.items():
        usage[f"requests.{name}"] = amount
        usage[name] = amount
    usage |= {f"limits.{name}": limits[name] for name in _PLAIN if name in limits}
    return usage


def add(total: Amounts, usage: Mapping[str, int], times: int) -> None:
    for name, amount in usage.items():
        total[name] = total.get(name, 0) + amount * times


def as_quantities(amounts: Mapping[str, int], spelled: Iterable[Json] = ()) -> dict[str, str]:
    """Canonical texts, in the notation (binary or decimal) in which the given pod specs first speak of a resource."""
    binary: dict[str, bool] = {}
    for spec in spelled:
        for name, text in _spelled(spec):
            binary.setdefault(name, text.endswith("i"))
    return {
        name: quantity.format_nanos(amount, binary=binary.get(name, binary.get(f"requests.{name}", False)))
        for name, amount in amounts.items()
    }


def _spelled(spec: Json) -> Iterable[tuple[str, str]]:
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        resources: Mapping[str, Any] = container.get("resources") or {}
        for listed in ("requests", "limits"):
            for name, text in (resources.get(listed) or {}).items():
                yield f"{listed}.{name}", str(text)


def _with_limits_for_requests(pod: PodSpec) -> PodSpec:
    """The same pod asking for its limits, so that one function works out both sums. Overhead counts only for requests."""

    def swap(containers: Iterable[Container] | None) -> tuple[Container, ...]:
        return tuple(
            Container(restart_policy=each.restart_policy, resources=Resources(requests=each.resources.limits))
            for each in containers or ()
        )

    pod_level = Resources(requests=pod.resources.limits) if pod.resources is not None else None
    return PodSpec(containers=swap(pod.containers), init_containers=swap(pod.init_containers), resources=pod_level)
