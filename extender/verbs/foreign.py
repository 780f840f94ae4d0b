"""Pods without a gang pass: kube-scheduler has judged the nodes already, and no queue of ours counts them.

Two things it cannot know, or may not have asked: room that is kept for gangs whose members are still on their way, and
nodes that cannot take the pod at all. Both are a few vector comparisons on the mirror's own columns; no session is held."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat

import numpy as np

from extender.api.errors import InvalidObject
from extender.api.pod import Pod
from extender.api.pod_requests import effective_requests
from extender.core.axis import PODS, BoolN, IntNR, IntR, Rows
from extender.core.kube import node_affinity, ports, taints, unschedulable
from extender.core.mirror import Mirror
from extender.core.reasons import insufficient
from extender.core.snapshot import Nodes
from extender.verbs.wire import Filtered

UNKNOWN = "node not in cache"
KEPT = "room is kept for pods that are starting"
_CHECKS = ((unschedulable.REASON, unschedulable.refused), (node_affinity.REASON, node_affinity.refused),
           (taints.REASON, taints.refused))  # fmt: skip


def judge(mirror: Mirror, kept: Iterable[int], pod: Pod, names: Sequence[str]) -> Filtered:
    """Which of the nodes may take the pod. `kept`: tasks whose binding is assumed and that kube-scheduler cannot know of."""
    rows = rows_of(mirror, names)
    known = rows >= 0
    at = rows[known]
    request = _request(mirror, pod)
    short = _short(mirror.nodes.allocatable, mirror.nodes.used, request, at)
    refusals = [(reason, mask[at]) for reason, mask in _static(mirror, pod)]
    if known.all() and not short.any() and not any(mask.any() for _, mask in refusals):
        return Filtered(names)
    reasons: list[tuple[str, bool]] = [("", True)] * len(at)
    if short.any():
        _say_short(mirror, kept, request, at, short, reasons)
    for reason, mask in refusals:
        for i in np.flatnonzero(mask):
            reasons[i] = (reason, False)
    told = iter(reasons)
    found = [next(told) if there else (UNKNOWN, True) for there in known]
    pairs = list(zip(names, found, strict=True))
    return Filtered(
        [name for name, (reason, _) in pairs if not reason],
        {name: reason for name, (reason, curable) in pairs if reason and curable},
        {name: reason for name, (reason, curable) in pairs if not curable},
    )


def rows_of(mirror: Mirror, names: Sequence[str]) -> Rows:
    """(K,) rows of the nodes, -1 for what is no node to us."""
    rows = np.fromiter(map(mirror.nodes.rows.get, names, repeat(-1)), dtype=np.intp, count=len(names))
    rows[~mirror.nodes.exists[rows]] = -1
    return rows


def lacks(mirror: Mirror, task: int, node: str) -> str:
    """What has become of the room on the node since kube-scheduler chose it: "" where the pod may still be bound there."""
    row = mirror.nodes.rows.get(node)
    shape = mirror.shapes.by_id[int(mirror.tasks.shape[task])]
    if row is None or shape is None or not mirror.nodes.exists[row]:
        return ""
    width = min(len(shape.request), mirror.nodes.width)
    free = mirror.nodes.allocatable[row, :width] - mirror.nodes.used[row, :width]
    lacking = np.flatnonzero((shape.request[:width] > 0) & (shape.request[:width] > free))
    if len(lacking):
        return insufficient(mirror.axis.names[int(lacking[0])])
    wanted = ports.host_ports(shape.spec)
    if not wanted:
        return ""
    there = [mirror.shapes.by_id[int(mirror.tasks.shape[each])] for each in mirror.nodes.tasks[row]]
    held = [port for listed in ports.by_shape(there).values() for port in listed]
    return ports.REASON if any(one.conflicts(other) for one in wanted for other in held) else ""


def _request(mirror: Mirror, pod: Pod) -> IntR:
    """(R,) with 1 in the pods column; all zero where it cannot be read, which is kube-scheduler's business."""
    try:
        request = mirror.axis.vector(effective_requests(pod.spec))
    except InvalidObject:
        return np.zeros(len(mirror.axis), dtype=np.int64)
    request[PODS] = 1
    return request


def _short(allocatable: IntNR, used: IntNR, request: IntR, at: Rows) -> BoolN:
    """(K,) nodes that lack room."""
    short = np.zeros(len(at), dtype=bool)
    for column in np.flatnonzero(request[: allocatable.shape[1]]):
        short |= allocatable[at, column] - used[at, column] < request[column]
    return short


def _say_short(mirror: Mirror, kept: Iterable[int], request: IntR, at: Rows, short: BoolN,
               reasons: list[tuple[str, bool]]) -> None:  # fmt: skip
    """Room that is only kept cannot be had by evicting anybody; nor can room that the node never had."""
    nodes = mirror.nodes
    used = nodes.used.copy(order="K")
    for task in kept:
        shape = mirror.shapes.by_id[int(mirror.tasks.shape[task])]
        if shape is not None:
            used[mirror.tasks.node[task], : len(shape.request)] -= shape.request
    for i in np.flatnonzero(short):
        row = at[i]
        free = nodes.allocatable[row] - used[row]
        lacking = [int(c) for c in np.flatnonzero(request[: len(free)]) if free[c] < request[c]]
        if not lacking:
            reasons[i] = (KEPT, False)
        else:
            curable = bool((nodes.allocatable[row, lacking] >= request[lacking]).all())
            reasons[i] = (insufficient(mirror.axis.names[lacking[0]]), curable)


def _static(mirror: Mirror, pod: Pod) -> list[tuple[str, BoolN]]:
    """Refusals that have to do with neither room nor other pods."""
    nodes = _view(mirror)
    return [(reason, mask) for reason, refused in _CHECKS if (mask := refused(pod.spec, nodes)) is not None]


def _view(mirror: Mirror) -> Nodes:
    """The mirror's columns as they are, for the length of one call."""
    table, n = mirror.nodes, len(mirror.nodes.name)
    return Nodes(
        name=table.name, node=table.node, rows=table.rows, tasks=table.tasks, exists=table.exists[:n],
        allocatable=table.allocatable[:n], used=table.used[:n], releasing=table.releasing[:n], nonzero=table.nonzero[:n],
        labels=mirror.node_labels, traits=mirror.node_traits,
    )  # fmt: skip
