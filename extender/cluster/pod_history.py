"""What became of every pod, told from a watch: when it came, got its node, ran and went. For Gantt charts and reports."""

from __future__ import annotations

from dataclasses import dataclass, replace

from extender.api import labels
from extender.api.errors import Gone
from extender.api.meta import POD, Json, Key, Time, annotations_of, key_of, uid_of
from extender.api.pod import ENDED
from extender.cluster.clock import Clock
from extender.cluster.port import Watch, Watcher


@dataclass(frozen=True, slots=True)
class PodSpan:
    """One pod from beginning to end; what has not happened yet is None. Times are seconds since the epoch.

    `end`: Succeeded, Failed or Deleted (before it had ended by itself); "" while it goes on."""

    pod: Key
    uid: str
    group: str
    role: str
    created: Time
    node: str = ""
    bound: Time | None = None
    started: Time | None = None
    ended: Time | None = None
    end: str = ""


class PodHistory:
    """Ask `listen` often: an event counts for the moment at which it is heard."""

    def __init__(self, cluster: Watcher, clock: Clock) -> None:
        self._cluster, self._clock = cluster, clock
        self._watch: Watch | None = None
        self._spans: dict[str, PodSpan] = {}  # by uid, in order of creation

    def listen(self) -> None:
        """Take in what has happened."""
        try:
            if self._watch is None:
                self._watch = self._cluster.watch(POD, "0")
            events = self._watch.poll()
        except Gone:  # heard too seldom: what was missed in between is gone
            self._watch = None
            return
        for event in events:
            if event.type == "DELETED":
                self._deleted(event.object)
            elif event.type != "BOOKMARK":
                self._seen(event.object)

    def spans(self) -> list[PodSpan]:
        """Every pod that ever was, in order of creation."""
        self.listen()
        return list(self._spans.values())

    def _seen(self, pod: Json) -> None:
        now, uid = self._clock.now(), uid_of(pod)
        marks = annotations_of(pod)
        group = marks.get(labels.GROUP_NAME, "")
        span = self._spans.get(uid)
        if span is None:
            span = PodSpan(key_of(pod), uid, group, marks.get(labels.TASK_SPEC, ""), now)
        elif not span.group and group:  # the podgroup controller finds a group for plain pods
            span = replace(span, group=group)
        node, phase = pod["spec"].get("nodeName", ""), pod["status"].get("phase", "")
        if node and span.bound is None:
            span = replace(span, node=node, bound=now)
        if phase == "Running" and span.started is None:
            span = replace(span, started=now)
        if phase in ENDED and span.ended is None:
            span = replace(span, ended=now, end=phase)
        self._spans[uid] = span

    def _deleted(self, pod: Json) -> None:
        span = self._spans.get(uid_of(pod))
        if span is not None and span.ended is None:
            self._spans[span.uid] = replace(span, ended=self._clock.now(), end="Deleted")
