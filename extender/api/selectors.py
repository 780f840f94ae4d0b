"""Label selectors, node selectors, taints and tolerations: views and what they match. No numpy: one object at a time.

A requirement that Kubernetes would refuse (no values for In, a word for Gt, an unknown operator) matches nothing, and so
the selector that holds it.
Source: k8s.io/apimachinery v0.36.1 pkg/labels and pkg/apis/meta/v1, k8s.io/component-helpers v0.36.1
scheduling/corev1/nodeaffinity, k8s.io/api v0.36.1 core/v1/toleration.go."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from extender.api.errors import InvalidObject
from extender.api.formats import is_label_key, is_label_value
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
    if not (_is_int64(text, syntax) and _is_int64(limit, syntax)):
        return False
    return int(text) > int(limit) if operator == "Gt" else int(text) < int(limit)


def _is_int64(text: str, syntax: re.Pattern[str] = _INTEGER) -> bool:
    return syntax.fullmatch(text) is not None and int(text) in _INT64


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


_TOKEN = re.compile(r"[ \t\r\n]*(==|!=|[=!(),<>]|[^=!(),<> \t\r\n]+)")
_BLANKS = " \t\r\n"
_WORDS = {"=": "In", "==": "In", "!=": "NotIn", "in": "In", "notin": "NotIn", ">": "Gt", "<": "Lt"}
_SYMBOLS = {"=", "==", "!=", ">", "<", "!", "(", ")", ",", ""}


@lru_cache(maxsize=1024)
def parse_selector(text: str) -> tuple[Requirement, ...]:
    """`a=b,c!=d,e in (f,g),h,!i,j>4` -> lines that must all hold; an empty text none. Raises InvalidObject.

    What labels.Parse of Kubernetes takes, to the letter: its odd corners are that `in` and `notin` may be keys and values and
    that a value may be missing (`a=`, `a in (b,)`)."""
    tokens = [*_TOKEN.findall(text.rstrip(_BLANKS)), ""]
    found: list[Requirement] = []
    at = 0
    while tokens[at]:
        requirement, at = _requirement(tokens, at, text)
        found.append(requirement)
        if not tokens[at]:
            break
        if tokens[at] != ",":
            raise _unreadable(text, tokens[at], "',' or the end")
        at += 1
        if not tokens[at]:
            raise _unreadable(text, "", "a key after ','")
    return tuple(found)


def _requirement(tokens: list[str], at: int, text: str) -> tuple[Requirement, int]:
    """One line that begins at token `at`, and the token after it."""
    negated = tokens[at] == "!"
    key = tokens[at + negated]
    at += negated + 1
    if key in _SYMBOLS:
        raise _unreadable(text, key, "a key")
    if not is_label_key(key):
        raise _unreadable(text, key, "a label key such as app or example.com/app")
    if negated or tokens[at] in ("", ","):
        return Requirement(key=key, operator="DoesNotExist" if negated else "Exists"), at
    operator = _WORDS.get(tokens[at])
    if operator is None:
        raise _unreadable(text, tokens[at], "one of " + ", ".join(_WORDS))
    if tokens[at] in ("in", "notin"):
        values, at = _value_set(tokens, at + 1, text)
    elif tokens[at + 1] in ("", ","):
        values, at = {""}, at + 1
    elif tokens[at + 1] in _SYMBOLS:
        raise _unreadable(text, tokens[at + 1], "a value")
    else:
        values, at = {tokens[at + 1]}, at + 2
    if operator in ("Gt", "Lt") and not all(_is_int64(value) for value in values):
        raise _unreadable(text, "".join(values), "an integer")
    if faulty := sorted(value for value in values if not is_label_value(value)):
        raise _unreadable(text, faulty[0], "a label value")
    return Requirement(key=key, operator=operator, values=tuple(sorted(values))), at


def _value_set(tokens: list[str], at: int, text: str) -> tuple[set[str], int]:
    """`(b, c)` that begins at token `at`; between commas and brackets a value may be missing."""
    if tokens[at] != "(":
        raise _unreadable(text, tokens[at], "'('")
    values: set[str] = set()
    due = True
    for step, token in enumerate(tokens[at + 1 :], at + 1):
        if token == ")":
            return (values | {""} if due else values), step + 1
        if token == ",":
            values |= {""} if due else set()
            due = True
        elif token in _SYMBOLS or not due:
            raise _unreadable(text, token, "',' or ')'")
        else:
            values.add(token)
            due = False
    raise _unreadable(text, "", "')'")


def _unreadable(text: str, found: str, wanted: str) -> InvalidObject:
    return InvalidObject(f"label selector '{text}': expected {wanted}, found " + (f"'{found}'" if found else "the end"))
