"""The tape of a story: every change of every object in order, and what invariants ask of it.

It listens often (each second and each time something settles) and judges what must hold at every moment event by event."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from extender.api import labels, quantity
from extender.api.meta import KINDS, NODE, POD, POD_GROUP, QUEUE, Json, Key, Kind, Time, annotations_of, key_of, uid_of
from extender.api.pod import ENDED, Pod
from extender.api.pod_requests import effective_requests
from extender.api.views import view
from extender.cluster.memory import MemoryCluster
from extender.cluster.watching import MemoryWatch


@dataclass(frozen=True, slots=True)
class Moment:
    """One state of one object; `type` as in watches."""

    at: Time
    type: str
    kind: Kind
    object: Json


@dataclass(frozen=True, slots=True)
class Held:
    """A pod that has a node and has not ended."""

    node: str
    queue: str
    requests: Mapping[str, int]  # nano-units, the pod itself included


class Tape:
    """`moments` by kind. `over` collects what broke an invariant that must hold at every moment."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster
        self._watches: dict[Kind, MemoryWatch] = {kind: cluster.watch(kind, "0") for kind in KINDS}
        self.moments: dict[Kind, list[Moment]] = {kind: [] for kind in KINDS}
        self.over: dict[str, str] = {}  # what is over its limit -> how, the first time
        self.watched_nodes: frozenset[str] | None = frozenset()  # nodeFits: None for all
        self.queue_limits: dict[str, dict[str, int]] = {}
        self._held: dict[str, Held] = {}  # by uid
        self._on_node: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._in_queue: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._room: dict[str, dict[str, int]] = {}
        self._queue_of: dict[Key, str] = {}

    def listen(self) -> None:
        """Take in what has happened; groups and nodes before the pods that need them."""
        now = self._cluster.clock.now()
        for kind in (NODE, POD_GROUP, *(k for k in KINDS if k not in (NODE, POD_GROUP))):
            for event in self._watches[kind].poll():
                self.moments[kind].append(Moment(now, event.type, kind, event.object))
                self._judge(kind, event.type, event.object)

    # --- at every moment ------------------------------------------------------------------------------------------------

    def _judge(self, kind: Kind, event: str, obj: Json) -> None:
        name = key_of(obj).name
        if kind is NODE:
            listed = (obj.get("status") or {}).get("allocatable") or {}
            if event == "DELETED":
                self._room.pop(name, None)
            else:
                self._room[name] = {key: quantity.nanos(text) for key, text in listed.items()}
        elif kind is POD_GROUP:
            self._queue_of[key_of(obj)] = (obj.get("spec") or {}).get("queue") or "default"
        elif kind is POD:
            self._judge_pod(event, obj)

    def _judge_pod(self, event: str, pod: Json) -> None:
        uid = uid_of(pod)
        before = self._held.pop(uid, None)
        now = self._held_by(pod) if event != "DELETED" else None
        if before is not None:
            self._count(before, -1)
        if now is not None:
            self._count(now, +1)
        if now is not None:
            self._held[uid] = now
            if before is None or before.requests != now.requests:
                self._judge_room(now, key_of(pod))

    def _count(self, held: Held, sign: int) -> None:
        for resource, amount in held.requests.items():
            self._on_node[held.node][resource] += sign * amount
            self._in_queue[held.queue][resource] += sign * amount

    def _held_by(self, pod: Json) -> Held | None:
        node = pod["spec"].get("nodeName")
        if not node or (pod.get("status") or {}).get("phase") in ENDED:
            return None
        requests = {**effective_requests(view(Pod, pod).spec), "pods": 10**9}
        group = annotations_of(pod).get(labels.GROUP_NAME, "")
        return Held(node, self._queue_of.get(Key(key_of(pod).namespace, group), ""), requests)

    def _judge_room(self, held: Held, pod: Key) -> None:
        room = self._room.get(held.node)  # None: no such node
        if room is not None and (self.watched_nodes is None or held.node in self.watched_nodes):
            self._compare(f"node {held.node}", self._on_node[held.node], room, held.requests, pod)
        limits = self.queue_limits.get(held.queue)
        if limits is not None:
            self._compare(f"queue {held.queue}", self._in_queue[held.queue], limits, limits, pod)

    def _compare(self, what: str, used: Mapping[str, int], room: Mapping[str, int], asked: Mapping[str, int], pod: Key) -> None:
        for resource, amount in asked.items():
            if amount and used.get(resource, 0) > room.get(resource, 0):
                have, most = (quantity.format_nanos(amounts.get(resource, 0)) for amounts in (used, room))
                self.over.setdefault(f"{what} {resource}", f"{have} > {most} once {pod.name} is there")

    # --- afterwards -----------------------------------------------------------------------------------------------------

    def states(self, kind: Kind, name: str) -> Iterator[Moment]:
        """Every state that objects of the name had."""
        return (moment for moment in self.moments[kind] if key_of(moment.object).name == name)

    def phases(self, kind: Kind, name: str) -> list[tuple[Time, str]]:
        """Phase (queues: state) whenever it changed."""
        seen: list[tuple[Time, str]] = []
        for moment in self.states(kind, name):
            phase = phase_of(moment.object)
            if moment.type != "DELETED" and phase and (not seen or seen[-1][1] != phase):
                seen.append((moment.at, phase))
        return seen

    def added(self, kind: Kind, name: str) -> list[Moment]:
        """Each coming into being of an object of the name."""
        return [moment for moment in self.states(kind, name) if moment.type == "ADDED"]

    def bound(self, name: str) -> list[Time]:
        """When pods of the name got a node, each uid once."""
        first: dict[str, Time] = {}
        for moment in self.states(POD, name):
            if moment.object["spec"].get("nodeName"):
                first.setdefault(uid_of(moment.object), moment.at)
        return list(first.values())


def phase_of(obj: Json) -> str:
    """status.phase of pods and groups, status.state.phase of jobs and flows, status.state of queues."""
    status = obj.get("status") or {}
    state = status.get("state")
    if obj.get("kind") == QUEUE.name:
        return str(state or "")
    return str(state.get("phase") or "") if isinstance(state, Mapping) else str(status.get("phase") or "")
