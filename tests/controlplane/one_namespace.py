"""A namespace of a real cluster as the stage of a recorded story, which takes it for `default` and itself for alone.

Objects without a namespace, and those that a story puts into another one, are shared with all that run beside it: they
go when it is over, and stories that share a name must not be played at once."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import orjson

from extender.api.errors import ClusterError, NotFound
from extender.api.meta import EVENT, HYPER_NODE, POD, PRIORITY_CLASS, QUEUE, SERVICE_ACCOUNT, Json, Key, Kind, key_of
from extender.api.meta import NAMESPACE as NAMESPACE_KIND
from extender.cluster.clock import SystemClock
from extender.cluster.kubernetes import KubernetesCluster
from extender.cluster.port import Listing, WatchEvent
from tests.controlplane.lookout import Lookout
from tests.controlplane.waiting import PATIENCE, wait_until
from tests.reconcile.stage import NAMESPACE, JsonPatch, Seen, placed

_HEARD = 0.2  # seconds until everybody has heard of a change
CALM = 1.0  # seconds without a change after which what is as it was recorded counts as settled


class OneNamespace:
    """A Stage. `on_stage` makes one."""

    def __init__(self, cluster: KubernetesCluster, lookout: Lookout, name: str, *, hyper_nodes: bool,
                 calm: float = CALM) -> None:  # fmt: skip
        self.clock, self.seen = SystemClock(), Seen()
        self.cluster = self
        self._real, self._lookout, self._name, self._hyper_nodes, self._calm = cluster, lookout, name, hyper_nodes, calm
        self._objects: dict[Kind, dict[Key, Json]] = defaultdict(dict)
        self._shared: list[tuple[Kind, Key]] = []  # made by the story outside its namespace
        self._changed = time.monotonic()
        for kind, objects in lookout.there.items():
            for obj in objects.values():
                self.hear(kind, WatchEvent("ADDED", obj))

    def hear(self, kind: Kind, event: WatchEvent) -> None:
        key = key_of(event.object)
        if not self._concerns(kind, key, event.object):
            return
        obj = self._told(event.object)
        if event.type == "DELETED":
            self._objects[kind].pop(key_of(obj), None)
        else:
            self._objects[kind][key_of(obj)] = obj
        self.seen.note(kind, obj)
        if kind != EVENT and (key.namespace == self._name or (kind, key) in self._shared):
            self._changed = time.monotonic()

    def _concerns(self, kind: Kind, key: Key, obj: Json) -> bool:
        if kind == HYPER_NODE:
            return self._hyper_nodes
        if kind != EVENT or key.namespace == self._name:
            return key.namespace in ("", self._name) or (kind, key) in self._shared
        about = obj["involvedObject"]
        return any(shared.name == about.get("kind") and at.name == about.get("name") for shared, at in self._shared)

    # --- a Stage ---

    def create(self, obj: Json) -> None:
        kind, obj = placed(obj)
        obj = self._meant(obj)
        named = kind, key_of(obj)
        shared = named[1].namespace != self._name
        if shared:
            self._shared.append(named)  # before it is there: nothing that happens to it is missed
        try:
            self._real.create(kind, obj)
        except ClusterError:
            if shared:
                self._shared.remove(named)
            raise
        if kind == PRIORITY_CLASS:
            wait_until(lambda: self._counts(obj), f"the value of {named[1]} to count")

    def _counts(self, priority_class: Json) -> bool:
        """Admission hears of it later than we; until then pods get the value of one that had this name before."""
        container = {"name": "main", "image": "example.test/app:1"}
        spec = {"priorityClassName": priority_class["metadata"]["name"], "containers": [container]}
        probe = {"metadata": {"name": "probe", "namespace": self._name}, "spec": spec}
        with suppress(ClusterError):
            made = self._real.create(POD, probe, dry_run=True)
            return bool(made["spec"].get("priority") == priority_class.get("value", 0))
        return False

    def react(self) -> None:
        """A queue that no controller has opened yet takes no jobs, and admission hears of it a little later still."""
        queues = [key for kind, key in self._shared if kind == QUEUE]
        with self._lookout.changed:
            while any(not self._state(key) for key in queues) or time.monotonic() - self._changed < _HEARD:
                assert time.monotonic() - self._changed < PATIENCE, "nobody opens the queue"
                self._lookout.wait(_HEARD)

    def _state(self, queue: Key) -> str:
        there = self._lookout.there[QUEUE].get(queue) or {}
        return str((there.get("status") or {}).get("state") or "")

    def settle(self, wait: float, settled: Callable[[], bool]) -> None:
        """What is not as recorded is given more time."""
        began = time.monotonic()
        looked: float | None = None  # at the state as of this change
        with self._lookout.changed:
            while (now := time.monotonic()) - began < max(PATIENCE, wait + self._calm):
                if now - max(began, self._changed) >= self._calm and now - began >= wait and looked != self._changed:
                    looked = self._changed
                    if settled():
                        return
                self._lookout.wait(0.1)

    def settle_until(self, when: float) -> None:
        wait_until(lambda: self.clock.now() >= when, "the time", patience=when - self.clock.now() + 5)

    # --- what it asks of the cluster ---

    def list(self, kind: Kind, namespace: str = "") -> Listing:
        with self._lookout.changed:
            found = self._objects[kind]
            return Listing([found[key] for key in sorted(found) if namespace in ("", key.namespace)], "")

    def patch(self, kind: Kind, key: Key, patch: Json, *, subresource: str = "") -> Json:
        return self._real.patch(kind, self._at(key), self._meant(patch), subresource=subresource)

    def json_patch(self, kind: Kind, key: Key, patch: JsonPatch, *, subresource: str = "") -> Json:
        return self._real.json_patch(kind, self._at(key), [self._meant(step) for step in patch], subresource=subresource)

    def delete(self, kind: Kind, key: Key, *, propagation: str = "Background", grace_seconds: int | None = None) -> None:
        self._real.delete(kind, self._at(key), propagation=propagation, grace_seconds=grace_seconds)

    # --- names ---

    def _at(self, key: Key) -> Key:
        return Key(self._name, key.name) if key.namespace == NAMESPACE else key

    def _told(self, obj: Json) -> Json:
        """As the story knows it: the name of the namespace stands in host names and arguments, too."""
        return dict(orjson.loads(orjson.dumps(obj).replace(self._name.encode(), NAMESPACE.encode())))

    def _meant(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._name if name == "namespace" and each == NAMESPACE else self._meant(each)
                    for name, each in value.items()}  # fmt: skip
        return [self._meant(each) for each in value] if isinstance(value, list) else value

    # --- the end ---

    def leave(self) -> None:
        """Where something is shared, returns when everything of this story has gone, so that the next one may come."""
        self._real.delete(NAMESPACE_KIND, Key("", self._name))
        if self._hyper_nodes:  # some are made by discovery
            self._shared += [(HYPER_NODE, key) for key in self._objects[HYPER_NODE]]
        if not self._shared:
            return
        wait_until(lambda: not _is_there(self._real, NAMESPACE_KIND, Key("", self._name)), f"the end of {self._name}", 120)
        for kind, key in reversed(self._shared):
            with suppress(NotFound):
                self._real.delete(kind, key)
            wait_until(lambda kind=kind, key=key: key not in self._lookout.there[kind], f"the end of {key}")  # type: ignore[misc]


def _is_there(cluster: KubernetesCluster, kind: Kind, key: Key) -> bool:
    with suppress(NotFound):
        cluster.get(kind, key)
        return True
    return False


@contextmanager
def on_stage(cluster: KubernetesCluster, lookout: Lookout, name: str, *, hyper_nodes: bool,
             calm: float = CALM) -> Iterator[OneNamespace]:  # fmt: skip
    """The namespace `name`, which must occur in no other word, from its making to its end. `hyper_nodes`: the story sees any.
    `calm`: seconds without a change after which it is looked whether all is as it should be."""
    cluster.create(NAMESPACE_KIND, {"metadata": {"name": name}})
    wait_until(lambda: Key(name, "default") in lookout.there[SERVICE_ACCOUNT], f"the service account of {name}")
    with lookout.changed:
        stage = OneNamespace(cluster, lookout, name, hyper_nodes=hyper_nodes, calm=calm)
    with lookout.telling(stage.hear):
        try:
            yield stage
        finally:
            stage.leave()
