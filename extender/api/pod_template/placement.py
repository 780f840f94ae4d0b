"""Where a pod may run: affinity, tolerations, spread constraints.

Source: kubernetes v1.36.1, validation.go, validateAffinity, ValidateTolerations, validateTopologySpreadConstraints."""

from __future__ import annotations

from extender.api.checks import (
    DNS_LABEL,
    DNS_SUBDOMAIN,
    LABEL_VALUE,
    Faults,
    apply,
    apply_each,
    at_least,
    between,
    one_of,
    optional,
    qualified_name,
    requirement_faults,
    selector_faults,
)
from extender.api.errors import Fault
from extender.api.meta import Json
from extender.api.shapes import PREFERRED, REQUIRED

_WEIGHT = between(1, 100)
_NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")


def affinity_faults(affinity: Json, path: str) -> Faults:
    nodes, at = affinity.get("nodeAffinity", {}), f"{path}.nodeAffinity"
    if REQUIRED in nodes:
        yield from node_selector_faults(nodes[REQUIRED], f"{at}.{REQUIRED}")
    for index, choice in enumerate(nodes.get(PREFERRED, [])):
        here = f"{at}.{PREFERRED}[{index}]"
        yield from apply({"weight": _WEIGHT}, {"weight": choice.get("weight", 0)}, here)
        yield from _node_term_faults(choice.get("preference", {}), f"{here}.preference", free_values=True)
    for kind in ("podAffinity", "podAntiAffinity"):
        pods, at = affinity.get(kind, {}), f"{path}.{kind}"
        for index, term in enumerate(pods.get(REQUIRED, [])):
            yield from _pod_term_faults(term, f"{at}.{REQUIRED}[{index}]")
        for index, choice in enumerate(pods.get(PREFERRED, [])):
            here = f"{at}.{PREFERRED}[{index}]"
            yield from apply({"weight": _WEIGHT}, {"weight": choice.get("weight", 0)}, here)
            yield from _pod_term_faults(choice.get("podAffinityTerm", {}), f"{here}.podAffinityTerm")


def node_selector_faults(selector: Json, path: str) -> Faults:
    """Terms of which one must hold; also where a volume can be reached."""
    terms = selector.get("nodeSelectorTerms", [])
    if not terms:
        yield Fault(f"{path}.nodeSelectorTerms", "at least one term is required")
    for index, term in enumerate(terms):
        yield from _node_term_faults(term, f"{path}.nodeSelectorTerms[{index}]")


def _node_term_faults(term: Json, path: str, *, free_values: bool = False) -> Faults:
    for index, line in enumerate(term.get("matchExpressions", [])):
        yield from requirement_faults(line, f"{path}.matchExpressions[{index}]", _NODE_OPERATORS, free_values=free_values)
    for index, line in enumerate(term.get("matchFields", [])):
        at = f"{path}.matchFields[{index}]"
        checks = {"key": one_of("metadata.name"), "operator": one_of("In", "NotIn")}
        yield from apply(checks, {"key": line.get("key", ""), "operator": line.get("operator", "")}, at)
        if len(line.get("values", [])) != 1:
            yield Fault(f"{at}.values", "exactly one value is required")
        yield from apply_each(DNS_SUBDOMAIN, line.get("values", []), f"{at}.values")


def _pod_term_faults(term: Json, path: str) -> Faults:
    for name in ("labelSelector", "namespaceSelector"):
        yield from selector_faults(term.get(name, {}), f"{path}.{name}")
    yield from apply_each(DNS_LABEL, term.get("namespaces", []), f"{path}.namespaces")
    yield from _label_key_faults(term, path)
    yield from apply({"topologyKey": qualified_name}, {"topologyKey": term.get("topologyKey", "")}, path)


def _label_key_faults(term: Json, path: str) -> Faults:
    """matchLabelKeys and mismatchLabelKeys: label keys, beside a selector, and not the same in both."""
    match, mismatch = term.get("matchLabelKeys", []), term.get("mismatchLabelKeys", [])
    for name, keys in (("matchLabelKeys", match), ("mismatchLabelKeys", mismatch)):
        if keys and "labelSelector" not in term:
            yield Fault(f"{path}.{name}", "needs a labelSelector")
        yield from apply_each(qualified_name, keys, f"{path}.{name}")
    for index, key in enumerate(match):
        if key in mismatch:
            yield Fault(f"{path}.matchLabelKeys[{index}]", f"'{key}' is in mismatchLabelKeys too")


def toleration_faults(tolerations: list[Json], path: str) -> Faults:
    for index, toleration in enumerate(tolerations):
        at, operator = f"{path}[{index}]", toleration.get("operator", "")
        yield from apply({
            "key": optional(qualified_name), "operator": optional(one_of("Equal", "Exists")),
            "effect": optional(one_of("NoSchedule", "PreferNoSchedule", "NoExecute")),
        }, toleration, at)  # fmt: skip
        if not toleration.get("key") and operator != "Exists":
            yield Fault(f"{at}.operator", "must be Exists where no key is given (it then matches every taint)")
        if "tolerationSeconds" in toleration and toleration.get("effect") != "NoExecute":
            yield Fault(f"{at}.effect", "must be NoExecute where tolerationSeconds is given")
        if operator == "Exists" and toleration.get("value"):
            yield Fault(f"{at}.operator", "Exists takes no value")
        elif operator in ("", "Equal"):
            yield from apply({"value": LABEL_VALUE}, toleration, at)


def spread_faults(constraints: list[Json], path: str) -> Faults:
    seen: dict[tuple[str, str], str] = {}
    for index, constraint in enumerate(constraints):
        at, action = f"{path}[{index}]", constraint.get("whenUnsatisfiable", "")
        key = (constraint.get("topologyKey", ""), action)
        if not key[0]:
            yield Fault(f"{at}.topologyKey", "topologyKey is required")
        yield from apply({
            "maxSkew": at_least(1), "whenUnsatisfiable": one_of("DoNotSchedule", "ScheduleAnyway"),
        }, {"maxSkew": constraint.get("maxSkew", 0), "whenUnsatisfiable": action}, at)  # fmt: skip
        yield from apply({
            "minDomains": at_least(1), "nodeAffinityPolicy": one_of("Honor", "Ignore"),
            "nodeTaintsPolicy": one_of("Honor", "Ignore"),
        }, constraint, at)  # fmt: skip
        if "minDomains" in constraint and action != "DoNotSchedule":
            yield Fault(f"{at}.minDomains", "needs whenUnsatisfiable: DoNotSchedule")
        if key in seen:
            yield Fault(at, f"topologyKey and whenUnsatisfiable duplicate {seen[key]}")
        seen.setdefault(key, at)
        yield from selector_faults(constraint.get("labelSelector", {}), f"{at}.labelSelector")
        yield from _label_key_faults(constraint, at)
        chosen = _selector_keys(constraint.get("labelSelector", {}))
        for position, name in enumerate(constraint.get("matchLabelKeys", [])):
            if name in chosen:
                yield Fault(f"{at}.matchLabelKeys[{position}]", f"'{name}' is in labelSelector too")


def _selector_keys(selector: Json) -> set[str]:
    return {*selector.get("matchLabels", {}), *(line.get("key", "") for line in selector.get("matchExpressions", []))}
