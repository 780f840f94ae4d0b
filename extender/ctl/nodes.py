"""Nodes for a run: from a short text on the command line, from a file of manifests, or the default cluster.

    4x cpu=32,memory=128Gi,nvidia.com/gpu=8; 2x name=small,cpu=8,memory=16Gi,zone=b,label:disk=ssd,taint:dedicated=ml:NoSchedule

Groups are parted by `;`, what they hold by `,`. `KEY=QUANTITY` is a resource; `name`, `zone`, `label:KEY` and `taint:KEY` are
what they say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from extender.api import labels, quantity
from extender.api.errors import InvalidObject, UsageError, nearest
from extender.api.meta import NODE, Json, key_of
from extender.core.axis import unit_of
from extender.ctl.found import Faults, Found, Refused
from extender.ctl.loading import load
from extender.ctl.reading import STDIN, SUFFIXES

DEFAULT_SPEC = "4x cpu=32,memory=128Gi,nvidia.com/gpu=8"
_MOST = 100_000  # nodes; more is a slip of the finger
_USUAL = {"pods": "110", "ephemeral-storage": "100Gi"}  # where not given; 110 is the kubelet's --max-pods
_KUBELETS = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}  # labels that every kubelet gives its node
_LEAST_BYTES = 2**20 * quantity.NANO  # less is a unit that was forgotten
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_PLAIN = ("cpu", "memory", "pods", "ephemeral-storage")
# What people call a resource, and what Kubernetes does.
_SPOKEN = {"gpu": "nvidia.com/gpu", "gpus": "nvidia.com/gpu", "cpus": "cpu", "cores": "cpu", "mem": "memory", "ram": "memory",
           "disk": "ephemeral-storage", "storage": "ephemeral-storage"}  # fmt: skip
_COUNT = re.compile(r"([0-9]+)\s*x\s*(.*)", re.DOTALL)
_MISCOUNTED = re.compile(
    r"([^=,]*\s|[^A-Za-z=,])[^=,]*=.*", re.DOTALL
)  # the first key has a blank in it, or begins with no letter
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


@dataclass(slots=True)
class _Group:
    """Equal nodes."""

    count: int
    name: str = "node"
    resources: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    taints: list[Json] = field(default_factory=list)


def is_file(given: str) -> bool:
    """Whether --nodes names a file, and is not a spec itself."""
    return given == STDIN or given.endswith(SUFFIXES) or (bool(given) and Path(given).exists())


def from_file(path: str, faults: Faults) -> list[Found]:
    """The nodes of a file of Node manifests. Raises UsageError."""
    loaded = load([path], faults, "--nodes")
    for each in (*loaded.found, *loaded.foreign):
        if each.manifest["kind"] != NODE.name:
            faults.add(each.refuse(f"kind: --nodes takes Nodes only, not {each.manifest['kind']} {key_of(each.manifest)}"))
    return list(loaded.found)


def from_spec(spec: str, source: str = "--nodes") -> list[Found]:
    """The nodes that the text asks for, named node-1, node-2 ... Raises UsageError naming the part."""
    groups = [_group(part.strip(), source) for part in spec.split(";") if part.strip()]
    if not groups:
        raise UsageError(f"{source}: empty; write for instance '{DEFAULT_SPEC}'")
    if sum(group.count for group in groups) > _MOST:
        raise UsageError(f"{source}: more than {_MOST:,} nodes")
    return [Found(node, source, number) for number, node in enumerate(_nodes(groups), start=1)]


def without_room(nodes: Iterable[Found]) -> Iterator[Refused]:
    """Nodes that say nothing of what they have to give: nothing could ever run there."""
    for each in nodes:
        status = each.manifest.get("status") or {}
        if not status.get("allocatable") and not status.get("capacity"):
            name = key_of(each.manifest).name
            why = "missing; without it nothing fits there, give at least cpu, memory and pods"
            yield each.refuse(f"Node {name}: status.allocatable: {why}")


def _group(text: str, source: str) -> _Group:
    counted = _COUNT.fullmatch(text)
    group = _Group(int(counted.group(1)) if counted else 1)
    if group.count == 0:
        raise UsageError(f"{source}: '{text}': 0 nodes")
    if not counted and _MISCOUNTED.fullmatch(text):
        raise UsageError(f"{source}: '{text}': how many must be a whole number with an x behind it, such as '4x cpu=32'")
    if counted and not counted.group(2):
        raise UsageError(f"{source}: '{text}': say what each has, such as '{text} cpu=32,memory=128Gi'")
    for part in (counted.group(2) if counted else text).split(","):
        key, sign, value = part.strip().partition("=")
        if not sign or not key or not value:
            raise UsageError(f"{source}: '{part.strip()}': write KEY=VALUE, such as cpu=32, joined by ','; groups by ';'")
        _take(group, key, value, f"{source}: '{part.strip()}'")
    if not {"cpu", "memory"} & group.resources.keys():
        raise UsageError(f"{source}: '{text}': give at least cpu or memory")
    group.resources = {**_USUAL, **group.resources}
    return group


def _take(group: _Group, key: str, value: str, where: str) -> None:
    sort, _, name = key.partition(":")
    if key == "name":
        if not _NAME.fullmatch(value):
            raise UsageError(f"{where}: '{value}' is no name for a node (lower case letters, digits, '-', '.')")
        group.name = value
    elif key == "zone":
        group.labels[labels.ZONE] = value
    elif sort == "label" and name:
        group.labels[name] = value
    elif sort == "taint" and name:
        group.taints.append(_taint(name, value, where))
    elif unit_of(key):
        if key in group.resources:
            raise UsageError(f"{where}: {key} is given twice")
        group.resources[key] = _amount(key, value, where)
    else:
        near = nearest(key.lower(), [*_PLAIN, "name", "zone", "label:KEY", "taint:KEY"])
        spoken = _SPOKEN.get(key.lower())
        raise UsageError(f"{where}: unknown key '{key}'" + (f"; did you mean '{spoken}'?" if spoken else near))


def _amount(key: str, value: str, where: str) -> str:
    try:
        amount = quantity.nanos(value)
    except InvalidObject as error:
        blank = f"{where}: join what a node has by ',', such as cpu=32,memory=128Gi"
        raise UsageError(blank if "=" in value else f"{where}: {error}") from None
    if amount < 0:
        raise UsageError(f"{where}: must not be below zero")
    if quantity.in_bytes(key) and 0 < amount < _LEAST_BYTES:
        raise UsageError(
            f"{where}: that is {quantity.for_people('', amount)} bytes; write {key}={value.rstrip('m')}Gi or the like"
        )
    return value


def _taint(key: str, value: str, where: str) -> Json:
    """`taint:KEY=VALUE:EFFECT` or `taint:KEY=EFFECT`."""
    text, _, effect = value.rpartition(":")
    if effect not in _EFFECTS:
        raise UsageError(f"{where}: '{effect}' is no effect of a taint{nearest(effect, _EFFECTS)}")
    return {"key": key, "effect": effect, **({"value": text} if text else {})}


def _nodes(groups: list[_Group]) -> Iterator[Json]:
    """Names are numbered through among the groups of one name, with leading zeros so that they sort."""
    totals: dict[str, int] = {}
    for group in groups:
        totals[group.name] = totals.get(group.name, 0) + group.count
    numbers = dict.fromkeys(totals, 0)
    for group in groups:
        for _ in range(group.count):
            numbers[group.name] += 1
            number = str(numbers[group.name]).zfill(len(str(totals[group.name])))
            yield _node(group, f"{group.name}-{number}")


def _node(group: _Group, name: str) -> Json:
    return {
        "apiVersion": NODE.api_version,
        "kind": NODE.name,
        "metadata": {"name": name, "labels": {labels.HOSTNAME: name, **_KUBELETS, **group.labels}},
        "spec": {"taints": group.taints} if group.taints else {},
        "status": {
            "capacity": group.resources,
            "allocatable": group.resources,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
