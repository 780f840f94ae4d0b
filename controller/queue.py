"""The controller of queues: the state of each queue, its place in the tree, and how many groups it holds in which phase.

Source: volcano ed72c7c, pkg/controllers/queue. Differences: requests are values and coalesce, the counts are written to the
status, where the API and `vqueues` show them, and a parent that changes its state is itself what moves its children."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from controller.command import Take, action_of, take, taken_by
from controller.merge import merge_diff
from controller.reconciler import NOTHING, Decision, Lookup, NotYet, PlainController, Settings, Stage
from controller.store import Change, Index
from extender.api import labels as names
from extender.api import podgroup as group_phases
from extender.api.errors import ClusterError, PumiceError
from extender.api.meta import COMMAND, POD_GROUP, QUEUE, Json, Key, Kind, Time
from extender.api.operations import Emit, Operation, Patch, PatchStatus
from extender.api.queue import CLOSE_QUEUE, CLOSED, CLOSING, OPEN, OPEN_QUEUE, ROOT, SYNC_QUEUE, UNKNOWN, Queue
from extender.api.views import view

SHUT = (CLOSED, CLOSING)
_EMPTIED = "Closed, or Closing while groups are left"

STATES: Mapping[str, Mapping[str, str]] = {
    #         action:    the next state
    OPEN:    {OPEN_QUEUE: OPEN, CLOSE_QUEUE: _EMPTIED, SYNC_QUEUE: OPEN},
    CLOSING: {OPEN_QUEUE: OPEN, CLOSE_QUEUE: _EMPTIED, SYNC_QUEUE: _EMPTIED},
    CLOSED:  {OPEN_QUEUE: OPEN, CLOSE_QUEUE: CLOSED,   SYNC_QUEUE: CLOSED},
    UNKNOWN: {OPEN_QUEUE: OPEN, CLOSE_QUEUE: _EMPTIED, SYNC_QUEUE: UNKNOWN},
}  # fmt: skip

_COUNTED = {
    group_phases.PENDING: "pending",
    group_phases.RUNNING: "running",
    group_phases.INQUEUE: "inqueue",
    group_phases.COMPLETED: "completed",
    group_phases.UNKNOWN: "unknown",
}


@dataclass(frozen=True, slots=True)
class QueueRequest:
    queue: str
    action: str = SYNC_QUEUE


@dataclass(frozen=True, slots=True, eq=False)
class QueueSeen:
    """One queue, its parent, and its groups counted by phase."""

    queue: Queue
    raw: Json
    parent: Queue | None
    groups: Mapping[str, int]

    @property
    def name(self) -> str:
        return self.queue.metadata.name

    @property
    def state(self) -> str:
        return self.queue.status.state or OPEN

    @property
    def closed_by_parent(self) -> bool:
        return self.queue.metadata.annotation(names.CLOSED_BY_PARENT) == "true"


def reconcile(seen: QueueSeen, action: str) -> Decision:
    """Raises ClusterError where a queue is to be opened below one that is shut, NotYet where its parent is missing."""
    steps = STATES.get(seen.state)
    if steps is None:
        raise ClusterError(f"queue {seen.name}: '{seen.state}' is no state; set its status.state to Open or Closed")
    if action == CLOSE_QUEUE and seen.name == ROOT:
        return NOTHING
    if action == OPEN_QUEUE and seen.state != OPEN and seen.parent is not None and _is_shut(seen.parent):
        raise ClusterError(f"queue {seen.name} cannot be opened: open its parent {seen.parent.metadata.name} first")
    wanted = steps.get(action, steps[SYNC_QUEUE])
    if wanted == _EMPTIED:
        wanted = CLOSING if any(seen.groups.values()) else CLOSED
    stages = [Stage(_parent_patch(seen)), Stage(_status(seen, wanted))]
    if action == CLOSE_QUEUE and wanted in SHUT and seen.state not in SHUT:
        told = Emit(QUEUE, seen.queue.metadata.key, "Normal", CLOSE_QUEUE, f"Close queue {seen.name}", seen.queue.metadata.uid)
        stages.append(Stage((told,)))
    if action == OPEN_QUEUE and seen.state != OPEN:
        stages.append(Stage((_closed_by_parent(seen, "false"),)))
        return Decision(stages)
    note, follow_up = _hierarchy(seen, wanted)
    return Decision([*stages, Stage(note)], follow_up=follow_up)


def _hierarchy(seen: QueueSeen, state: str) -> tuple[Sequence[Patch], Sequence[QueueRequest]]:
    """A queue below a shut one is shut with it, and opened again with it if that was the reason."""
    if seen.name == ROOT:
        return (), ()
    parent_name = seen.queue.spec.parent or ROOT
    if seen.parent is None:
        if parent_name == ROOT:
            return (), ()
        raise NotYet(f"the parent of queue {seen.name}, {parent_name}, does not exist; create it or give another")
    if _is_shut(seen.parent) and state not in SHUT:
        return (_closed_by_parent(seen, "true"),), (QueueRequest(seen.name, CLOSE_QUEUE),)
    if (seen.parent.status.state or OPEN) == OPEN and state in SHUT and seen.closed_by_parent:
        return (), (QueueRequest(seen.name, OPEN_QUEUE),)
    return (), ()


def _is_shut(queue: Queue) -> bool:
    return queue.status.state in SHUT


def _parent_patch(seen: QueueSeen) -> Sequence[Patch]:
    if seen.name == ROOT or seen.queue.spec.parent:
        return ()
    return (Patch(QUEUE, seen.queue.metadata.key, {"spec": {"parent": ROOT}}, uid=seen.queue.metadata.uid),)


def _closed_by_parent(seen: QueueSeen, value: str) -> Patch:
    note = {"metadata": {"annotations": {names.CLOSED_BY_PARENT: value}}}
    return Patch(QUEUE, seen.queue.metadata.key, note, uid=seen.queue.metadata.uid)


def _status(seen: QueueSeen, state: str) -> Sequence[PatchStatus]:
    """State and counts; what others write beside them (allocated, reservation) is not touched. A zero is left out."""
    ours = ("state", *_COUNTED.values())
    stored = {name: value for name, value in (seen.raw.get("status") or {}).items() if name in ours and value != 0}
    wanted = {"state": state, **{name: number for name, number in seen.groups.items() if number}}
    diff = merge_diff(stored, wanted)
    return (PatchStatus(QUEUE, seen.queue.metadata.key, {"status": diff}, uid=seen.queue.metadata.uid),) if diff else ()


class QueueController(PlainController):
    name = "queue-controller"
    kinds: Sequence[Kind] = (QUEUE, POD_GROUP, COMMAND)
    indexes: Sequence[Index] = (
        Index("groups by queue and phase", POD_GROUP, lambda group: (_place(group),)),
        Index("queues by parent", QUEUE, lambda queue: ((queue.get("spec") or {}).get("parent") or ROOT,)),
    )

    def start(self, lookup: Lookup, settings: Settings) -> None:
        self._store = lookup.store

    def observe(self, change: Change, now: Time) -> Iterable[Hashable]:
        if change.kind == COMMAND:
            return taken_by(change, QUEUE)
        if change.kind == QUEUE:
            return self._queue_changed(change)
        places = [_place(group) if group is not None else None for group in (change.old, change.new)]
        return [QueueRequest(place[0]) for place in places if place is not None] if places[0] != places[1] else ()

    def _queue_changed(self, change: Change) -> Iterable[Hashable]:
        """One that is new or has moved, and, where it has changed its state, those below it."""
        before, after = (view(Queue, obj) if obj is not None else None for obj in (change.old, change.new))
        if after is not None and (before is None or before.spec.parent != after.spec.parent):
            yield QueueRequest(change.key.name)
        if after is not None and (before is None or before.status.state != after.status.state):
            for child in self._store.by("queues by parent", change.key.name):
                if child["metadata"]["name"] != change.key.name:
                    yield QueueRequest(child["metadata"]["name"])

    def group_of(self, request: Hashable) -> Hashable:
        assert isinstance(request, (QueueRequest, Take))
        return request.target.name if isinstance(request, Take) else request.queue

    def reconcile(self, request: Hashable, now: Time) -> Decision:
        if isinstance(request, Take):
            action = action_of(self._store, request)
            return take(self._store, request, (QueueRequest(request.target.name, action),))
        assert isinstance(request, QueueRequest)
        seen = self._seen(request.queue)
        return reconcile(seen, request.action) if seen is not None else NOTHING

    def _seen(self, name: str) -> QueueSeen | None:
        raw = self._store.get(QUEUE, Key("", name))
        if raw is None or raw["metadata"].get("deletionTimestamp"):
            return None
        queue = view(Queue, raw)
        parent = self._store.get(QUEUE, Key("", queue.spec.parent or ROOT)) if name != ROOT else None
        groups = {word: self._store.count("groups by queue and phase", (name, word)) for word in _COUNTED.values()}
        return QueueSeen(queue, raw, view(Queue, parent) if parent is not None else None, groups)

    def failed(self, request: Hashable, operation: Operation | None, error: PumiceError) -> Iterable[Operation]:
        if isinstance(request, QueueRequest) and operation is not None and request.action in (OPEN_QUEUE, CLOSE_QUEUE):
            yield Emit(QUEUE, Key("", request.queue), "Warning", request.action, str(error))

    def gave_up(self, request: Hashable, now: Time) -> Decision:
        if not isinstance(request, QueueRequest):
            return NOTHING
        message = f"Gave up {request.action} of queue {request.queue}"
        return Decision.telling([Emit(QUEUE, Key("", request.queue), "Warning", request.action, message)])


def _place(group: Json) -> tuple[str, str]:
    """The queue of a group and the word under which it is counted there; a group that nobody has looked at is pending."""
    phase = (group.get("status") or {}).get("phase") or group_phases.PENDING
    return (group.get("spec") or {}).get("queue") or "", _COUNTED.get(phase, "unknown")
