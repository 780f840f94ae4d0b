"""Requests recorded from the reference: the same answer, the field at fault named, the same effect of the patches.

Where the reference is plainly wrong the case says what is better, and that holds instead."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest

from extender.api.errors import Invalid
from extender.api.meta import NAMESPACE, Json, kind_of
from extender.cluster.clock import VirtualClock
from extender.cluster.memory import MemoryCluster
from extender.testing.cases import load


def expected(case: Json) -> Json:
    """`better` replaces what it names; with another verdict, who refused and why are gone too."""
    expect: Json = dict(case["expect"])
    if "better" in case:
        if case["better"].get("allowed") != expect["allowed"]:
            expect = {name: value for name, value in expect.items() if name not in ("deniedBy", "faultAt")}
        expect |= case["better"]
    return expect


_NEXT_FAULT = re.compile(r"; (?=(?:metadata|spec|status)[.\w])")


def fields_at_fault(text: str) -> list[str]:
    """`spec.a: why; spec.b: why` -> the fields."""
    return [part.split(": ")[0] for part in _NEXT_FAULT.split(text)]


def near(found: str, wanted: str) -> bool:
    """The same field, one above or one below; `[*]` is any item."""
    if "[*]" in wanted:
        found = re.sub(r"\[\d+\]", "[*]", found)
    long, short = max(found, wanted, key=len), min(found, wanted, key=len)
    return long == short or long.startswith((f"{short}.", f"{short}["))


def with_value(node: Any, tokens: list[str], value: Any) -> Any:
    """The document with the value at that pointer; parents that are missing are made."""
    if not tokens:
        return value
    token, rest = tokens[0].replace("~1", "/").replace("~0", "~"), tokens[1:]
    if isinstance(node, list):
        position = int(token)
        inner = node[position] if position < len(node) else None
        return [*node[:position], with_value(inner, rest, value), *node[position + 1 :]]
    fields = node or {}
    return {**fields, token: with_value(fields.get(token), rest, value)}


@pytest.mark.cases("admission")
def test_webhooks_answer_as_recorded(case: Path, ask: Any) -> None:
    """Allowed or refused, by whom, and at which fields."""
    document = load(case)
    expect, result = expected(document), ask(document)
    assert result.allowed is expect["allowed"], "; ".join(map(str, result.faults))
    if not result.allowed:
        assert result.denied_by == expect.get("deniedBy", document["paths"][-1])
        named = [fault.path for fault in result.faults]
        assert missing(fields_at_fault(expect["faultAt"]), named) == [], list(map(str, result.faults))


@pytest.mark.cases("admission")
def test_patches_have_the_recorded_effect(case: Path, ask: Any) -> None:
    """A patch is compared by what it makes of the object."""
    document = load(case)
    patched = expected(document).get("patched")
    if patched is None:
        pytest.skip("no mutating path in this case")
    wanted: Any = copy.deepcopy(document["object"])
    for pointer, value in patched.items():
        wanted = with_value(wanted, pointer.split("/")[1:], value)
    assert ask(document).object == wanted


@pytest.mark.cases("admission")
def test_the_schema_says_what_was_recorded(case: Path, ask: Any) -> None:
    """The patched object created for itself without webhooks: what the CRDs (for Pods the core rules) make of it.

    The reference's patches write empty fields into the task list; where only they made the schema's answer another one, our
    webhook must refuse at that very field, so that a user sees the same."""
    document = load(case)
    expect, result = expected(document), ask(document)
    if "schema" not in expect:
        pytest.skip("the case says nothing of the schema")
    refused = schema_faults(result.object)
    named = [fault.path for fault in result.faults]
    if (expect["schema"] == "refuses") != bool(refused):
        assert refused or expect["schemaFaultAt"], "the schema refuses without naming a field"
        assert missing([*refused, *expect.get("schemaFaultAt", [])], named) == [], refused
    else:
        assert missing(expect.get("schemaFaultAt", []), refused) == [], refused


def missing(wanted: list[str], found: list[str]) -> list[str]:
    return [field for field in wanted if not any(near(path, field) for path in found)]


def schema_faults(obj: Json) -> list[str]:
    cluster = MemoryCluster(VirtualClock())
    namespace = obj["metadata"].get("namespace", "default")
    if namespace != "default":
        cluster.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    try:
        cluster.create(kind_of(obj), obj)
    except Invalid as error:
        return [fault.path for fault in error.faults]
    return []
