"""matchLabelKeys and mismatchLabelKeys of pod affinity: written into the label selectors when a pod is created, with the values
that the pod's own labels have then; kube-scheduler reads the selectors only.

Source: kubernetes v1.36.1 pkg/registry/core/pod/strategy.go, applyMatchLabelKeysAndMismatchLabelKeys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from extender.api.meta import Json

_SORTS = ("podAffinity", "podAntiAffinity")
_REQUIRED, _PREFERRED = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
_KEYS = (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))


def with_label_keys(spec: Json, labels: Mapping[str, str]) -> Json:
    """The pod's spec; what is of the wrong type is left for validation to name."""
    affinity = spec.get("affinity")
    if not isinstance(affinity, dict) or not any(isinstance(affinity.get(sort), dict) for sort in _SORTS):
        return spec
    merged = {sort: _terms(affinity[sort], labels) for sort in _SORTS if isinstance(affinity.get(sort), dict)}
    return {**spec, "affinity": {**affinity, **merged}}


def _terms(listed: Json, labels: Mapping[str, str]) -> Json:
    found = dict(listed)
    for name, change in ((_REQUIRED, lambda term: _merged(term, labels)), (_PREFERRED, lambda term: _weighted(term, labels))):
        if isinstance(found.get(name), list):
            found[name] = _each(found[name], change)
    return found


def _each(terms: list[Any], change: Callable[[Json], Json]) -> list[Any]:
    return [change(term) if isinstance(term, dict) else term for term in terms]


def _weighted(term: Json, labels: Mapping[str, str]) -> Json:
    inner = term.get("podAffinityTerm")
    return {**term, "podAffinityTerm": _merged(inner, labels)} if isinstance(inner, dict) else term


def _merged(term: Json, labels: Mapping[str, str]) -> Json:
    """A term without a selector matches no pod, and a key that the pod has no label for says nothing."""
    selector = term.get("labelSelector")
    if not isinstance(selector, dict):
        return term
    keys = ((operator, key) for field, operator in _KEYS if isinstance(term.get(field), list) for key in term[field])
    made = [{"key": k, "operator": operator, "values": [labels[k]]} for operator, k in keys if isinstance(k, str) and k in labels]
    before = selector.get("matchExpressions") or []
    if not made or not isinstance(before, list):
        return term
    return {**term, "labelSelector": {**selector, "matchExpressions": [*before, *made]}}
