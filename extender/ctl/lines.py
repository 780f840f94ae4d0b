"""Rows of the tables that `pumice run` prints: jobs, nodes and queues as they stand at the end."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from extender.api.errors import InvalidObject
from extender.api.meta import JOB, NODE, POD, POD_GROUP, QUEUE, Json, Kind, key_of, parse_time, uid_of
from extender.api.node import Node
from extender.api.pod import ENDED, Pod
from extender.api.pod_requests import effective_requests
from extender.api.quantity import nanos
from extender.api.views import view
from extender.cluster.pod_history import PodSpan
from extender.core.axis import unit_of
from extender.ctl.group_names import GroupNames
from extender.ctl.unheeded import UNLIMITED_AT_ZERO
from extender.local import Outcome

Amounts = Mapping[str, int]  # resource -> nano-units


@dataclass(frozen=True, slots=True)
class JobLine:
    """`waited`: seconds from its creation (or the start of the run) until it got its first node, or until now.

    `nodes`: node -> pods that were there. `evicted`: how often the scheduler took the node away from one of its pods."""

    name: str
    phase: str
    running: int
    minimum: int
    queue: str
    nodes: Mapping[str, int]
    waited: float
    evicted: int


@dataclass(frozen=True, slots=True)
class NodeLine:
    name: str
    pods: int
    used: Amounts
    allocatable: Amounts


@dataclass(frozen=True, slots=True)
class QueueLine:
    name: str
    state: str
    weight: int
    parent: str
    deserved: Amounts
    capability: Amounts  # what limits it
    used: Amounts
    peak: Amounts


def job_lines(outcome: Outcome, names: GroupNames) -> list[JobLine]:
    """One for each Volcano job, each group of another workload and each pod without a group; who came first is first."""
    spans: dict[str, list[PodSpan]] = defaultdict(list)
    for span in outcome.pods:
        spans[names.of_span(span)].append(span)
    lines: dict[str, tuple[tuple[float, str], JobLine]] = {}
    for job in outcome.objects.get(JOB, ()):
        name, spec = str(key_of(job)), job.get("spec") or {}
        running, least = int((job.get("status") or {}).get("running") or 0), int(spec.get("minAvailable") or 0)
        line = _line(outcome, name, job_phase_of(job), running, least, str(spec.get("queue") or ""), job, spans[name])
        lines[name] = (_age(outcome, job), line)
    for group in outcome.objects.get(POD_GROUP, ()):
        name, spec = names.of(key_of(group)), group.get("spec") or {}
        if name not in lines:
            running, least = int((group.get("status") or {}).get("running") or 0), int(spec.get("minMember") or 0)
            queue = str(spec.get("queue") or "default")
            phase = names.failed(key_of(group)) or _failed(spans[name]) or phase_of(group)
            lines[name] = (_age(outcome, group), _line(outcome, name, phase, running, least, queue, group, spans[name]))
    for pod in outcome.objects.get(POD, ()):
        name = f"Pod {key_of(pod)}"
        if name in spans and name not in lines:
            phase = phase_of(pod)
            running = int(phase == "Running")
            lines[name] = (_age(outcome, pod), _line(outcome, name, phase, running, 1, "", pod, spans[name]))
    return [line for _, line in sorted(lines.values(), key=lambda each: each[0])]


def _failed(spans: Sequence[PodSpan]) -> str:
    """Of a pod that stands alone: the group that was made for it counts it as completed."""
    return spans[0].end if len(spans) == 1 and spans[0].end == "Failed" else ""


def _age(outcome: Outcome, obj: Json) -> tuple[float, str]:
    """Uids of the embedded cluster are numbered through."""
    return parse_time(obj["metadata"].get("creationTimestamp")) or outcome.started, uid_of(obj)


def _line(outcome: Outcome, name: str, phase: str, running: int, least: int, queue: str, made: Json,
          spans: Sequence[PodSpan]) -> JobLine:  # fmt: skip
    created = max(min([_age(outcome, made)[0], *(span.created for span in spans)]), outcome.started)
    bound = min((span.bound for span in spans if span.bound is not None), default=outcome.now)
    last = {span.pod: span for span in spans if span.node}  # a pod that was made again under its name counts once
    over = all(span.ended is not None for span in last.values())
    nodes = Counter(span.node for span in last.values() if over or span.end != "Deleted")
    lost = {each.uid for each in outcome.evictions}
    evicted = sum(span.uid in lost for span in spans)
    return JobLine(name, phase, running, least, queue, nodes, max(bound - created, 0.0), evicted)


def node_lines(objects: Mapping[Kind, Sequence[Json]]) -> Iterator[NodeLine]:
    used: dict[str, Counter[str]] = defaultdict(Counter)
    pods: Counter[str] = Counter()
    for pod in objects.get(POD, ()):
        node = pod["spec"].get("nodeName")
        if node and phase_of(pod) not in ENDED:
            pods[node] += 1
            used[node].update(_requests(pod))
    for obj in objects.get(NODE, ()):
        name = key_of(obj).name
        allocatable = view(Node, obj).status.allocatable or {}
        yield NodeLine(name, pods[name], used[name], {each: nanos(amount) for each, amount in allocatable.items()})


def _requests(pod: Json) -> Amounts:
    try:
        return effective_requests(view(Pod, pod).spec)
    except InvalidObject:
        return {}


def queue_lines(outcome: Outcome) -> Iterator[QueueLine]:
    peaks: dict[str, Counter[str]] = defaultdict(Counter)
    for at in outcome.queue_use:
        for name, use in at.use.items():
            for resource, amount in use.items():
                peaks[name][resource] = max(peaks[name][resource], amount * unit_of(resource))
    for obj in outcome.objects.get(QUEUE, ()):
        name, spec, status = key_of(obj).name, obj.get("spec") or {}, obj.get("status") or {}
        yield QueueLine(
            name, str(status.get("state") or ""), int(spec.get("weight") or 1), str(spec.get("parent") or ""),
            _amounts(spec.get("deserved")), _limits(spec.get("capability")), _amounts(status.get("allocated")), peaks[name],
        )  # fmt: skip


def _amounts(listed: Any) -> Amounts:
    return {name: nanos(amount) for name, amount in (listed or {}).items()}


def _limits(capability: Any) -> Amounts:
    return {name: amount for name, amount in _amounts(capability).items() if amount > 0 or name not in UNLIMITED_AT_ZERO}


def phase_of(obj: Json) -> str:
    return str((obj.get("status") or {}).get("phase") or "Pending")


def job_phase_of(job: Json) -> str:
    return str(((job.get("status") or {}).get("state") or {}).get("phase") or "Pending")
