"""The contract's JSON: what is understood, and what is written, byte for byte."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import numpy as np
import pytest

from extender.api.errors import InvalidObject
from extender.api.meta import Json, Key
from extender.verbs import wire
from extender.verbs.wire import Filtered, Victims

POD = {"metadata": {"name": "w-0", "namespace": "ml", "uid": "u", "creationTimestamp": None}, "spec": {"containers": []}}
NODES = {"metadata": {}, "items": [{"metadata": {"name": "n1"}, "spec": {"x": 1}}, {"metadata": {"name": "n2"}}]}


def body(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


READ = {
    "names": (body(Pod=POD, Nodes=None, NodeNames=["n1", "n2"]), ["n1", "n2"]),
    "lower case": (body(pod=POD, nodes=None, nodenames=["n1"]), ["n1"]),
    "camel case": (body(pod=POD, nodeNames=["n1"]), ["n1"]),
    "no node": (body(Pod=POD, NodeNames=[]), []),
    "whole nodes": (body(Pod=POD, Nodes=NODES, NodeNames=None), ["n1", "n2"]),
    "an empty list of nodes": (body(Pod=POD, Nodes={"items": None}), []),
    "text after the value of a field that nobody knows": (body(Pod=POD, NodeNames=["n1"], Other={"x": [1]}), ["n1"]),
}


@pytest.mark.parametrize(("sent", "names"), READ.values(), ids=READ)
def test_args(sent: bytes, names: list[str]) -> None:
    assert list(wire.read_args(sent).names) == names


UNREADABLE = {
    "nothing": (b"", "(body)"),
    "no JSON": (b"<html>", "(body)"),
    "no object": (b"[]", "(body)"),
    "cut off": (b'{"Pod": {', "(body)"),
    "no text": (b"\xff\xfe", "(body)"),
    "deep": (b'{"Pod": ' + b"[" * 100_000, "(body)"),
    "no pod": (body(NodeNames=["n1"]), "Pod"),
    "a pod of another type": (body(Pod=3, NodeNames=["n1"]), "whole object"),
    "no nodes": (body(Pod=POD), "NodeNames"),
    "names of another type": (body(Pod=POD, NodeNames="n1"), "NodeNames"),
    "a container of another type": (body(Pod={"spec": {"containers": [3]}}, NodeNames=[]), "spec.containers"),
}


@pytest.mark.parametrize(("sent", "path"), UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_read_is_named(sent: bytes, path: str) -> None:
    with pytest.raises(InvalidObject) as refused:
        wire.read_args(sent)
    assert path in str(refused.value)


def test_binding() -> None:
    read = wire.read_binding(body(podName="w-0", PODNAMESPACE="ml", podUid="u", node="n1"))
    assert (read.pod, read.uid, read.node) == (Key("ml", "w-0"), "u", "n1")


@pytest.mark.parametrize("missing", ["PodName", "PodNamespace", "PodUID", "Node"])
def test_a_binding_needs_all_of_it(missing: str) -> None:
    """Without the uid a member would be taken for a pod that nobody knows, and be bound past its gang."""
    whole = {"PodName": "w-0", "PodNamespace": "ml", "PodUID": "u", "Node": "n1"}
    for asked in (whole | {missing: ""}, {name: value for name, value in whole.items() if name != missing}):
        with pytest.raises(InvalidObject, match=f"{missing}: must be given"):
            wire.read_binding(body(**asked))


def test_meta_victims() -> None:
    sent = body(Pod=POD, NodeNameToVictims=None, NodeNameToMetaVictims={"n1": {"Pods": [{"UID": "a"}], "NumPDBViolations": 2}})
    assert wire.read_preemption(sent).victims == {"n1": Victims(("a",), 2)}


def test_whole_victims() -> None:
    pods = [{"metadata": {"name": "p", "uid": "a"}}]
    sent = body(Pod=POD, NodeNameToVictims={"n1": {"Pods": pods, "NumPDBViolations": 0}}, NodeNameToMetaVictims=None)
    assert wire.read_preemption(sent).victims == {"n1": Victims(("a",))}


def filtered(sent: bytes, *names: str) -> Json:
    answer: Json = json.loads(wire.filtered(wire.read_args(sent), Filtered(names, {"a": "x"}, {"b": "y"})))
    return answer


def test_a_question_about_names_is_answered_with_names() -> None:
    assert filtered(body(Pod=POD, NodeNames=["n1", "n2"]), "n2") == {
        "Nodes": None, "NodeNames": ["n2"], "FailedNodes": {"a": "x"}, "FailedAndUnresolvableNodes": {"b": "y"}, "Error": "",
    }  # fmt: skip


def test_a_question_about_nodes_is_answered_with_the_same_nodes() -> None:
    """Whatever fields they have."""
    answer = filtered(body(Pod=POD, Nodes=NODES), "n1")
    assert (answer["Nodes"]["items"], answer["NodeNames"]) == ([{"metadata": {"name": "n1"}, "spec": {"x": 1}}], None)


def test_scores_are_whole_numbers() -> None:
    """A fraction, or a number in quotes, would lose kube-scheduler the whole list."""
    scores = list(np.array([3.0, 10.0]))
    assert wire.prioritized(["a", "b"], scores) == b'[{"Host":"a","Score":3},{"Host":"b","Score":10}]'


def test_errors_of_a_binding() -> None:
    assert (wire.failed(""), wire.failed("no")) == (b'{"Error":""}', b'{"Error":"no"}')


def test_victims_are_written_as_uids() -> None:
    answer = msgspec.json.decode(wire.preempted({"n1": Victims(("a", "b"), 1)}))
    assert answer == {"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "a"}, {"UID": "b"}], "NumPDBViolations": 1}}}
