"""All that the watches bring goes into one mirror, under one lock; whoever decides on the mirror listens.

    watch > Intake > mirror > listeners: the loop's back-offs, the extender's books

Either one thread polls for everything (`feed`), or each kind has a thread of its own (`follow`): events are taken in while a
session is written, and a verb need not wait for somebody to poll. The lock is held for one batch
of events, one session, one answer, and never while a cluster is asked."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping

from extender.api.errors import ClusterError, NotFound
from extender.api.meta import Json, Key, Kind, key_of
from extender.cluster.following import Follower
from extender.cluster.logs import about
from extender.cluster.port import Cluster, WatchEvent
from extender.core.followed import ALWAYS
from extender.core.mirror import Mirror

_BATCH = 256  # events that are taken in without a pause in which others may have the lock
_POLL = 1.0  # seconds that a thread waits for an event before it looks whether it is to end
_BACKOFF = 2.0

log = logging.getLogger(__name__)

Listener = Callable[[Kind, str, Json], None]
Ours = Mapping[Kind, Callable[[Json], bool]]


class Intake:
    """`kinds`: what the configuration asks for besides. `ours`: by kind, which objects are there for us; else all of them.

    `listeners` are told of each change once the mirror has it, under the lock; `arrived` is notified after each batch."""

    def __init__(self, cluster: Cluster, mirror: Mirror, kinds: Iterable[Kind] = (), *,
                 ours: Ours | None = None) -> None:  # fmt: skip
        self.mirror = mirror
        self.lock = threading.RLock()
        self.arrived = threading.Condition(self.lock)
        self.listeners: list[Listener] = []
        self._cluster, self._ours = cluster, ours or {}
        self._followers = [Follower(cluster, kind) for kind in ALWAYS]
        self._with_thread: set[Kind] = set()
        self._listed: set[Kind] = set()  # the mirror has the first list
        self._failure: Exception | None = None  # what ended a thread that it should not have ended
        self._doubtful: dict[tuple[Kind, Key], None] = {}  # a write about it failed: what does it show now?
        self.add(kinds)

    def add(self, kinds: Iterable[Kind]) -> None:
        """Follow these too; an API server that does not know one of them has none."""
        with self.lock:
            known = {follower.kind for follower in self._followers}
            self._followers += [Follower(self._cluster, kind, optional=True) for kind in kinds if kind not in known]

    def lagging(self) -> list[Kind]:
        """Kinds whose list has not come yet."""
        return [follower.kind for follower in self._followers if not (follower.synced and follower.kind in self._listed)]

    def feed(self) -> None:
        """Take in what there is of kinds that have no thread. May raise a ClusterError, and be called again."""
        for follower in self._followers:
            if follower.kind not in self._with_thread:
                self._take_in(follower, follower.poll())

    def follow(self, stop: threading.Event) -> None:
        """A thread for each kind that has none, until `stop` is set."""
        for follower in self._followers:
            if follower.kind not in self._with_thread:
                self._with_thread.add(follower.kind)
                name = f"follow-{follower.kind.plural}"
                threading.Thread(target=self._follow, args=(follower, stop), name=name, daemon=True).start()

    def check(self) -> None:
        """Raises what a thread has failed with: nobody may go on deciding on a mirror that has stopped to follow."""
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        for follower in self._followers:
            follower.close()

    def _follow(self, follower: Follower, stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                self._take_in(follower, follower.poll(_POLL))
            except ClusterError as error:
                log.warning("a watch does not answer as it should", extra=about(kind=follower.kind, error=str(error)))
                stop.wait(_BACKOFF)
            except Exception as error:
                self._failure = error
                return

    def _take_in(self, follower: Follower, events: list[WatchEvent]) -> None:
        for start in range(0, len(events), _BATCH):
            with self.lock:
                for event in events[start : start + _BATCH]:
                    self._apply(follower.kind, event.type, event.object)
                self.arrived.notify_all()
        self._listed.add(follower.kind)

    def _apply(self, kind: Kind, event: str, obj: Json) -> None:
        if kind in self._ours and not self._ours[kind](obj):
            if not self.mirror.has(kind, key_of(obj)):
                return
            event = "DELETED"  # it is not ours any more
        self.mirror.apply(kind, event, obj)
        for listener in self.listeners:
            listener(kind, event, obj)

    # --- what a write that failed was about -------------------------------------------------------------------------------

    def doubt(self, kind: Kind, key: Key) -> None:
        """What we assumed of the object is not so: `look_again`, for the watch has nothing to tell about it."""
        self._doubtful[kind, key] = None

    def look_again(self) -> None:
        """Read what is doubtful anew. What cannot be read now stays so."""
        for kind, key in list(self._doubtful):
            try:
                event, obj = "MODIFIED", self._cluster.get(kind, key)
            except NotFound:
                event, obj = "DELETED", {"metadata": {"namespace": key.namespace, "name": key.name}}
            except ClusterError:
                continue
            with self.lock:
                self.mirror.apply(kind, event, obj)
            self._doubtful.pop((kind, key), None)
