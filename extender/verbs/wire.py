"""The contract's JSON. Outer field names are read in any casing and written as Go spells them; nulls stand for absent things.

What cannot be read raises InvalidObject with the field's path. Names and forms: k8s.io/kube-scheduler v0.36.1, extender/v1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from extender.api.errors import InvalidObject
from extender.api.meta import Key
from extender.api.pod import Pod
from extender.api.views import Metadata, View, decode

MAX_SCORE = 10  # MaxExtenderPriority
_BINDING = ("PodName", "PodNamespace", "PodUID", "Node")
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


@dataclass(frozen=True, slots=True)
class Asked:
    """ExtenderArgs. `items`: the node objects by name, as bytes, where whole nodes were sent and are to be sent back."""

    pod: Pod
    names: Sequence[str]
    items: Mapping[str, msgspec.Raw] | None = None


@dataclass(frozen=True, slots=True)
class Filtered:
    """ExtenderFilterResult. `curable` nodes might take the pod if others left them, `hopeless` ones never."""

    names: Sequence[str] = ()
    curable: Mapping[str, str] = field(default_factory=dict)
    hopeless: Mapping[str, str] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True, slots=True)
class Binding:
    """ExtenderBindingArgs."""

    pod: Key
    uid: str
    node: str


@dataclass(frozen=True, slots=True)
class Victims:
    """MetaVictims: pods by uid."""

    uids: tuple[str, ...]
    violations: int = 0  # of disruption budgets


@dataclass(frozen=True, slots=True)
class AskedToPreempt:
    """ExtenderPreemptionArgs, with whole pods brought down to their uids: the answer never has more."""

    pod: Pod
    victims: Mapping[str, Victims]  # by node


class _Node(View, frozen=True):
    metadata: Metadata = Metadata()


# --- in -----------------------------------------------------------------------------------------------------------------


def read_args(body: bytes) -> Asked:
    fields = _fields(body)
    pod = _pod(fields)
    nodes = fields.get("nodes")
    if nodes is not None:
        items = _items(nodes)
        return Asked(pod, list(items), items)
    names = _value(fields, "NodeNames", list[str] | None)
    if names is None:
        raise InvalidObject("one of NodeNames and Nodes must be given", path="NodeNames", subject="ExtenderArgs")
    return Asked(pod, names)


def read_binding(body: bytes) -> Binding:
    fields = _fields(body)
    name, namespace, uid, node = said = [_text(fields, word) for word in _BINDING]
    if not all(said):  # without its uid a pod could be bound past its gang
        missing = _BINDING[said.index("")]
        raise InvalidObject("must be given", path=missing, subject="ExtenderBindingArgs")
    return Binding(Key(namespace, name), uid, node)


def read_preemption(body: bytes) -> AskedToPreempt:
    fields = _fields(body)
    pod = _pod(fields)
    path, of = "NodeNameToMetaVictims", _meta_uid
    if fields.get(path.lower()) is None:
        path, of = "NodeNameToVictims", _pod_uid
    by_node = _value(fields, path, dict[str, dict[str, msgspec.Raw]] | None) or {}
    return AskedToPreempt(pod, {node: _victims(victims, f"{path}[{node}]", of) for node, victims in by_node.items()})


def _fields(body: bytes) -> dict[str, msgspec.Raw]:
    """The outer object, field names lowered; a null is left out."""
    try:
        fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    except _UNREADABLE as error:
        raise InvalidObject(f"this is no JSON object: {error}", path="(body)") from None
    return {name.lower(): raw for name, raw in fields.items() if bytes(raw) != b"null"}


def _value(fields: Mapping[str, msgspec.Raw], name: str, kind: Any) -> Any:
    raw = fields.get(name.lower())
    if raw is None:
        return None
    try:
        return msgspec.json.decode(raw, type=kind)
    except _UNREADABLE as error:
        raise InvalidObject(str(error), path=name) from None


def _text(fields: Mapping[str, msgspec.Raw], name: str) -> str:
    return _value(fields, name, str) or ""


def _pod(fields: Mapping[str, msgspec.Raw]) -> Pod:
    raw = fields.get("pod")
    if raw is None:
        raise InvalidObject("must be given", path="Pod")
    return decode(Pod, bytes(raw))


def _items(raw: msgspec.Raw) -> dict[str, msgspec.Raw]:
    listed = _value({"nodes": raw}, "Nodes", dict[str, msgspec.Raw])
    items = _value(_lowered(listed), "items", list[msgspec.Raw] | None) or []
    return {decode(_Node, bytes(item)).metadata.name: item for item in items}


def _lowered(fields: Mapping[str, msgspec.Raw]) -> dict[str, msgspec.Raw]:
    return {name.lower(): raw for name, raw in fields.items()}


def _victims(fields: Mapping[str, msgspec.Raw], path: str, uid_of: Any) -> Victims:
    lowered = _lowered(fields)
    pods = _value(lowered, "Pods", list[msgspec.Raw] | None) or []
    violations = _value(lowered, "NumPDBViolations", int | None) or 0
    return Victims(tuple(uid_of(pod, path) for pod in pods), violations)


def _meta_uid(raw: msgspec.Raw, path: str) -> str:
    fields = _lowered(_value({"pods": raw}, "Pods", dict[str, msgspec.Raw]))
    uid = _text(fields, "UID")
    if not uid:
        raise InvalidObject("a victim needs its UID", path=f"{path}.Pods")
    return uid


def _pod_uid(raw: msgspec.Raw, path: str) -> str:
    del path
    return decode(_Node, bytes(raw)).metadata.uid


# --- out ----------------------------------------------------------------------------------------------------------------


def filtered(asked: Asked, result: Filtered) -> bytes:
    """In the mode that was asked: names, or the node objects that were sent."""
    answer: dict[str, Any] = {"Nodes": None, "NodeNames": None, "FailedNodes": result.curable,
                              "FailedAndUnresolvableNodes": result.hopeless, "Error": result.error}  # fmt: skip
    if asked.items is None:
        answer["NodeNames"] = result.names
    else:
        answer["Nodes"] = {"metadata": {}, "items": [asked.items[name] for name in result.names]}
    return msgspec.json.encode(answer)


def prioritized(names: Sequence[str], scores: Sequence[int]) -> bytes:
    """A bare array of whole numbers: one that is written with a fraction would lose kube-scheduler the whole list."""
    return msgspec.json.encode([{"Host": name, "Score": int(score)} for name, score in zip(names, scores, strict=True)])


def failed(error: str) -> bytes:
    """ExtenderBindingResult, and what filter says where it cannot answer. "" is success."""
    return msgspec.json.encode({"Error": error})


def preempted(victims: Mapping[str, Victims]) -> bytes:
    """ExtenderPreemptionResult: uids only, in both modes."""
    found = {node: {"Pods": [{"UID": uid} for uid in each.uids], "NumPDBViolations": each.violations}
             for node, each in victims.items()}  # fmt: skip
    return msgspec.json.encode({"NodeNameToMetaVictims": found})
