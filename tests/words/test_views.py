"""An object that cannot be read names itself and the field; what a view does not know is passed over."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from extender.api.errors import InvalidObject
from extender.api.job import Job
from extender.api.node import Node
from extender.api.pod import Pod
from extender.api.podgroup import PodGroup
from extender.api.views import View, decode, view

Json = dict[str, Any]
NAMED = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "ns"}}

FAULTS: dict[str, tuple[type[View], Json, str]] = {
    "a string for a number": (
        PodGroup,
        {"kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"minMember": "3"}},
        r"^PodGroup g: spec\.minMember: Expected `int`, got `str`",
    ),
    "within a list": (
        Pod,
        NAMED | {"spec": {"containers": [{"name": "a"}, {"name": 7}]}},
        r"^Pod ns/p: spec\.containers\[1\]\.name: Expected `str`, got `int`",
    ),
    "within a map": (
        Pod,
        NAMED | {"spec": {"nodeSelector": {"zone": "a", "disk": True}}},
        r"^Pod ns/p: spec\.nodeSelector\[disk\]: Expected `str`, got `bool`",
    ),
    "within a map of quantities": (
        Pod,
        NAMED | {"spec": {"overhead": {"cpu": []}}},
        r"^Pod ns/p: spec\.overhead\[cpu\]: Expected `int \| float \| str`, got `array`",
    ),
    "a list for a map": (
        Node,
        {"kind": "Node", "metadata": {"name": "n", "labels": ["a"]}},
        r"^Node n: metadata\.labels: Expected `object \| null`, got `array`",
    ),
    "a map for a list": (
        Job,
        {"kind": "Job", "metadata": {"name": "j"}, "spec": {"tasks": {}}},
        r"^Job j: spec\.tasks: Expected `array`, got `object`",
    ),
    "null within a list": (
        Pod,
        NAMED | {"spec": {"containers": [None]}},
        r"^Pod ns/p: spec\.containers\[0\]: Expected `object`, got `null`",
    ),
    "an entry of a map in a list": (
        Pod,
        NAMED | {"spec": {"containers": [{"resources": {"limits": {"cpu": 1, "x.io/a": {}}}}]}},
        r"^Pod ns/p: spec\.containers\[0\]\.resources\.limits\[x\.io/a\]: Expected",
    ),
    "without a name": (Node, {"spec": 1}, r"^object: spec: Expected `object`, got `int`"),
    "a name that is no name": (
        Node,
        {"kind": "Node", "metadata": {"name": 5}},
        r"^Node 5: metadata\.name: Expected `str`, got `int`",
    ),
    "metadata that is no map": (Node, {"kind": "Node", "metadata": "x"}, r"^Node: metadata: Expected `object`, got `str`"),
}


@pytest.mark.parametrize(("cls", "obj", "message"), FAULTS.values(), ids=FAULTS)
def test_a_wrong_type_names_object_and_field(cls: type[View], obj: Json, message: str) -> None:
    with pytest.raises(InvalidObject, match=message):
        view(cls, obj)


@pytest.mark.parametrize(("cls", "obj", "message"), FAULTS.values(), ids=FAULTS)
def test_bytes_say_the_same_as_dicts(cls: type[View], obj: Json, message: str) -> None:
    with pytest.raises(InvalidObject, match=message):
        decode(cls, msgspec.json.encode(obj))


@pytest.mark.parametrize("raw", [b"", b"{", b"[1]", b'"x"', b"null"])
def test_what_is_no_object_is_refused(raw: bytes) -> None:
    with pytest.raises(InvalidObject, match=r"^object: \(whole object\): "):
        decode(Node, raw)


def test_unknown_fields_are_passed_over() -> None:
    pod = view(Pod, NAMED | {"spec": {"hostNetwork": True, "containers": [{"name": "c", "command": ["x"]}]}, "futureField": 1})
    assert [container.name for container in pod.spec.containers] == ["c"]


def test_bytes_and_dicts_give_the_same_view() -> None:
    obj = NAMED | {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": 2, "memory": "1Gi"}}}]}}
    assert decode(Pod, msgspec.json.encode(obj)) == view(Pod, obj)


def test_null_stands_for_an_absent_field() -> None:
    obj = {"metadata": {"name": "g", "labels": None}, "spec": {"minMember": None, "queue": "q"}}
    for group in (view(PodGroup, obj), decode(PodGroup, msgspec.json.encode(obj))):
        assert (group.spec.min_member, group.spec.queue, group.metadata.labels) == (0, "q", None)
