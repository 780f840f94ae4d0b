"""The controller that deletes finished jobs when their time to live (TTL) is over: spec.ttlSecondsAfterFinished.

Source: volcano ed72c7c, pkg/controllers/garbagecollector. Aborted jobs are resumable, hence not finished."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from controller.reconciler import NOTHING, Decision, Lookup, PlainController, Settings, Stage
from controller.store import Change
from extender.api.errors import InvalidObject
from extender.api.job import FINISHED, Job
from extender.api.meta import JOB, Key, Kind, Time, parse_time
from extender.api.operations import Delete
from extender.api.views import view


@dataclass(frozen=True, slots=True)
class Expire:
    job: Key


def expiry(job: Job) -> Time | None:
    """When a finished job is to go; None for never. Raises InvalidObject where it does not say when it finished."""
    ttl = job.spec.ttl_seconds_after_finished
    if ttl is None or job.metadata.deletion_timestamp or job.status.state.phase not in FINISHED:
        return None
    finished = parse_time(job.status.state.last_transition_time)
    if finished is None:
        raise InvalidObject("is missing in a finished job", path="status.state.lastTransitionTime", subject=str(job.metadata.key))
    return finished + ttl


class GarbageController(PlainController):
    name = "gc-controller"
    kinds: Sequence[Kind] = (JOB,)

    def start(self, lookup: Lookup, settings: Settings) -> None:
        self._store = lookup.store

    def observe(self, change: Change, now: Time) -> Iterable[Hashable]:
        spec = (change.new or {}).get("spec") or {}
        return (Expire(change.key),) if spec.get("ttlSecondsAfterFinished") is not None else ()

    def reconcile(self, request: Hashable, now: Time) -> Decision:
        assert isinstance(request, Expire)
        raw = self._store.get(JOB, request.job)
        if raw is None:
            return NOTHING
        job = view(Job, raw)
        due = expiry(job)
        if due is None:
            return NOTHING
        if due > now:
            return Decision(later=((request, due),))
        return Decision((Stage((Delete(JOB, request.job, uid=job.metadata.uid, propagation="Foreground"),)),))
