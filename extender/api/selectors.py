"""Label selectors, node selectors, taints and tolerations: views and what they match. No numpy: one object at a time.

A requirement that Kubernetes would refuse (no values for In, a word for Gt, an unknown operator) matches nothing, and so
the selector that holds it.
Source: k8s.io/apimachinery v0.36.1 pkg/labels and pkg/apis/meta/v1, k8s.io/component-helpers v0.36.1
scheduling/corev1/nodeaffinity, k8s.io/api v0.36.1 core/v1/toleration.go."""

from __future__ import annotations

import re
from collections.abc import Mapping

from extender.api.views import View

Labels = Mapping[str, str]
_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")
_CANONICAL_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")
_INT64 = range(-(2**63), 2**63)


class Requirement(View, frozen=True):
    """One line of matchExpressions. Operators: In, NotIn, Exists, DoesNotExist; for node selectors also Gt, Lt."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None

    def matches(self, labels: Labels) -> bool:
        value = labels.get(self.key)
        wanted = self.values or ()
        match self.operator:
            case "In":
                return value is not None and value in wanted
            case "NotIn":
                return bool(wanted) and (value is None or value not in wanted)
            case "Exists":
                return value is not None and not wanted
            case "DoesNotExist":
                return value is None and not wanted
            case "Gt" | "Lt":
                return value is not None and len(wanted) == 1 and _beyond(self.operator, value, wanted[0])
        return False

    def matches_field(self, fields: Labels) -> bool:
        """As a line of matchFields: In or NotIn with one value; a field that there is not counts as empty."""
        if not self.values or len(self.values) != 1:
            return False
        same = fields.get(self.key, "") == self.values[0]
        return same if self.operator == "In" else self.operator == "NotIn" and not same


def _beyond(operator: str, text: str, limit: str, syntax: re.Pattern[str] = _INTEGER) -> bool:
    """Gt and Lt: both sides are integers of 64 bits, or there is no match."""
    if not (syntax.fullmatch(text) and syntax.fullmatch(limit)):
        return False
    have, bound = int(text), int(limit)
    if not (have in _INT64 and bound in _INT64):
        return False
    return have > bound if operator == "Gt" else have < bound


class LabelSelector(View, frozen=True):
    """An empty selector matches everything; a missing one (None at the caller) nothing."""

    match_labels: dict[str, str] | None = None
    match_expressions: tuple[Requirement, ...] | None = None

    def matches(self, labels: Labels) -> bool:
        return all(labels.get(k) == v for k, v in (self.match_labels or {}).items()) and all(
            r.operator not in ("Gt", "Lt") and r.matches(labels) for r in self.match_expressions or ()
        )

    @property
    def empty(self) -> bool:
        return not self.match_labels and not self.match_expressions

    def keys(self) -> set[str]:
        """The label keys that this selector looks at."""
        return {*(self.match_labels or ()), *(r.key for r in self.match_expressions or ())}


class NodeSelectorTerm(View, frozen=True):
    """Expressions on labels and on fields (only metadata.name); an empty term matches nothing."""

    match_expressions: tuple[Requirement, ...] | None = None
    match_fields: tuple[Requirement, ...] | None = None

    def matches(self, name: str, labels: Labels) -> bool:
        if not self.match_expressions and not self.match_fields:
            return False
        return all(r.matches(labels) for r in self.match_expressions or ()) and all(
            r.matches_field({"metadata.name": name}) for r in self.match_fields or ()
        )


class NodeSelector(View, frozen=True):
    """Terms are alternatives."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()

    def matches(self, name: str, labels: Labels) -> bool:
        return any(term.matches(name, labels) for term in self.node_selector_terms)


class PreferredSchedulingTerm(View, frozen=True):
    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(View, frozen=True):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] | None = None


class Taint(View, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class Toleration(View, frozen=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None

    def tolerates(self, taint: Taint, *, comparisons: bool = False) -> bool:
        """No effect: every effect; no key: every key. `comparisons`: Lt and Gt count, as with the Kubernetes feature gate
        TaintTolerationComparisonOperators, which is off by default (alpha in 1.36)."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        match self.operator or "Equal":
            case "Exists":
                return True
            case "Equal":
                return self.value == taint.value
            case "Gt" | "Lt" if comparisons:
                return _beyond(self.operator, taint.value, self.value, _CANONICAL_INTEGER)
        return False
