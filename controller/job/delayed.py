"""Actions that wait for the timeout of their policy: a book of at most one per pod, and what cancels them.

Source: volcano ed72c7c, pkg/controllers/job/job_controller_util.go. Differences: an action that another one replaces is
really cancelled, and when it is due is counted from the event itself, so a restart of the controller loses nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace

from controller.job.requests import Request
from extender.api import job as words
from extender.api.meta import Key

_CLASSES = {
    **dict.fromkeys(
        (words.ABORT_JOB, words.RESTART_JOB, words.TERMINATE_JOB, words.COMPLETE_JOB, words.RESUME_JOB), "job"),
    words.RESTART_TASK: "task", words.RESTART_POD: "pod", words.RESTART_PARTITION: "partition",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Entry:
    cause: Request
    timer: Request


class DelayedActions:
    """What is put into the book is answered with the request to wait for; what leaves it with the requests to cancel."""

    def __init__(self) -> None:
        self._entries: dict[Key, dict[str, _Entry]] = {}

    def add(self, cause: Request, action: str) -> tuple[Request | None, list[Request]]:
        """(the timer to start, the timers to stop). Nothing where the pod already waits for the same action."""
        entries = self._entries.setdefault(cause.job, {})
        former = entries.get(cause.pod)
        if former is not None and former.timer.action == action:
            return None, []
        timer = replace(cause, action=action, delayed=True)
        entries[cause.pod] = _Entry(cause, timer)
        return timer, [former.timer] if former is not None else []

    def holds(self, timer: Request) -> bool:
        entry = self._entries.get(timer.job, {}).get(timer.pod)
        return entry is not None and entry.timer == timer

    def overtaken(self, job: Key, pod: str, uid: str, event: str) -> list[Request]:
        """The timers that a pod event makes pointless: the pod has started, or another one runs in its place."""
        entry = self._entries.get(job, {}).get(pod)
        if entry is None:
            return []
        if entry.cause.event == words.POD_PENDING:
            stale = entry.cause.pod_uid == uid and event in (words.POD_RUNNING, words.POD_FAILED, words.POD_EVICTED)
        else:
            stale = entry.cause.event in (words.POD_FAILED, words.POD_EVICTED) and event == words.POD_RUNNING
        return self._drop(job, [pod]) if stale else []

    def settled(self, request: Request, action: str) -> list[Request]:
        """The timers that an executed action of the same class makes pointless."""
        kind = _CLASSES.get(action)
        entries = self._entries.get(request.job, {})
        if kind is None:
            return []
        return self._drop(request.job, [
            pod for pod, entry in entries.items()
            if _CLASSES.get(entry.timer.action) == kind
            and (kind != "task" or entry.cause.task == request.task)
            and (kind != "pod" or pod == request.pod)
            and (kind != "partition" or entry.cause.partition == request.partition)
        ])  # fmt: skip

    def forget(self, job: Key) -> list[Request]:
        return self._drop(job, list(self._entries.get(job, ())))

    def _drop(self, job: Key, pods: list[str]) -> list[Request]:
        entries = self._entries.get(job, {})
        timers = [entries.pop(pod).timer for pod in pods]
        if not entries:
            self._entries.pop(job, None)
        return timers
