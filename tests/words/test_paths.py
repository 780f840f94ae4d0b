"""Paths and predicates of stories."""

from __future__ import annotations

from typing import Any

import pytest

from extender.testing.paths import MISSING, fault, related, values_at

POD = {
    "metadata": {"annotations": {"a.b/c": "x"}},
    "spec": {"tasks": [{"name": "m"}, {"name": "w"}]},
    "status": {"conditions": [{"type": "Ready", "status": "True"}]},
}
FOUND: dict[str, tuple[str, list[Any]]] = {
    "a field": ("spec.tasks[1].name", ["w"]),
    "a key with dots": ("metadata.annotations[a.b/c]", ["x"]),
    "an item by a field": ("status.conditions[type=Ready].status", ["True"]),
    "every item": ("spec.tasks[*].name", ["m", "w"]),
    "nothing below nothing": ("status.state.phase", [MISSING]),
    "no such index": ("spec.tasks[2].name", [MISSING]),
}


@pytest.mark.parametrize(("path", "want"), FOUND.values(), ids=FOUND)
def test_values_at(path: str, want: list[Any]) -> None:
    """A path finds one value, or one of each item."""
    assert values_at(POD, path) == want


HOLDS: dict[str, tuple[dict[str, Any], bool]] = {
    "equals": ({"path": "spec.tasks[0].name", "equals": "m"}, True),
    "equals all of them": ({"path": "spec.tasks[*].name", "equals": "m"}, False),
    "absent": ({"path": "status.phase", "absent": True}, True),
    "not absent": ({"path": "spec.tasks", "absent": True}, False),
    "missing counts as none": ({"path": "status.count", "atMost": 0}, True),
    "keys of a missing map": ({"path": "metadata.labels", "keysEqual": []}, True),
    "matches needs a value": ({"path": "status.phase", "matches": ".*"}, False),
    "other order": ({"path": "spec.tasks", "equalsUnordered": [{"name": "w"}, {"name": "m"}]}, True),
}


@pytest.mark.parametrize(("check", "holds"), HOLDS.values(), ids=HOLDS)
def test_predicates(check: dict[str, Any], holds: bool) -> None:
    """A fault is told exactly where the predicate does not hold."""
    assert (fault(POD, check) is None) == holds


def test_related_fields() -> None:
    """A field, the one above it, the one below it; not its neighbour."""
    pairs = [("spec", "spec.queue"), ("spec.tasks[0].name", "spec.tasks[0]"), ("spec.queue", "spec.tasks")]
    assert [related(*pair) for pair in pairs] == [True, True, False]
