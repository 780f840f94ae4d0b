"""The embedded cluster: an API server in memory, with a real one's rules and words.

It stores JSON dicts that are never changed once stored: what comes in is copied, what goes out is shared and read-only.
The rules of single kinds are in core_kinds.py and schema.py, those between objects in owners.py, budgets.py and quota.py.
It knows nothing of schedulers and controllers; kubelet.py and workloads/ play on it as clients."""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import msgspec

from extender.api.errors import BadRequest, Denied, Invalid
from extender.api.meta import (
    EVENT,
    KINDS,
    LIMIT_RANGE,
    NAMESPACE,
    PDB,
    POD,
    PRIORITY_CLASS,
    PVC,
    STORAGE_CLASS,
    Json,
    Key,
    Kind,
    Time,
    format_time,
    key_of,
    kind_of,
)
from extender.api.pod import DISRUPTION_TARGET
from extender.cluster import core_kinds, limits, metadata, pod_rules, refusals
from extender.cluster.budgets import Budgets, check_eviction
from extender.cluster.clock import Clock
from extender.cluster.garbage import collect
from extender.cluster.matching import predicate
from extender.cluster.owners import Owners
from extender.cluster.patches import json_patch, merge_patch
from extender.cluster.port import Admission, AdmissionRequest, Listing, WatchEvent
from extender.cluster.quota import Quotas
from extender.cluster.readable import readable
from extender.cluster.store import Store, matching
from extender.cluster.watching import MemoryWatch

KEPT_CHANGES = 100_000  # per kind; a watch that is further behind is told Gone
EVENT_SECONDS = 3600.0  # how long Events are kept after they were last written (kube-apiserver --event-ttl)


class MemoryCluster:
    """Thread safe: one lock. `admission` may be set at any time; `on_warning` hears what a server would answer as Warning."""

    def __init__(
        self,
        clock: Clock,
        admission: Admission | None = None,
        *,
        history: int = KEPT_CHANGES,
        seed: int = 0,
        on_warning: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.clock = clock
        self.admission = admission
        self.owners = Owners()
        self._warn = on_warning
        self._rng = random.Random(seed)
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._stores = {kind: Store(kind, history) for kind in KINDS}
        self._version = 0
        self._uids = 0
        self._events: deque[tuple[Time, Key, str]] = deque()  # written when, at which version
        self._budgets = Budgets(self, clock)
        self._quotas = Quotas(self)
        self.load(core_kinds.BUILT_IN)

    # --- reading ------------------------------------------------------------------------------------------------------

    def get(self, kind: Kind, key: Key) -> Json:
        with self._lock:
            return self._existing(self._store(kind), key)

    def list(self, kind: Kind, namespace: str = "", label_selector: str = "", field_selector: str = "") -> Listing:
        matches = predicate(kind, label_selector, field_selector)
        with self._lock:
            return Listing(self._store(kind).select(namespace, matches), str(self._version))

    def count(self, kind: Kind) -> int:
        """How many there are, without waiting for whoever is writing."""
        return sum(map(len, tuple(self._store(kind).objects.values())))

    def list_as_of(
        self, when: Time, kind: Kind, namespace: str = "", label_selector: str = "", field_selector: str = ""
    ) -> Listing:
        """What `list` would have answered at that time."""
        matches = predicate(kind, label_selector, field_selector)
        with self._lock:
            objects, version = self._store(kind).as_of(when)
            found = matching((objects[key] for key in sorted(objects)), namespace, matches)
            return Listing(found, str(self._version if version < 0 else version))

    def watch(
        self, kind: Kind, resource_version: str, namespace: str = "", label_selector: str = "", field_selector: str = ""
    ) -> MemoryWatch:
        """As a real server: with the version "" or "0" the watch begins with an ADDED for every object that is there."""
        matches = predicate(kind, label_selector, field_selector)
        with self._lock:
            store = self._store(kind)
            first: Sequence[WatchEvent] = []
            if resource_version in ("", "0"):
                first = [WatchEvent("ADDED", obj) for obj in store.select(namespace, matches)]
                position = store.history.end
            elif resource_version.isdigit():
                position = store.history.after(int(resource_version))
            else:
                raise BadRequest(f'Invalid value: "{resource_version}": resource version is not a number')
            return MemoryWatch(
                store.history, position, first, changed=self._changed, clock=self.clock, namespace=namespace, predicate=matches
            )

    # --- writing ------------------------------------------------------------------------------------------------------

    def create(self, kind: Kind, obj: Json, *, dry_run: bool = False) -> Json:
        new = _copy(obj)
        with self._lock:
            store = self._store(kind)
            new = readable(kind, new)
            metadata.place(kind, new)
            metadata.begin(kind, new, uid=self._next_uid(), now=format_time(self.clock.now()))
            self._check_namespace(kind, new)
            core_kinds.drop_status(kind, new)
            if kind == PVC:
                new = core_kinds.admitted_claim(new, self._stores[STORAGE_CLASS].select("", None))
            elif kind == POD:
                new = limits.with_limits(new, self._limit_ranges(new))
            new = self._admitted("CREATE", kind, new, None, dry_run)
            self._give_name(store, new)
            key = key_of(new)
            _check_new(kind, new, lambda named: core_kinds.check(kind, named, None))
            self._validated("CREATE", kind, key, new, None, dry_run)
            limits.check(kind, new, self._limit_ranges(new))
            self._quotas.admit(kind, new)
            if store.get(key) is not None:
                raise refusals.already_exists(kind, key.name)
            return new if dry_run else self._put(store, key, new, None)

    def update(self, kind: Kind, obj: Json, *, subresource: str = "", dry_run: bool = False) -> Json:
        new = _copy(obj)
        with self._lock:
            store = self._store(kind)
            new = readable(kind, new)
            metadata.place(kind, new)
            old = self._existing(store, key_of(new))
            metadata.check_uid(kind, new, old)
            metadata.check_version_given(kind, new)
            return self._replace(store, old, new, subresource, dry_run)

    def patch(self, kind: Kind, key: Key, patch: Json, *, subresource: str = "", dry_run: bool = False) -> Json:
        change = _copy(patch)
        with self._lock:
            store = self._store(kind)
            old = self._existing(store, key)
            return self._replace(store, old, merge_patch(old, change), subresource, dry_run)

    def json_patch(self, kind: Kind, key: Key, patch: Sequence[Json], *, subresource: str = "", dry_run: bool = False) -> Json:
        steps = msgspec.to_builtins(patch)
        with self._lock:
            store = self._store(kind)
            old = self._existing(store, key)
            return self._replace(store, old, json_patch(old, steps), subresource, dry_run)

    def delete(
        self,
        kind: Kind,
        key: Key,
        *,
        uid: str = "",
        propagation: str = "Background",
        grace_seconds: int | None = None,
        dry_run: bool = False,
    ) -> None:
        with self._lock:
            store = self._store(kind)
            old = self._existing(store, key)
            if uid and uid != old["metadata"]["uid"]:
                raise refusals.recreated(kind, key.name, uid, old["metadata"]["uid"])
            self._validated("DELETE", kind, key, None, old, dry_run)
            if not dry_run:
                self._delete(store, key, old, propagation, core_kinds.grace(kind, old, grace_seconds))

    def bind(self, pod: Key, node: str, *, uid: str = "", annotations: dict[str, str] | None = None) -> None:
        with self._lock:
            store = self._store(POD)
            old = self._existing(store, pod)
            pod_rules.check_bindable(old, uid)
            self._put(store, pod, pod_rules.bound(old, node, annotations, format_time(self.clock.now())), old)

    def evict(self, pod: Key, *, uid: str = "", grace_seconds: int | None = None) -> None:
        with self._lock:
            old = self._existing(self._store(POD), pod)
            if uid and uid != old["metadata"]["uid"]:
                raise refusals.recreated(POD, pod.name, uid, old["metadata"]["uid"])
            self._budgets.settle()
            check_eviction(self._stores[PDB].select(pod.namespace, None), old)
            condition = {
                "type": DISRUPTION_TARGET,
                "status": "True",
                "reason": "EvictionByEvictionAPI",
                "message": "Eviction API: evicting",
            }
            status = pod_rules.with_condition(old["status"], condition, format_time(self.clock.now()))
            self._put(self._store(POD), pod, {**old, "metadata": {**old["metadata"]}, "status": status}, old)
            self.delete(POD, pod, uid=uid, grace_seconds=grace_seconds)

    def load(self, objects: Iterable[Json]) -> Sequence[Json]:
        """Store objects just as they are found in a running cluster: status, uid, times and all, asking no admission.

        Defaults are filled in; a pod may name a priority class that is not there. Raises AlreadyExists."""
        stored = []
        for obj in objects:
            new = _copy(obj)
            kind = kind_of(new)
            with self._lock:
                new = readable(kind, new)
                metadata.place(kind, new)
                metadata.complete(kind, new, uid=self._next_uid(), now=format_time(self.clock.now()))
                store = self._store(kind)
                try:
                    new = core_kinds.with_defaults(kind, new, None, self._priority_classes)
                except Denied:
                    new = core_kinds.with_defaults(kind, new, new, self._priority_classes)
                self._give_name(store, new)
                _check_new(kind, new, partial(core_kinds.check_found, kind))
                if store.get(key_of(new)) is not None:
                    raise refusals.already_exists(kind, new["metadata"]["name"])
                stored.append(self._put(store, key_of(new), new, None))
        return stored

    def settle(self) -> int:
        """Let the cluster's own housekeeping run until nothing is left to do; the number of changes made."""
        with self._lock:
            before = self._version
            self._expire_events()
            collect(self)
            self._budgets.settle()
            self._quotas.settle()
            return self._version - before

    # --- how a write goes ---------------------------------------------------------------------------------------------

    def _replace(self, store: Store, old: Json, new: Json, subresource: str, dry_run: bool) -> Json:
        kind, key = store.kind, key_of(old)
        new = readable(kind, new, old)
        metadata.check_preconditions(kind, key, new, old)
        if subresource:
            if subresource != "status" or not kind.status_subresource:
                raise refusals.not_found(kind, key.name) if metadata.is_custom(kind) else refusals.no_subresource()
            new = core_kinds.with_defaults(kind, core_kinds.with_status_of(kind, new, old), old, self._priority_classes)
        else:
            new = core_kinds.with_kept_status(kind, new, old)
            metadata.check_fixed(kind, new, old)
        new = metadata.carried_over(kind, new, old)
        if not subresource:
            new = self._admitted("UPDATE", kind, new, old, dry_run)
            new = metadata.carried_over(kind, core_kinds.with_kept_status(kind, new, old), old)
        metadata.count_generation(kind, new, old)
        if new == old:
            return old
        metadata.check_update(kind, new, old)
        core_kinds.check(kind, new, old)
        if not subresource:
            self._validated("UPDATE", kind, key, new, old, dry_run)
        if dry_run:
            return new
        if metadata.finished(kind, new):
            return self._remove(store, key, new, old)
        return self._put(store, key, new, old)

    def _admitted(self, operation: str, kind: Kind, new: Json, old: Json | None, dry_run: bool) -> Json:
        """Defaults, then mutating admission; defaults again where that changed the object."""
        new = core_kinds.with_defaults(kind, new, old, self._priority_classes)
        if self.admission is None:
            return new
        changed = self.admission.mutate(AdmissionRequest(operation, kind, key_of(new), new, old, dry_run))
        if changed is None or changed is new:
            return new
        new = _copy(changed)
        if old is None:
            core_kinds.drop_status(kind, new)
        return core_kinds.with_defaults(kind, new, old, self._priority_classes)

    def _validated(self, operation: str, kind: Kind, key: Key, new: Json | None, old: Json | None, dry_run: bool) -> None:
        if self.admission is not None:
            self.admission.validate(AdmissionRequest(operation, kind, key, new, old, dry_run))

    def _delete(self, store: Store, key: Key, old: Json, propagation: str, grace: int) -> None:
        finalizers = metadata.finalizers_after(old, propagation)
        held = store.kind == NAMESPACE and (old.get("spec") or {}).get("finalizers")
        if not finalizers and grace == 0 and not held:
            if metadata.is_marked_first(store.kind, old):
                old = self._put(store, key, metadata.marked_for_deletion(old, finalizers, grace, self.clock.now()), old)
            self._remove(store, key, old, old)
            return
        new = metadata.marked_for_deletion(old, finalizers, grace, self.clock.now())
        if held:
            new["status"] = {**(new.get("status") or {}), "phase": "Terminating"}
        if new != old:
            self._put(store, key, new, old)

    def _put(self, store: Store, key: Key, new: Json, old: Json | None) -> Json:
        self._version += 1
        new["metadata"]["resourceVersion"] = str(self._version)
        store.put(key, new, old=old, version=self._version, when=self.clock.now())
        self.owners.note(store.kind, new, old)
        if store.kind == EVENT:
            self._events.append((self.clock.now(), key, new["metadata"]["resourceVersion"]))
        for warning in core_kinds.warnings(store.kind, new, old):
            self._warn(warning)
        self._changed.notify_all()
        return new

    def _remove(self, store: Store, key: Key, last: Json, old: Json) -> Json:
        self._version += 1
        last = {**last, "metadata": {**last["metadata"], "resourceVersion": str(self._version)}}
        store.remove(key, last, old=old, version=self._version, when=self.clock.now())
        self.owners.note(store.kind, None, old)
        self._changed.notify_all()
        return last

    def _expire_events(self) -> None:
        store, limit = self._stores[EVENT], self.clock.now() - EVENT_SECONDS
        while self._events and self._events[0][0] <= limit:
            _, key, version = self._events.popleft()
            event = store.get(key)
            if event is not None and event["metadata"]["resourceVersion"] == version:
                self._remove(store, key, event, event)

    # --- small things -------------------------------------------------------------------------------------------------

    def _store(self, kind: Kind) -> Store:
        store = self._stores.get(kind)
        if store is None:
            raise BadRequest(f'no matches for kind "{kind.name}" in version "{kind.api_version}"')
        return store

    def _existing(self, store: Store, key: Key) -> Json:
        obj = store.get(key)
        if obj is None:
            raise refusals.not_found(store.kind, key.name)
        return obj

    def _next_uid(self) -> str:
        self._uids += 1
        return f"{self._uids:08x}-0000-4000-8000-{self._uids:012x}"

    def _give_name(self, store: Store, new: Json) -> None:
        meta = new["metadata"]
        while not meta.get("name") and meta.get("generateName"):
            name = metadata.generated_name(meta["generateName"], self._rng)
            if store.get(Key(meta.get("namespace", ""), name)) is None:
                meta["name"] = name

    def _check_namespace(self, kind: Kind, new: Json) -> None:
        place = self._stores[NAMESPACE].get(Key("", new["metadata"].get("namespace", "")))
        if place is not None and "deletionTimestamp" in place["metadata"]:
            name = place["metadata"]["name"]
            why = f"unable to create new content in namespace {name} because it is being terminated"
            raise refusals.forbidden(kind, new["metadata"].get("name", ""), why)

    def _limit_ranges(self, new: Json) -> Sequence[Json]:
        return self._stores[LIMIT_RANGE].select(new["metadata"].get("namespace", ""), None)

    def _priority_classes(self) -> Sequence[Json]:
        return self._stores[PRIORITY_CLASS].select("", None)


def _check_new(kind: Kind, new: Json, rest: Callable[[Json], None]) -> None:
    """Raises Invalid with every fault, of the metadata and of the rest; BadRequest where a quantity is none."""
    faults = metadata.faults_of_new(kind, new)
    try:
        rest(new if "name" in new["metadata"] else {**new, "metadata": {**new["metadata"], "name": ""}})
    except Invalid as error:
        faults += error.faults
    if faults:
        raise refusals.invalid(kind, new["metadata"].get("name", ""), faults)


def _copy(obj: Json) -> Json:
    copied: Json = msgspec.to_builtins(obj, str_keys=True)
    return copied
