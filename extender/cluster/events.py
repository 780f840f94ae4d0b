"""Events: one object per thing, reason and message, with a count; repeats never become a storm of writes.

After each write the next one for the same event waits twice as long, up to five minutes; what is said in between is counted.
The scheme of names and fields is that of k8s.io/client-go v0.36.1 tools/record (events_cache.go), the folding by waiting is
ours: client-go drops what is above its rate."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Protocol

from extender.api.errors import AlreadyExists, ClusterError, NotFound
from extender.api.meta import EVENT, Json, Key, Time, format_time
from extender.api.operations import Emit
from extender.cluster.clock import Clock
from extender.cluster.port import Cluster

REMEMBERED = 4096  # events; client-go's LRU has the same size
LONGEST_WAIT = 300.0  # seconds


class Recorder(Protocol):
    """Takes events. An EventRecorder writes them; others may do so later."""

    def emit(self, cluster: Cluster, emit: Emit) -> None: ...


@dataclass(slots=True)
class _Said:
    key: Key
    count: int
    wait: float
    next_write: Time


class EventRecorder:
    """Of one component. `component` is what people see as the source. Thread-safe; no lock is held while an event is written."""

    def __init__(self, clock: Clock, component: str = "pumice") -> None:
        self._clock = clock
        self._component = component
        self._said: OrderedDict[Emit, _Said] = OrderedDict()
        self._lock = threading.Lock()

    def emit(self, cluster: Cluster, emit: Emit) -> None:
        now = self._clock.now()
        event = self._event(emit, format_time(now))
        with self._lock:
            said = self._said.get(emit)
            first = said is None
            if said is None:
                said = self._said[emit] = _Said(Key(event["metadata"]["namespace"], event["metadata"]["name"]), 0, 0.5, now)
            said.count += 1
            due = now >= said.next_write
            if due:
                said.wait = min(said.wait * 2, LONGEST_WAIT)
                said.next_write = now + said.wait
            self._said.move_to_end(emit)
            if len(self._said) > REMEMBERED:
                self._said.popitem(last=False)
        if first:
            self._first(cluster, emit, event, said, now)
        elif due:
            self._again(cluster, event, said, now)

    def _first(self, cluster: Cluster, emit: Emit, event: Json, said: _Said, now: Time) -> None:
        try:
            cluster.create(EVENT, event)
        except AlreadyExists:  # said before a restart, or forgotten since
            said.count += int(cluster.get(EVENT, said.key).get("count", 1))
            self._write(cluster, said, now)
        except ClusterError:
            with self._lock:
                self._said.pop(emit, None)
            raise

    def _again(self, cluster: Cluster, event: Json, said: _Said, now: Time) -> None:
        try:
            self._write(cluster, said, now)
        except NotFound:  # events are kept for an hour
            cluster.create(EVENT, {**event, "count": said.count})

    def _write(self, cluster: Cluster, said: _Said, now: Time) -> None:
        cluster.patch(EVENT, said.key, {"count": said.count, "lastTimestamp": format_time(now)})

    def _event(self, emit: Emit, now: str) -> Json:
        words = "\0".join((*emit.kind[:3], *emit.key, emit.uid, emit.type, emit.reason, emit.message, self._component))
        mark = hashlib.blake2b(words.encode(), digest_size=8).hexdigest()
        namespace = emit.key.namespace or "default"
        regarding = {
            "apiVersion": emit.kind.api_version, "kind": emit.kind.name, "name": emit.key.name,
            "namespace": emit.key.namespace, "uid": emit.uid,
        }  # fmt: skip
        return {
            "metadata": {"namespace": namespace, "name": f"{emit.key.name[:236].rstrip('.-')}.{mark}"},
            "involvedObject": {name: value for name, value in regarding.items() if value},
            "type": emit.type,
            "reason": emit.reason,
            "message": emit.message,
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": "",
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
