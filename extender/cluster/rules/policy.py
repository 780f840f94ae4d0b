"""Priorities, disruption budgets, quotas and limits.

Source: kubernetes v1.36.1 pkg/apis/{scheduling,policy,core}/validation."""

from __future__ import annotations

from itertools import pairwise

from extender.api import quantity
from extender.api.checks import (
    Faults,
    amount_fault,
    apply,
    apply_each,
    one_of,
    qualified_name,
    repeated,
    required,
    selector_faults,
)
from extender.api.errors import Fault
from extender.api.meta import Json
from extender.cluster.rules.workloads import part

SYSTEM_CLASSES = {"system-cluster-critical": 2000000000, "system-node-critical": 2000001000}
_HIGHEST = 1_000_000_000  # of what people may define

_POD_COMPUTE = frozenset(f"{kind}{name}" for kind in ("", "requests.", "limits.") for name in ("cpu", "memory"))
_COUNTED = frozenset({
    *_POD_COMPUTE, "ephemeral-storage", "requests.ephemeral-storage", "limits.ephemeral-storage", "requests.storage", "pods",
    "services", "services.nodeports", "services.loadbalancers", "replicationcontrollers", "resourcequotas", "secrets",
    "configmaps", "persistentvolumeclaims",
})  # fmt: skip
_HUGE = ("hugepages-", "requests.hugepages-")
_OPPOSITE = {"BestEffort": "NotBestEffort", "Terminating": "NotTerminating"}
_LIMITED = {  # scope > what may be limited with it
    "BestEffort": frozenset({"pods"}),
    **dict.fromkeys(("NotBestEffort", "Terminating", "NotTerminating", "PriorityClass", "CrossNamespacePodAffinity"),
                    _POD_COMPUTE | {"pods"}),
    "VolumeAttributesClass": frozenset({"persistentvolumeclaims", "requests.storage"}),
}  # fmt: skip
_SCOPE = one_of(*_LIMITED)
_SCOPE_OPERATORS = one_of("In", "NotIn", "Exists", "DoesNotExist")
_WITH_VALUES = ("PriorityClass", "VolumeAttributesClass")


def priority_class_faults(new: Json) -> Faults:
    value, name = new.get("value", 0), new.get("metadata", {}).get("name", "")
    yield from apply({"preemptionPolicy": one_of("PreemptLowerPriority", "Never")}, new, "")
    if SYSTEM_CLASSES.get(name) == value:
        return
    if name.startswith("system-"):
        yield Fault("metadata.name", "names that begin with 'system-' are the system's own")
    if value > _HIGHEST:
        yield Fault("value", f"is {value}, the highest that can be defined is {_HIGHEST}")


def budget_faults(new: Json) -> Faults:
    spec = new.get("spec", {})
    if "minAvailable" in spec and "maxUnavailable" in spec:
        yield Fault("spec", "minAvailable and maxUnavailable cannot be given both")
    yield from apply({"minAvailable": part, "maxUnavailable": part,
                      "unhealthyPodEvictionPolicy": one_of("IfHealthyBudget", "AlwaysAllow")}, spec, "spec")  # fmt: skip
    yield from selector_faults(spec.get("selector", {}), "spec.selector")


# --- quotas -----------------------------------------------------------------------------------------------------------
def quota_faults(new: Json) -> Faults:
    spec = new.get("spec", {})
    hard, scopes = spec.get("hard", {}), spec.get("scopes", [])
    for name, amount in hard.items():
        known = "/" in name or name in _COUNTED or name.startswith(_HUGE)
        unknown = "" if known else f"'{name}' cannot be limited: use cpu, requests.memory, pods, count/<resource> ..."
        for wrong in filter(None, (qualified_name(name) or unknown, amount_fault(name, amount))):
            yield Fault(f"spec.hard[{name}]", wrong)
    yield from _scope_faults(scopes, [*hard], "spec.scopes")
    lines = spec.get("scopeSelector", {}).get("matchExpressions", [])
    for index, line in enumerate(lines):
        yield from _scope_line_faults(line, f"spec.scopeSelector.matchExpressions[{index}]")
    yield from _scope_faults([line.get("scopeName", "") for line in lines], [*hard], "spec.scopeSelector.matchExpressions")


def _scope_faults(scopes: list[str], limited: list[str], path: str) -> Faults:
    yield from apply_each(_SCOPE, scopes, path)
    for scope in scopes:
        if _OPPOSITE.get(scope) in scopes:
            yield Fault(path, f"{scope} and {_OPPOSITE[scope]} exclude each other")
        for name in limited if scope in _LIMITED else ():
            if name in _COUNTED and name not in _LIMITED[scope]:
                yield Fault(path, f"{name} cannot be limited within the scope {scope}")


def _scope_line_faults(line: Json, path: str) -> Faults:
    scope, operator, values = line.get("scopeName", ""), line.get("operator", ""), line.get("values", [])
    yield from apply({"operator": _SCOPE_OPERATORS}, {"operator": operator}, path)
    if scope in _LIMITED and scope not in _WITH_VALUES and operator != "Exists":
        yield Fault(f"{path}.operator", f"must be Exists for the scope {scope}")
    if operator in ("In", "NotIn") and not values:
        yield Fault(f"{path}.values", f"{operator} needs at least one value")
    if operator in ("Exists", "DoesNotExist") and values:
        yield Fault(f"{path}.values", f"{operator} takes no values")


# --- limits -----------------------------------------------------------------------------------------------------------
_SIZES = ("cpu", "memory", "ephemeral-storage", "storage")
_RISING = ("min", "defaultRequest", "default", "max")


def limit_range_faults(new: Json) -> Faults:
    limits = new.get("spec", {}).get("limits", [])
    yield from repeated((limit.get("type") for limit in limits), "spec.limits", "type")
    for index, limit in enumerate(limits):
        yield from _limit_faults(limit, f"spec.limits[{index}]")


def _limit_faults(limit: Json, path: str) -> Faults:
    sort = limit.get("type", "")
    yield from required(limit, path, "type")
    if sort not in ("", "Container", "Pod", "PersistentVolumeClaim") and "/" not in sort:
        yield Fault(f"{path}.type", f"'{sort}' is not supported; known: Container, Pod, PersistentVolumeClaim")
    for field in ("default", "defaultRequest") if sort == "Pod" else ():
        if limit.get(field):
            yield Fault(f"{path}.{field}", "cannot be set for pods: only containers have defaults")
    if sort == "PersistentVolumeClaim" and not any("storage" in limit.get(field, {}) for field in ("min", "max")):
        yield Fault(path, "min or max of storage is required")
    for field in (*_RISING, "maxLimitRequestRatio"):
        for name in limit.get(field, {}):
            known = "/" in name or name in _SIZES or name.startswith("hugepages-")
            wrong = qualified_name(name) or ("" if known else f"'{name}' cannot be limited; known: {', '.join(_SIZES)}")
            if wrong:
                yield Fault(f"{path}.{field}[{name}]", wrong)
    yield from _order_faults(limit, path)


def _order_faults(limit: Json, path: str) -> Faults:
    """min <= defaultRequest <= default <= max, as far as they are given; a ratio is 1 at least and can be met."""
    for name in dict.fromkeys(name for field in _RISING for name in limit.get(field, {})):
        given = [(field, limit[field][name]) for field in _RISING if name in limit.get(field, {})]
        for (lower, low), (upper, high) in pairwise(given):
            if quantity.nanos(low) > quantity.nanos(high):
                yield Fault(f"{path}.{lower}[{name}]", f"is {low}, must be at most {upper} ({high})")
    for name, ratio in limit.get("maxLimitRequestRatio", {}).items():
        if quantity.nanos(ratio) < quantity.nanos(1):
            yield Fault(f"{path}.maxLimitRequestRatio[{name}]", f"is {ratio}, must be at least 1")
