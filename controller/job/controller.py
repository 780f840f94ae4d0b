"""The controller of Volcano jobs: keeps the pods of each job at hand, turns changes into requests, requests into decisions.

Phases are in phases.py, policies in policies.py, what a decision does in sync.py and kill.py."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from controller.command import Take, action_of, take, taken_by
from controller.job import observe, phases, policies
from controller.job.delayed import DelayedActions
from controller.job.kill import kill_job, kill_part, targets
from controller.job.plugins import plugins_of
from controller.job.plugins.base import Plugin
from controller.job.requests import Announce, Request, Settle
from controller.job.seen import JobPods, JobSeen, group_name, pod_seen, waiting_message
from controller.job.status import WAITS, saying
from controller.job.sync import sync
from controller.job.volumes import claim_name
from controller.reconciler import NOTHING, Decision, Lookup, NotYet, PlainController, Settings, at_once
from controller.store import Change, Index
from extender.api import job as words
from extender.api.errors import ClusterError, Conflict, PumiceError, TooManyRequests
from extender.api.job import Job
from extender.api.meta import (
    COMMAND,
    JOB,
    POD,
    POD_GROUP,
    PRIORITY_CLASS,
    PVC,
    QUEUE,
    Json,
    Key,
    Kind,
    Time,
    controller_of,
    key_of,
)
from extender.api.operations import Create, Delete, Emit, Operation, PatchStatus
from extender.api.podgroup import same_cause
from extender.api.queue import CLOSE_QUEUE, OPEN_QUEUE, SYNC_QUEUE, Queue
from extender.api.views import view

INTERNAL = (words.SYNC_JOB, "EnqueueJob", SYNC_QUEUE, OPEN_QUEUE, CLOSE_QUEUE)
Due = Hashable | tuple[Hashable, Time]


def _namespace(obj: Json) -> Iterable[str]:
    return (key_of(obj).namespace,)


def _queue_of_job(job: Json) -> Iterable[str]:
    return ((job.get("spec") or {}).get("queue") or "",)


class JobController(PlainController):
    name = "job-controller"
    kinds: Sequence[Kind] = (JOB, POD, POD_GROUP, QUEUE, PVC, PRIORITY_CLASS, COMMAND)
    indexes: Sequence[Index] = (
        Index("jobs by namespace", JOB, _namespace),
        Index("jobs by queue", JOB, _queue_of_job),
    )

    def start(self, lookup: Lookup, settings: Settings) -> None:
        self._lookup, self._store, self._settings = lookup, lookup.store, settings
        self._pods: dict[Key, JobPods] = {}
        self._views: dict[Key, Job] = {}
        self._delayed = DelayedActions()
        self._announced: dict[Key, str] = {}
        self._cancelled: list[Request] = []
        self._handlers: dict[Kind, Callable[[Change], Sequence[Hashable]]] = {
            JOB: self._job_changed,
            POD: self._pod_changed,
            POD_GROUP: self._group_changed,
            QUEUE: self._queue_changed,
            PVC: self._claim_changed,
            COMMAND: partial(taken_by, kind=JOB),
        }

    # --- what changed ---

    def observe(self, change: Change, now: Time) -> Iterable[Due]:
        handler = self._handlers.get(change.kind)
        return handler(change) if handler is not None else ()

    def _job_changed(self, change: Change) -> Sequence[Hashable]:
        if change.new is None:
            gone = self._views.pop(change.key, None)
            self._announced.pop(change.key, None)
            self._cancelled += self._delayed.forget(change.key)
            if gone is not None:
                self._forget(gone)
            return ()
        self._views[change.key] = view(Job, change.new)
        return (Request(change.key),) if observe.job_needs_look(change.old, change.new) else ()

    def _pod_changed(self, change: Change) -> Sequence[Hashable]:
        new = pod_seen(change.new) if change.new is not None else None
        owner = new or (pod_seen(change.old) if change.old is not None else None)
        if owner is None:
            return ()
        of_job = self._pods.setdefault(owner.job, JobPods())
        old = of_job.replace(change.key.name, new)
        if not of_job.pods:
            del self._pods[owner.job]
        if old == new:
            return ()
        job = self._views.get(owner.job)
        event = observe.pod_event(old, new, observe.task_of(job, owner.task), of_job.totals(owner.task))
        self._cancelled += self._delayed.overtaken(owner.job, owner.name, owner.uid, event)
        if event == words.POD_EVICTED and job is not None:
            self._forget(job)  # who takes a pod away may have taken what it needs, too
        return (observe.simplest(job, observe.pod_request(new or owner, event, first_seen=old is None)),)

    def _group_changed(self, change: Change) -> Sequence[Hashable]:
        key = Key(change.key.namespace, observe.owner_name(change.object))
        job = self._views.get(key)
        request = observe.group_request(change.old, change.new, job, key)
        found: list[Hashable] = [observe.simplest(job, request)] if request is not None and job is not None else []
        message = waiting_message(change.new)
        if job is not None and not same_cause(message, waiting_message(change.old)):
            found.append(Announce(key, message))
        return found

    def _queue_changed(self, change: Change) -> Sequence[Hashable]:
        """A queue that comes, goes or starts to forward concerns its jobs; its status does not."""
        spec = [(obj or {}).get("spec") for obj in (change.old, change.new)]
        if change.old is not None and change.new is not None and spec[0] == spec[1]:
            return []
        return [Request(key_of(job)) for job in self._store.by("jobs by queue", change.key.name)]

    def _claim_changed(self, change: Change) -> Sequence[Hashable]:
        if change.old is not None:
            return []
        jobs = self._store.by("jobs by namespace", change.key.namespace)
        return [Request(key_of(job)) for job in jobs if (job.get("spec") or {}).get("volumes")]

    # --- what to do ---

    def group_of(self, request: Hashable) -> Hashable:
        assert isinstance(request, (Request, Announce, Settle, Take))
        return request.target if isinstance(request, Take) else request.job

    def is_urgent(self, request: Hashable) -> bool:
        """Incidents and commands, before another look at the job moves it on."""
        return not isinstance(request, Request) or bool(request.action) or request.event != words.OUT_OF_SYNC_EVENT

    def reconcile(self, request: Hashable, now: Time) -> Decision:
        decision = self._decide(request, now)
        cancelled, self._cancelled = self._cancelled, []
        return replace(decision, cancelled=(*decision.cancelled, *cancelled)) if cancelled else decision

    def _decide(self, request: Hashable, now: Time) -> Decision:
        if isinstance(request, Take):
            return self._take(request)
        if isinstance(request, Announce):
            return self._announce(request)
        if isinstance(request, Settle):
            return Decision(cancelled=self._delayed.settled(request.request, request.action))
        assert isinstance(request, Request)
        if request.delayed and not self._delayed.holds(request):
            return NOTHING
        job = self._views.get(request.job)
        if job is None or job.metadata.deletion_timestamp:
            return NOTHING
        if self._is_stale(request, job):
            request = Request(request.job)
        choice = policies.choose(job, request)
        if choice.delay > 0:
            return self._delay(request, choice, now)
        return self._act(request, choice.action, now)

    def _is_stale(self, request: Request, job: Job) -> bool:
        """It is about a group that has been replaced, or a timer set in a former incarnation."""
        if request.delayed:
            return request.version is not None and request.version < job.status.version
        if not request.group_uid:
            return False
        group = self._group(job)
        return group is None or group["metadata"].get("uid") != request.group_uid

    def _act(self, request: Request, action: str, now: Time) -> Decision:
        seen = self._seen(request.job)
        plugins = plugins_of(seen.job, self._settings.make_keys)
        seen = replace(seen, resources=self._resources(seen.job, plugins))
        step = phases.step(seen.phase, action)
        if step.do == phases.PART and targets(seen, request, action) is None:
            step = phases.step(seen.phase, words.SYNC_JOB)
        if step.do == phases.SYNC:
            decision = sync(seen, step.rules, plugins, now)
        elif step.do == phases.KILL:
            decision = kill_job(seen, step, plugins, now)
        else:
            decision = kill_part(seen, step, request, action, now)
        if action in INTERNAL:
            return decision
        told = self._event(request.job, "Normal", "ExecuteAction", f"Start to execute action {action}")
        settle = Settle(request.job, request, action)
        return replace(decision, stages=(*at_once(told), *decision.stages), follow_up=(*decision.follow_up, settle))

    def _delay(self, request: Request, choice: policies.Choice, now: Time) -> Decision:
        timer, stopped = self._delayed.add(request, choice.action)
        if timer is None:
            return NOTHING
        told = self._event(request.job, "Normal", "ExecuteAction",
                           f"Execute action {choice.action} after {choice.delay:g}s")  # fmt: skip
        return Decision(at_once(told), later=((timer, (request.since or now) + choice.delay),), cancelled=stopped)

    def _take(self, request: Take) -> Decision:
        action = action_of(self._store, request)
        told: Sequence[Operation] = ()
        if request.target in self._views:
            told = (self._event(request.target, "Normal", words.COMMAND_ISSUED, f"Start to execute command {action}"),)
        return take(self._store, request, (Request(request.target, words.COMMAND_ISSUED, action=action),), told)

    def _announce(self, request: Announce) -> Decision:
        job = self._views.get(request.job)
        if job is None or self._announced.get(request.job) == request.message:
            return NOTHING
        self._announced[request.job] = request.message
        if not request.message:
            return Decision(at_once(*saying(job, "", "")) if job.status.state.reason == WAITS else ())
        told = self._event(request.job, "Warning", WAITS, request.message)
        return Decision(at_once(told, *saying(job, WAITS, request.message)))

    def failed(self, request: Hashable, operation: Operation | None, error: PumiceError) -> Iterable[Operation]:
        """An event, and in the status what keeps the job from going on until somebody does something about it."""
        if not isinstance(request, Request):
            return
        reason = _blame(operation) if operation is not None else error.reason if isinstance(error, NotYet) else "PluginError"
        if reason:
            yield self._event(request.job, "Warning", reason, str(error))
        job = self._views.get(request.job)
        if job is not None and (operation is None or (isinstance(operation, Create) and _lasts(error))):
            yield from saying(job, reason or type(error).__name__, str(error))

    def gave_up(self, request: Hashable, now: Time) -> Decision:
        """A job that cannot be brought where it should be ends."""
        if not isinstance(request, Request):
            return NOTHING
        job = self._views.get(request.job)
        if job is None or job.metadata.deletion_timestamp:
            return NOTHING
        return self._act(request, words.TERMINATE_JOB, now)

    # --- what is there ---

    def _seen(self, key: Key) -> JobSeen:
        raw = self._store.get(JOB, key)
        assert raw is not None
        job = self._views[key]
        queue = self._store.get(QUEUE, Key("", job.spec.queue))
        return JobSeen(
            job=job,
            raw=raw,
            pods=self._pods[key].of(job.metadata.uid) if key in self._pods else {},
            queue=view(Queue, queue) if queue is not None else None,
            group=self._group(job),
            claims=frozenset(
                name for name in (claim_name(job, volume) for volume in job.spec.volumes or ())
                if self._store.get(PVC, Key(key.namespace, name)) is not None),
            priorities={name.name: int(each.get("value") or 0) for name, each in self._store.all(PRIORITY_CLASS).items()},
        )  # fmt: skip

    def _group(self, job: Job) -> Json | None:
        """By the name it is given today, else by the one it was given of old."""
        names = (group_name(job), job.metadata.name)
        found = (self._store.get(POD_GROUP, Key(job.metadata.namespace, name)) for name in names)
        return next((group for group in found if group is not None), None)

    def _resources(self, job: Job, plugins: Iterable[Plugin]) -> dict[tuple[Kind, Key], Json | None]:
        """The plugins' objects. Those of a former job of the name go with it: the new one waits until they have gone."""
        found = {}
        for kind, key in (each for plugin in plugins for each in plugin.belongings(job.metadata.key)):
            for _ in range(2):
                obj = self._lookup.read(kind, key)
                owner = controller_of(obj) if obj is not None else None
                if owner is None or owner.get("kind") != JOB.name or owner.get("uid") == job.metadata.uid:
                    found[kind, key] = obj
                    break
                self._lookup.forget(kind, key)
            else:
                raise NotYet(f"{kind} {key} of a former job is still there", poll=True)
        return found

    def _forget(self, job: Job) -> None:
        with suppress(PumiceError):
            for plugin in plugins_of(job):
                for kind, key in plugin.belongings(job.metadata.key):
                    self._lookup.forget(kind, key)

    def _event(self, job: Key, level: str, reason: str, message: str) -> Emit:
        known = self._views.get(job)
        return Emit(JOB, job, level, reason, message, uid=known.metadata.uid if known is not None else "")


def _lasts(error: PumiceError) -> bool:
    """The same request would be refused again; not a conflict, and no trouble of the API server."""
    return isinstance(error, ClusterError) and error.status < 500 and not isinstance(error, (Conflict, TooManyRequests))


def _blame(operation: Operation) -> str:
    """The reason of the event about an operation that failed."""
    kind = getattr(operation, "kind", None)
    if kind == POD:
        return "FailedCreate" if isinstance(operation, Create) else "FailedDelete"
    if kind == POD_GROUP:
        return "FailedDelete" if isinstance(operation, Delete) else "PodGroupError"
    if kind == PVC:
        return "PVCError"
    return "JobStatusError" if isinstance(operation, PatchStatus) else "PluginError"
