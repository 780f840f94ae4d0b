"""Label selectors, node selectors, taints and tolerations: views and what they match. No numpy: one object at a time.

Source: k8s.io/apimachinery v0.36.1 pkg/labels, k8s.io/component-helpers v0.36.1 scheduling/corev1."""

from __future__ import annotations

from collections.abc import Mapping

from extender.api.views import View

Labels = Mapping[str, str]


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
                return value is None or value not in wanted
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                return _compares(self.operator, value, wanted)
        return False


def _compares(operator: str, value: str | None, wanted: tuple[str, ...]) -> bool:
    if value is None or len(wanted) != 1:
        return False
    try:
        have, limit = int(value), int(wanted[0])
    except ValueError:
        return False
    return have > limit if operator == "Gt" else have < limit


class LabelSelector(View, frozen=True):
    """An empty selector matches everything; a missing one (None at the caller) nothing."""

    match_labels: dict[str, str] | None = None
    match_expressions: tuple[Requirement, ...] | None = None

    def matches(self, labels: Labels) -> bool:
        return all(labels.get(k) == v for k, v in (self.match_labels or {}).items()) and all(
            requirement.matches(labels) for requirement in self.match_expressions or ()
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
            r.matches({"metadata.name": name}) for r in self.match_fields or ()
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

    def tolerates(self, taint: Taint) -> bool:
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        match self.operator or "Equal":
            case "Exists":
                return True
            case "Equal":
                return bool(self.key) and self.value == taint.value
        return False
