"""The kubelets of the embedded cluster: pods that have a node start, run, end and go, on a Clock.

Nothing happens between two ticks: `tick` does all that is due by now, `next_due` tells a driver with a virtual clock how far
it may jump. A container that ended waits before it runs again: the back-off, 10 seconds to five minutes. Cost follows the
pods that change: events come in by a watch, what is to be done later waits in a heap."""

from __future__ import annotations

import contextlib
import heapq
import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

from extender.api import labels
from extender.api.duration import length
from extender.api.errors import Conflict, InvalidObject, NotFound
from extender.api.meta import NODE, POD, Json, Key, Time, annotations_of, format_time, key_of, parse_time
from extender.cluster import container_status
from extender.cluster.clock import Clock
from extender.cluster.hearing import Hearing
from extender.cluster.port import Cluster
from extender.cluster.room import Lacking, Room

ORPHAN_SECONDS = 40.0  # kubernetes v1.36.1 pkg/controller/podgc, quarantineTime
_CODE = re.compile(r"[0-9]{1,3}")
# Between the end of a container and its next start; forgotten once it has run for long (kubernetes v1.36.1 pkg/kubelet/kubelet.go
# and k8s.io/client-go util/flowcontrol/backoff.go). The first restart comes at once.
_FIRST_BACK_OFF, _LONGEST_BACK_OFF = 10.0, 300.0
_FORGOTTEN_AFTER = 2 * _LONGEST_BACK_OFF


class _BackOff(NamedTuple):
    """What the next restart of a pod's containers has to wait, and when they started last."""

    delay: float
    started: Time


class _Task(NamedTuple):
    """Something to be done to one pod; `number` keeps the order of what is due at the same time."""

    due: Time
    number: int
    act: Callable[[Json], bool]
    key: Key
    uid: str


class Kubelet:
    """`start_seconds`: from the binding to Running and Ready. `complete_after`: globs of pod names -> seconds after which a
    running pod Succeeds. `not_ready`: globs of pods that run but are not Ready until somebody else says so. `graceful` off:
    deleted pods are gone at the next tick. `orphan_seconds`: after which pods of a node that is gone go too; None: never."""

    def __init__(self, cluster: Cluster, clock: Clock, *, start_seconds: float = 1.0,
                 complete_after: Mapping[str, float] | None = None, not_ready: Iterable[str] = (), graceful: bool = True,
                 orphan_seconds: float | None = ORPHAN_SECONDS) -> None:  # fmt: skip
        self._cluster = cluster
        self._clock = clock
        self._start_seconds = start_seconds
        self._complete_after = dict(complete_after or {})
        self._not_ready = tuple(not_ready)
        self._graceful = graceful
        self._orphan_seconds = orphan_seconds
        self._tasks: list[_Task] = []
        self._numbers = 0
        self._started: dict[str, Time] = {}  # uid -> when it was told to start
        self._going: dict[str, Time] = {}  # uid -> when it will be gone
        self._ending: set[str] = set()
        self._back_offs: dict[str, _BackOff] = {}  # by uid
        self._nodes: set[str] = set()
        self._heard = Hearing(cluster, (NODE, POD), self._nodes.clear)
        self._on_node: dict[str, dict[str, Key]] = {}  # node -> the pods bound to it, by uid
        self._room = Room()
        self._addresses = 0

    def tick(self) -> int:
        """Do all that is due; the number of changes made."""
        changes = 0
        self._hear()
        while self._tasks and self._tasks[0].due <= self._clock.now():
            task = heapq.heappop(self._tasks)
            pod = self._pod(task.key, task.uid)
            if pod is not None:
                changes += task.act(pod)
            self._hear()
        return changes

    def next_due(self) -> Time | None:
        """When the next thing is to be done; None while nothing is."""
        self._hear()
        return self._tasks[0].due if self._tasks else None

    # --- hearing ------------------------------------------------------------------------------------------------------

    def _hear(self) -> None:
        for kind, event in self._heard.events():
            if kind == NODE:
                self._hear_node(event.type, event.object["metadata"]["name"])
            elif event.type == "DELETED":
                self._forget(event.object)
            else:
                self._hear_pod(event.object)

    def _hear_node(self, event: str, name: str) -> None:
        there = list(self._on_node.get(name, {}).items())
        if event == "DELETED":
            self._nodes.discard(name)
            for uid, key in there:
                self._later_orphaned(key, uid)
        elif name not in self._nodes:
            self._nodes.add(name)
            for uid, key in there:
                pod = self._pod(key, uid)
                if pod is not None:
                    self._hear_pod(pod)

    def _hear_pod(self, pod: Json) -> None:
        node = pod["spec"].get("nodeName")
        if not node:
            return
        uid = pod["metadata"]["uid"]
        on_node = self._on_node.setdefault(node, {})
        if uid not in on_node:
            on_node[uid] = key_of(pod)
            if node not in self._nodes:
                self._later_orphaned(key_of(pod), uid)
        if pod["status"].get("phase") == "Running":
            self._room.take(node, uid, pod["spec"])
        else:
            self._room.release(node, uid)
        if "deletionTimestamp" in pod["metadata"]:
            self._hear_deletion(pod, uid)
        elif node not in self._nodes:
            return
        elif pod["status"].get("phase") == "Pending":
            if uid not in self._started and annotations_of(pod).get(labels.HOLD) != "true":
                self._started[uid] = _bound_at(pod, self._clock.now()) + self._start_seconds
                self._later(self._started[uid], self._start, pod)
        elif pod["status"].get("phase") == "Running" and uid not in self._ending:
            self._plan_end(pod, uid)

    def _hear_deletion(self, pod: Json, uid: str) -> None:
        gone_at = parse_time(pod["metadata"]["deletionTimestamp"]) or 0.0
        if not self._graceful or pod["spec"]["nodeName"] not in self._nodes:
            gone_at = min(gone_at, self._clock.now())
        if gone_at < self._going.get(uid, float("inf")):
            self._going[uid] = gone_at
            self._later(gone_at, self._remove, pod)

    def _forget(self, pod: Json) -> None:
        uid = pod["metadata"]["uid"]
        self._started.pop(uid, None)
        self._going.pop(uid, None)
        self._ending.discard(uid)
        self._back_offs.pop(uid, None)
        node = pod["spec"].get("nodeName", "")
        self._on_node.get(node, {}).pop(uid, None)
        self._room.release(node, uid)

    # --- acting -------------------------------------------------------------------------------------------------------

    def _start(self, pod: Json) -> bool:
        if pod["status"].get("phase") != "Pending" or "deletionTimestamp" in pod["metadata"]:
            return False
        lacking = self._lacking(pod)
        if lacking is not None:
            return self._report(pod, lacking.as_status())
        self._addresses += 1
        ready = self._is_ready(pod)
        return self._report(pod, container_status.running(pod, self._now(), ready=ready, address=self._addresses))

    def _lacking(self, pod: Json) -> Lacking | None:
        try:
            node = self._cluster.get(NODE, Key("", pod["spec"]["nodeName"]))
        except NotFound:  # it went in between, and the pod with it
            return None
        return self._room.lacking(node, pod["spec"])

    def _is_ready(self, pod: Json) -> bool:
        return not any(fnmatchcase(pod["metadata"]["name"], glob) for glob in self._not_ready)

    def _plan_end(self, pod: Json, uid: str) -> None:
        name = pod["metadata"]["name"]
        succeeds = next((after for glob, after in self._complete_after.items() if fnmatchcase(name, glob)), None)
        try:
            exits = run_seconds(pod)
            exit_code(pod)
        except InvalidObject as error:
            self._ending.add(uid)
            self._report(pod, {"phase": "Failed", "reason": "InvalidAnnotation", "message": str(error)})
            return
        if succeeds is None and exits is None:
            return
        self._ending.add(uid)
        started = self._started.get(uid) or parse_time(pod["status"].get("startTime")) or self._clock.now()
        if succeeds is not None:
            self._later(started + succeeds, self._succeed, pod)
        elif exits is not None:
            self._later(started + exits, self._exit, pod)

    def _succeed(self, pod: Json) -> bool:
        return _runs(pod) and self._report(pod, container_status.ended(pod, self._now(), 0))

    def _exit(self, pod: Json) -> bool:
        """The containers end, and start again where the pod's restartPolicy says so."""
        if not _runs(pod):
            return False
        code = exit_code(pod)
        policy = pod["spec"].get("restartPolicy", "Always")
        if policy == "Never" or (policy == "OnFailure" and code == 0):
            return self._report(pod, container_status.ended(pod, self._now(), code))
        uid, now = pod["metadata"]["uid"], self._clock.now()
        last = self._back_offs.get(uid)
        if last is None or now - last.started > _FORGOTTEN_AFTER:
            self._back_offs[uid] = _BackOff(_FIRST_BACK_OFF, now)
            return self._restart(pod)
        self._back_offs[uid] = _BackOff(min(2 * last.delay, _LONGEST_BACK_OFF), now + last.delay)
        self._later(now + last.delay, self._restart, pod)
        return self._report(pod, container_status.crashed(pod, self._now(), code, last.delay))

    def _restart(self, pod: Json) -> bool:
        """The containers run again, until they end again."""
        if not _runs(pod):
            return False
        now = self._clock.now()
        self._started[pod["metadata"]["uid"]] = now
        self._later(now + (run_seconds(pod) or 0.0), self._exit, pod)
        return self._report(pod, container_status.restarted(pod, self._now(), exit_code(pod), ready=self._is_ready(pod)))

    def _remove(self, pod: Json) -> bool:
        if "deletionTimestamp" not in pod["metadata"]:
            return False
        with contextlib.suppress(NotFound, Conflict):
            self._cluster.delete(POD, key_of(pod), uid=pod["metadata"]["uid"], grace_seconds=0)
        return True

    def _orphaned(self, pod: Json) -> bool:
        """The node did not come back: the pod has failed, and goes."""
        if pod["spec"].get("nodeName") in self._nodes:
            return False
        self._report(pod, container_status.orphaned(pod, self._now()))
        with contextlib.suppress(NotFound, Conflict):
            self._cluster.delete(POD, key_of(pod), uid=pod["metadata"]["uid"], grace_seconds=0)
        return True

    # --- small things -------------------------------------------------------------------------------------------------

    def _report(self, pod: Json, status: Json) -> bool:
        patch = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}
        try:
            self._cluster.patch(POD, key_of(pod), patch, subresource="status")
        except (NotFound, Conflict):  # it went in between
            return False
        return True

    def _later(self, due: Time, act: Callable[[Json], bool], pod: Json) -> None:
        self._push(due, act, key_of(pod), pod["metadata"]["uid"])

    def _later_orphaned(self, key: Key, uid: str) -> None:
        if self._orphan_seconds is not None:
            self._push(self._clock.now() + self._orphan_seconds, self._orphaned, key, uid)

    def _push(self, due: Time, act: Callable[[Json], bool], key: Key, uid: str) -> None:
        self._numbers += 1
        heapq.heappush(self._tasks, _Task(due, self._numbers, act, key, uid))

    def _pod(self, key: Key, uid: str) -> Json | None:
        try:
            pod = self._cluster.get(POD, key)
        except NotFound:
            return None
        return pod if pod["metadata"]["uid"] == uid else None

    def _now(self) -> str:
        return format_time(self._clock.now())


def _bound_at(pod: Json, now: Time) -> Time:
    """When the pod got its node, as its condition says; now where it does not say."""
    for condition in pod["status"].get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "True":
            return min(parse_time(condition.get("lastTransitionTime")) or now, now)
    return now


def _runs(pod: Json) -> bool:
    return pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]


def run_seconds(pod: Json) -> float | None:
    """A number of seconds or a Go duration, not below zero. Raises InvalidObject naming the annotation."""
    text = annotations_of(pod).get(labels.RUN_SECONDS)
    if text is None:
        return None
    path = f"metadata.annotations[{labels.RUN_SECONDS}]"
    after = length(text, path)
    if after < 0:
        raise InvalidObject(f"'{text}' is below zero", path=path)
    return after


def exit_code(pod: Json) -> int:
    """0 to 255. Raises InvalidObject naming the annotation."""
    text = annotations_of(pod).get(labels.EXIT_CODE, "0")
    if not _CODE.fullmatch(text) or int(text) > 255:
        raise InvalidObject(f"'{text}' is not an exit code (0 to 255)", path=f"metadata.annotations[{labels.EXIT_CODE}]")
    return int(text)
