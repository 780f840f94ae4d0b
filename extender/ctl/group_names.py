"""What a gang is called before people: the name of the Job or workload that it was made for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from extender.api.grouping import without_uid
from extender.api.meta import JOB, POD_GROUP, Json, Key, Kind, controller_of, key_of, uid_of
from extender.cluster.pod_history import PodSpan


class GroupNames:
    """PodGroup -> what it was made for: `default/train`, or `Deployment default/web`."""

    def __init__(self, objects: Mapping[Kind, Sequence[Json]]) -> None:
        self._by_uid = {uid_of(obj): obj for kind in objects for obj in objects[kind]}
        self._groups = {key_of(obj): obj for obj in objects.get(POD_GROUP, ())}
        self._jobs = {Key(key_of(job).namespace, f"{key_of(job).name}-{uid_of(job)}"): job for job in objects.get(JOB, ())}

    def job(self, group: Key) -> Json | None:
        """The Volcano job that the group belongs to, if it is still there."""
        if group in self._jobs:
            return self._jobs[group]
        owner = self._owner(group)
        return owner if owner is not None and owner["apiVersion"] == JOB.api_version else None

    def of(self, group: Key) -> str:
        job = self.job(group)
        if job is not None:
            return str(key_of(job))
        owner = self._owner(group)
        if owner is not None:
            return f"{owner['kind']} {key_of(owner)}"
        return without_uid(group)

    def of_span(self, span: PodSpan) -> str:
        """The job that a pod belongs to; a pod without a group stands for itself."""
        return self.of(Key(span.pod.namespace, span.group)) if span.group else f"Pod {span.pod}"

    def failed(self, group: Key) -> str:
        """`Failed` where its batch Job says so of itself: to the group, pods that failed are pods that are done."""
        owner = self._owner(group)
        conditions = (owner.get("status") or {}).get("conditions") or () if owner is not None else ()
        return "Failed" if any(each.get("type") == "Failed" and each.get("status") == "True" for each in conditions) else ""

    def _owner(self, group: Key) -> Json | None:
        """The topmost owner of the group that is still there: not the ReplicaSet, but its Deployment."""
        obj, owner = self._groups.get(group), None
        while obj is not None:
            references = (obj.get("metadata") or {}).get("ownerReferences") or ()
            above = controller_of(obj) or next(iter(references), None)
            obj = self._by_uid.get(above["uid"]) if above else None
            owner = obj if obj is not None else owner
        return owner
