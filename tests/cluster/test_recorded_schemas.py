"""What a real API server with these CRDs said to the recorded objects, said again by the embedded one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from extender.api.errors import ClusterError
from extender.api.meta import Json, kind_of
from extender.cluster.memory import MemoryCluster
from extender.testing import cases


def after_mutation(story: Json) -> Json:
    """The object as the reference's webhooks handed it on.

    Where they touched the tasks they wrote the whole list back out of Go structs, which adds empty values."""
    obj: Json = story["object"]
    patched = story["expect"].get("patched") or {}
    for pointer, value in patched.items():
        put(obj, [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]], value)
    if any(pointer.startswith("/spec/tasks") for pointer in patched):
        for task in obj["spec"]["tasks"]:
            spec = task.setdefault("template", {}).setdefault("spec", {})
            spec.setdefault("containers", None)
            for container in [*(spec["containers"] or ()), *(spec.get("initContainers") or ())]:
                container.setdefault("name", "")
    return obj


def put(place: Any, tokens: list[str], value: Any) -> None:
    for token in tokens[:-1]:
        place = place[int(token)] if isinstance(place, list) else place.setdefault(token, {})
    if isinstance(place, list):
        place[int(tokens[-1]) : int(tokens[-1]) + 1] = [value]
    else:
        place[tokens[-1]] = value


@pytest.mark.cases("admission")
def test_the_schema_judges_as_it_was_recorded(case: Path, memory: MemoryCluster) -> None:
    story = cases.load(case)
    verdict = story["expect"].get("schema")
    if story["operation"] != "CREATE" or verdict is None:
        pytest.skip("says nothing about the schema")
    obj = after_mutation(story)
    try:
        memory.create(kind_of(obj), obj)
        judged = "accepts"
    except ClusterError:
        judged = "refuses"
    assert judged == verdict
