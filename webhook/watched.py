"""A ClusterView that watches: queues and namespaces are read from memory, fed by one watch for each kind that is needed.

Until every list is there it says so (`missing`), and nobody may be answered from it: a queue that has not been heard of
looks like one that does not exist."""

from __future__ import annotations

import logging
import random
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from extender.api import shapes as pod_shapes
from extender.api.errors import ClusterError, NotFound
from extender.api.meta import NAMESPACE, QUEUE, Json, Key, Kind, Time, key_of, uid_of
from extender.cluster.clock import Clock
from extender.cluster.following import Follower
from extender.cluster.logs import about
from extender.cluster.port import Cluster, WatchEvent
from webhook import shapes
from webhook.view import as_dict

POLL_SECONDS = 1.0
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0  # after a failure; doubled each time, with jitter
OWNERS_KEPT, OWNER_SECONDS = 1024, 10.0
_SHAPES: Mapping[Kind, pod_shapes.Fields] = {QUEUE: shapes.QUEUE, NAMESPACE: pod_shapes.NAMESPACE}

log = logging.getLogger(__name__)


class WatchedView:
    """Thread-safe: readers see one state of the queues or the next, for these are replaced and never changed.

    Owners of pods are not watched but read, and kept for a few seconds: pods of one workload come together."""

    def __init__(self, cluster: Cluster, clock: Clock, kinds: Iterable[Kind]) -> None:
        self._cluster, self._clock = cluster, clock
        self._followers = {kind: Follower(cluster, kind) for kind in kinds}
        self._delivered: set[Kind] = set()
        self._objects: dict[Kind, dict[str, Json]] = {kind: {} for kind in _SHAPES}
        self._children: Mapping[str, Sequence[Json]] = {}
        self._owners: OrderedDict[tuple[Kind, Key, str], tuple[Time, Json | None]] = OrderedDict()
        self._lock = threading.Lock()

    # --- what handlers ask ------------------------------------------------------------------------------------------------

    def queue(self, name: str) -> Json | None:
        return self._objects[QUEUE].get(name)

    def queues(self) -> Sequence[Json]:
        return list(self._objects[QUEUE].values())

    def children(self, parent: str) -> Sequence[Json]:
        return self._children.get(parent, ())

    def namespace(self, name: str) -> Json | None:
        return self._objects[NAMESPACE].get(name)

    def owner(self, kind: Kind, key: Key, uid: str) -> Json | None:
        wanted, now = (kind, key, uid), self._clock.now()
        with self._lock:
            read, owner = self._owners.get(wanted, (0.0, None))
        if now < read + OWNER_SECONDS:
            return owner
        try:
            found = self._cluster.get(kind, key)
            owner = found if uid_of(found) == uid else None
        except NotFound:
            owner = None
        with self._lock:
            self._owners[wanted] = now, owner
            self._owners.move_to_end(wanted)
            while len(self._owners) > OWNERS_KEPT:
                self._owners.popitem(last=False)
        return owner

    # --- how it is fed ----------------------------------------------------------------------------------------------------

    @property
    def missing(self) -> Sequence[Kind]:
        """The kinds whose list has not come yet."""
        return [kind for kind in self._followers if kind not in self._delivered]

    def step(self, kind: Kind, timeout: float = 0.0) -> None:
        """Take in what is new of one kind. Raises ClusterError; then everything stays as it was."""
        events = self._followers[kind].poll(timeout)
        if events:
            self._take(kind, events)
        self._delivered.add(kind)

    def follow(self, kind: Kind, stop: threading.Event) -> None:
        """Until `stop` is set, whatever the API server does."""
        pause = FIRST_PAUSE
        while not stop.is_set():
            try:
                self.step(kind, POLL_SECONDS)
                pause = FIRST_PAUSE
            except ClusterError as error:
                log.warning("cannot be followed", extra=about(kind=kind, error=str(error), again_in=pause))
                stop.wait(pause * random.uniform(0.8, 1.2))
                pause = min(2 * pause, LONGEST_PAUSE)
        self._followers[kind].close()

    def start(self, stop: threading.Event) -> list[threading.Thread]:
        """One thread for each kind."""
        threads = [
            threading.Thread(target=self.follow, args=(kind, stop), name=f"follow-{kind.plural}", daemon=True)
            for kind in self._followers
        ]
        for thread in threads:
            thread.start()
        return threads

    def _take(self, kind: Kind, events: Iterable[WatchEvent]) -> None:
        objects = dict(self._objects[kind])
        for event in events:
            name = key_of(event.object).name
            if event.type == "DELETED":
                objects.pop(name, None)
            else:
                objects[name] = as_dict(event.object, _SHAPES[kind])
        self._objects[kind] = objects
        if kind == QUEUE:
            children: defaultdict[str, list[Json]] = defaultdict(list)
            for queue in objects.values():
                children[queue.get("spec", {}).get("parent", "")].append(queue)
            self._children = dict(children)
