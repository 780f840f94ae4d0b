"""The controller of groups for plain pods: pods of our schedulers that belong to no group get one.

What such a group says is in extender/api/grouping.py, which admission shares.
Source: volcano ed72c7c, pkg/controllers/podgroup. Differences: the group follows its workload whichever of its pods is
listed first, and grows with larger pods; pods of a StatefulSet are sought in its own namespace only; what others have
written to a group is kept; a pod whose queue is closed gets its group when the queue opens."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from controller.merge import merge_diff
from controller.reconciler import NOTHING, Decision, Lookup, PlainController, Settings, Stage
from controller.store import Change, Index
from extender.api import labels as names
from extender.api import quantity
from extender.api.grouping import PREFIX, group_name, new_group, owner_kind
from extender.api.meta import (
    POD,
    POD_GROUP,
    QUEUE,
    REPLICA_SET,
    STATEFUL_SET,
    Json,
    Key,
    Kind,
    Time,
    annotations_of,
    controller_of,
    key_of,
    labels_of,
    uid_of,
)
from extender.api.operations import Create, Delete, Patch
from extender.api.pod import FAILED, SUCCEEDED
from extender.api.queue import OPEN

WORKLOADS = (REPLICA_SET, STATEFUL_SET)
REVISION = "controller-revision-hash"  # label of the pods of a StatefulSet; k8s.io/api apps/v1


@dataclass(frozen=True, slots=True)
class PodRequest:
    pod: Key


@dataclass(frozen=True, slots=True)
class WorkloadRequest:
    kind: Kind
    workload: Key


def follow(stored: Json, wanted: Json) -> Json:
    """The merge patch that brings an existing group in line; empty where it is. What others have added stays."""
    patch: Json = {}
    for part in ("labels", "annotations"):
        before = stored["metadata"].get(part) or {}
        diff = merge_diff(before, {**before, **wanted["metadata"].get(part, {})})
        if diff:
            patch.setdefault("metadata", {})[part] = diff
    before = stored.get("spec") or {}
    diff = merge_diff(before, {**before, **wanted["spec"]})
    if diff:
        patch["spec"] = diff
    return patch


def grow(stored: Json, wanted: Json) -> Json:
    """The merge patch for a group that a pod joins which asks for more than those before it: pods of one owner need not be
    alike (the steps of a workflow are not). Empty where it asks for no more."""
    before = (stored.get("spec") or {}).get("minResources") or {}
    asked = wanted["spec"]["minResources"]
    more = {name: text for name, text in asked.items() if quantity.nanos(text) > quantity.nanos(before.get(name, 0))}
    return {"spec": {"minResources": more}} if more else {}


class PodGroupController(PlainController):
    name = "pg-controller"
    kinds: Sequence[Kind] = (POD, POD_GROUP, QUEUE, *WORKLOADS)

    def __init__(self) -> None:
        self.indexes: Sequence[Index] = (
            Index("pods by owner", POD, _owner_uid),
            Index("pods without a group", POD, self._queue_without_group),
        )

    def start(self, lookup: Lookup, settings: Settings) -> None:
        self._lookup, self._store, self._settings = lookup, lookup.store, settings

    def observe(self, change: Change, now: Time) -> Iterable[Hashable]:
        if change.kind in WORKLOADS:
            if change.new is not None and self._settings.workload_support and _workload_news(change):
                yield WorkloadRequest(change.kind, change.key)
        elif change.kind == POD:
            if change.new is not None and self._is_ours(change.new):
                yield from self._pod_news(change, change.new)
        elif change.kind == QUEUE and _opened(change):
            for pod in self._store.by("pods without a group", change.key.name):
                yield PodRequest(key_of(pod))

    def _pod_news(self, change: Change, pod: Json) -> Iterable[Hashable]:
        """The first pod of a new revision of a StatefulSet changes the group of all; a ReplicaSet has one revision."""
        if self._lacks_group(pod):
            yield PodRequest(change.key)
        of = _workload_of(pod)
        if change.old is None and of is not None and of.kind == STATEFUL_SET and self._settings.workload_support:
            yield of

    def group_of(self, request: Hashable) -> Hashable:
        """One at a time for each owner, so that two pods of one do not race for their group."""
        if isinstance(request, WorkloadRequest):
            return request
        assert isinstance(request, PodRequest)
        pod = self._store.get(POD, request.pod)
        return (_workload_of(pod) if pod is not None else None) or request

    def reconcile(self, request: Hashable, now: Time) -> Decision:
        if isinstance(request, WorkloadRequest):
            return self._workload(request)
        assert isinstance(request, PodRequest)
        pod = self._store.get(POD, request.pod)
        if pod is None or not self._is_ours(pod) or not self._lacks_group(pod) or self._is_winding_down(pod):
            return NOTHING
        key = Key(request.pod.namespace, group_name(pod))
        stored, wanted = self._store.get(POD_GROUP, key), new_group(pod, self._owners(pod))
        larger = grow(stored, wanted) if stored is not None else {}
        return Decision((
            Stage([Create(POD_GROUP, wanted)] if stored is None else ()),
            Stage([Patch(POD_GROUP, key, larger, uid=uid_of(stored))] if stored is not None and larger else ()),
            Stage([] if annotations_of(pod).get(names.GROUP_NAME) else [_join(pod, key.name)]),
        ))  # fmt: skip

    def _workload(self, request: WorkloadRequest) -> Decision:
        """No replicas, no group; otherwise the group follows the workload and its newest pod."""
        workload = self._store.get(request.kind, request.workload)
        if workload is None or workload["metadata"].get("deletionTimestamp"):
            return NOTHING
        key = Key(request.workload.namespace, PREFIX + uid_of(workload))
        stored = self._store.get(POD_GROUP, key)
        if not _replicas(workload):
            return Decision((Stage([Delete(POD_GROUP, key, uid=uid_of(stored))]),)) if stored is not None else NOTHING
        pod = self._newest_pod(workload)
        if pod is None:
            return NOTHING
        wanted = new_group(pod, self._owners(pod))
        if stored is None:
            return Decision((Stage([Create(POD_GROUP, wanted)]),))
        patch = follow(stored, wanted)
        return Decision((Stage([Patch(POD_GROUP, key, patch, uid=uid_of(stored))]),)) if patch else NOTHING

    def _newest_pod(self, workload: Json) -> Json | None:
        """Of the newest revision where it has revisions."""
        revision = _revision(workload)
        pods = [
            pod for pod in self._store.by("pods by owner", uid_of(workload))
            if self._is_ours(pod) and annotations_of(pod).get(names.GROUP_NAME, group_name(pod)) == group_name(pod)
            and (not revision or labels_of(pod).get(REVISION) in (None, revision))
        ]  # fmt: skip
        return max(pods, key=lambda pod: (pod["metadata"].get("creationTimestamp") or "", pod["metadata"]["name"]), default=None)

    def _owners(self, pod: Json) -> list[Json]:
        """The workloads that own the pod, read where they are not watched."""
        if not self._settings.inherit_owner_annotations:
            return []
        found = []
        for reference in pod["metadata"].get("ownerReferences") or ():
            kind = owner_kind(reference)
            if kind is None:
                continue
            key = Key(pod["metadata"].get("namespace") or "", reference["name"])
            self._lookup.forget(kind, key)
            owner = self._lookup.read(kind, key)
            if owner is not None:
                found.append(owner)
        return found

    def _is_ours(self, pod: Json) -> bool:
        ended = (pod.get("status") or {}).get("phase") in (SUCCEEDED, FAILED)
        return (
            pod["spec"].get("schedulerName") in self._settings.scheduler_names
            and not ended
            and not pod["metadata"].get("deletionTimestamp")
        )

    def _is_winding_down(self, pod: Json) -> bool:
        """Its workload wants no pods any more, hence no group."""
        of = _workload_of(pod)
        workload = self._store.get(of.kind, of.workload) if of is not None else None
        owner = controller_of(pod) or {}
        return workload is not None and uid_of(workload) == owner.get("uid") and not _replicas(workload)

    def _lacks_group(self, pod: Json) -> bool:
        """It names none, or the one made for it is missing (admission named it, and could not make it)."""
        named = annotations_of(pod).get(names.GROUP_NAME)
        key = Key(pod["metadata"].get("namespace") or "", group_name(pod))
        return not named or (named == key.name and self._store.get(POD_GROUP, key) is None)

    def _queue_without_group(self, pod: Json) -> Iterable[str]:
        notes = annotations_of(pod)
        if not notes.get(names.GROUP_NAME) and self._is_ours(pod):
            yield notes.get(names.QUEUE_NAME_ANNOTATION) or ""


def _join(pod: Json, group: str) -> Patch:
    return Patch(POD, key_of(pod), {"metadata": {"annotations": {names.GROUP_NAME: group}}}, uid=uid_of(pod))


def _workload_of(pod: Json) -> WorkloadRequest | None:
    """The workload that we watch and that controls the pod."""
    owner = controller_of(pod)
    kind = next((each for each in WORKLOADS if owner is not None and owner.get("kind") == each.name), None)
    return WorkloadRequest(kind, Key(key_of(pod).namespace, owner["name"])) if kind is not None and owner is not None else None


def _owner_uid(pod: Json) -> Iterable[str]:
    owner = controller_of(pod)
    return (owner["uid"],) if owner is not None else ()


def _replicas(workload: Json) -> int:
    replicas = (workload.get("spec") or {}).get("replicas")
    return 1 if replicas is None else int(replicas)


def _workload_news(change: Change) -> bool:
    """Its spec, its annotations or the revision of its pods changed (its own counts are no news)."""
    if change.old is None or change.new is None:
        return True
    before, after = ((each.get("spec"), annotations_of(each), _revision(each)) for each in (change.old, change.new))
    return before != after


def _revision(workload: Json) -> str:
    return (workload.get("status") or {}).get("updateRevision") or ""


def _opened(change: Change) -> bool:
    before, after = ((obj or {}).get("status", {}).get("state") for obj in (change.old, change.new))
    return bool(after == OPEN and before != OPEN)
