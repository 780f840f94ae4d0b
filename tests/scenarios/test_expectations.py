"""The judge of stories finds fault with what is wrong: one small story, and expectations of which none holds."""

from __future__ import annotations

import functools
import re
from typing import Any

import pytest

from extender.testing import expectations
from extender.testing.played import Played
from extender.testing.scenario import Story, expand

STORY: dict[str, Any] = {
    "id": "small",
    "config": {
        "components": ["scheduler"],
        "scheduler": {"actions": "enqueue, allocate, preempt", "tiers": [{"plugins": [{"name": "priority"}, {"name": "gang"}]}]},
    },
    "objects": [
        {
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n0"},
            "status": {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "9"}},
        },
        {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "q"}, "spec": {"weight": 1}},
        *({
            "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": name, "namespace": "default"},
            "spec": {"minMember": least, "queue": "q"},
        } for name, least in (("low", 0), ("wide", 2))),
        *({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": f"{group}-0", "namespace": "default", "annotations": {"scheduling.k8s.io/group-name": group}},
            "spec": {"schedulerName": "volcano", "containers": [
                {"name": "main", "image": "example.test/app:1", "resources": {"requests": {"cpu": "1"}}}]},
        } for group in ("low", "wide")),
    ],
    "steps": [
        {"at": 1, "id": "twice", "create": {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n0"}}},
        {"at": 2, "advance": 3},
    ],
    "expect": {"invariants": [{"queueWithin": {"q": {"cpu": "500m"}}}]},
}  # fmt: skip


@functools.cache
def played() -> Played:
    return Story(STORY).play()


def told(expect: dict[str, Any]) -> str:
    return "\n".join(expectations.faults(played(), expect))


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a step that failed": ({}, "step twice was refused: .* already exists"),
    "another message": (
        {"denied": [{"step": "twice", "field": "metadata.name", "matches": "quota"}]},
        "want a message that matches 'quota'",
    ),
    "a step that was accepted": ({"denied": [{"step": "1", "field": "", "matches": ""}]}, "step 1 was accepted"),
    "another node": ({"bound": {"low-0": "n7"}}, "bound: low-0: want it on n7, got \\['n0'\\]"),
    "a pod that waits": ({"bound": {"wide-0": "*"}}, "bound: wide-0"),
    "a pod that is not there": ({"unbound": ["ghost"]}, "unbound: ghost: .* no such pod"),
    "a pod that runs": ({"unbound": ["low-0"]}, "unbound: low-0"),
    "nobody was evicted": ({"evicted": ["low-0"]}, "evicted: want \\['low-0'\\], got \\[\\]"),
    "a phase": ({"podgroups": {"low": "Pending"}}, "podgroups: low: want Pending, got \\['Running'\\]"),
    "a queue's use": ({"queues": {"q": {"allocated": {"cpu": "2"}}}}, "queues: q: allocated cpu: want 2, got 1"),
    "a queue's count": ({"queues": {"q": {"running": 3}}}, "queues: q: running: want 3, got 0"),
    "over its limit": ({}, "over its limit: queue q cpu: 1 > 500m once low-0 is there"),
    "an unknown expectation": ({"bond": {}}, "bond: there is no such expectation"),
}
INVARIANTS: dict[str, tuple[dict[str, Any], str]] = {
    "unknown": ({"gangAtomics": []}, "there is no such invariant"),
    "no such group": ({"gangAtomic": ["ghost"]}, "no PodGroup ghost"),
    "role short": ({"taskGang": {"low": {"": 2}}}, "taskGang: low: 1 of 2"),
    "evictions": ({"evictedCount": {"of": ["low-*"], "equals": 1}}, "want equals 1, got 0"),
    "bound, too many": ({"boundCount": {"of": "*", "atMost": 0}}, "want atMost 0, got 1"),
    "bound, too few": ({"boundCount": {"of": "*", "atLeast": 2}}, "want atLeast 2, got 1"),
    "never bound": ({"neverBound": ["low-0"]}, "low-0 was bound at second 0"),
    "bound in time": ({"boundBy": {"wide-0": 4}}, "wide-0: want it bound by second 4, got never"),
    "bound too early": ({"boundNotBefore": {"low-0": 2}}, "low-0: want it bound not before second 2, got second 0"),
    "distinct": ({"distinct": {"pods": ["low-0", "wide-0"], "by": "annotation:x"}}, "x: \\[None, None\\]"),
    "phase shown": ({"phaseNever": {"kind": "PodGroup", "name": "low", "phases": ["Running"], "from": 0}}, "low showed Running"),
    "phases in order": (
        {"phaseSeen": {"kind": "PodGroup", "name": "low", "phases": ["Running", "Pending"]}}, "want .* in this order"),
    "made by nobody": ({"createdCount": {"kind": "Pod", "of": "low-0", "equals": 1}}, "want equals 1, got 0"),
    "made too early": ({"createdNotBefore": {"low-0": 3}}, "low-0: want it not before second 3"),
    "exists": ({"exists": [{"kind": "Pod", "name": "ghost"}]}, "no Pod ghost"),
    "absent": ({"absent": [{"kind": "Pod", "name": "low-*"}]}, "Pod low-\\* is there"),
    "same uid": ({"sameUid": {"kind": "Pod", "name": "ghost"}}, "no Pod ghost at the end"),
    "field": ({"field": {"kind": "Pod", "name": "low-0", "path": "spec.nodeName", "equals": "n7"}}, "want equals 'n7', got 'n0'"),
    "field of nothing": ({"field": {"kind": "Pod", "name": "ghost", "path": "spec", "absent": True}}, "no Pod ghost"),
    "writes": ({"writesAtMost": {"kinds": ["Pod"], "from": 0, "to": 9, "max": 0}}, "want 0 at most, got"),
    "queue depth": ({"queueDepth": {"component": "controllers", "at": 3, "max": 0}}, "at second 3, got None"),
}  # fmt: skip


@pytest.mark.parametrize(("expect", "words"), WRONG.values(), ids=WRONG)
def test_a_fault_is_found(expect: dict[str, Any], words: str) -> None:
    """Each wrong expectation is told in words."""
    assert re.search(words, told(expect))


@pytest.mark.parametrize(("invariant", "words"), INVARIANTS.values(), ids=INVARIANTS)
def test_a_broken_invariant_is_found(invariant: dict[str, Any], words: str) -> None:
    """Each broken invariant is told in words."""
    assert re.search(words, told({"invariants": [invariant]}))


def test_what_holds_is_no_fault() -> None:
    """The same story judged rightly; only the queue's limit and the refused step remain."""
    expect = {
        "bound": {"low-0": "n0"},
        "unbound": ["wide-0"],
        "evicted": [],
        "podgroups": {"low": "Running"},
        "denied": [{"step": "twice", "field": "metadata.name", "matches": "already exists"}],
        "invariants": [{"gangAtomic": ["wide", "low"]}, {"boundBy": {"low-0": 0}}, {"neverBound": ["wide-0"]}],
    }
    assert [fault.partition(":")[0] for fault in expectations.faults(played(), expect)] == ["over its limit"]


def test_repeat_stands_for_many() -> None:
    """{i}, {i%K} and {i//K} are worked out in every string, keys too."""
    entry = {"repeat": 3, "object": {"metadata": {"name": "p-{i}", "labels": {"{i}": "{i%2}-{i//2}"}}, "list": ["x{i}"]}}
    assert list(expand(entry))[2] == {"metadata": {"name": "p-2", "labels": {"2": "0-1"}}, "list": ["x2"]}
