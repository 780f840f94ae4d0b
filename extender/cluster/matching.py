"""Selector strings of list and watch, turned into one predicate on JSON objects.

Sources: k8s.io/apimachinery v0.36.1 pkg/fields ParseSelector; the fields each kind supports are those
of kubernetes v1.36.1 pkg/apis/*/v1/conversion.go and pkg/registry/*/strategy.go."""

from __future__ import annotations

import re
from collections.abc import Callable

from extender.api.errors import BadRequest, InvalidObject
from extender.api.meta import EVENT, NAMESPACE, POD, SECRET, Json, Kind, labels_of
from extender.api.selectors import Requirement, parse_selector

Predicate = Callable[[Json], bool]

_EVERY_KIND = ("metadata.name", "metadata.namespace")
_FIELDS: dict[Kind, tuple[str, ...]] = {
    POD: ("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "status.phase",
          "status.podIP", "status.nominatedNodeName"),
    EVENT: ("involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
            "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason",
            "reportingComponent", "source", "type"),
    NAMESPACE: ("status.phase",),
    SECRET: ("type",),
}  # fmt: skip


def predicate(kind: Kind, label_selector: str, field_selector: str) -> Predicate | None:
    """None where everything matches. Raises BadRequest where a selector cannot be read."""
    tests: list[Predicate] = []
    if label_selector:
        requirements = _labels(label_selector)
        tests.append(lambda obj: all(r.matches(labels_of(obj)) for r in requirements))
    if field_selector:
        tests.extend(_field_tests(kind, field_selector))
    if not tests:
        return None
    return tests[0] if len(tests) == 1 else lambda obj: all(test(obj) for test in tests)


def _labels(selector: str) -> tuple[Requirement, ...]:
    try:
        return parse_selector(selector)
    except InvalidObject as error:
        raise BadRequest(f"unable to parse requirement: {error}") from None


def _field_tests(kind: Kind, selector: str) -> list[Predicate]:
    tests = []
    for term in selector.split(","):
        found = re.fullmatch(r"\s*([\w.]+)\s*(==|=|!=)\s*(.*?)\s*", term)
        if found is None:
            raise BadRequest(f"invalid field selector {selector!r}; can't understand {term!r}")
        path, operator, value = found.groups()
        if path not in _EVERY_KIND and path not in _FIELDS.get(kind, ()):
            raise BadRequest(f"field label not supported: {path}")
        tests.append(_field_test(path, value, operator != "!="))
    return tests


def _field_test(path: str, wanted: str, equal: bool) -> Predicate:
    steps = ("source", "component") if path == "source" else tuple(path.split("."))

    def test(obj: Json) -> bool:
        value: object = obj
        for step in steps:
            value = value.get(step) if isinstance(value, dict) else None
        return (str("" if value is None else value) == wanted) is equal

    return test
