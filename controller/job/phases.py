"""When does a job go from one phase to another: two tables, read top to bottom.

STEPS says what an action does in a phase: synchronise, kill the whole job or a part of it; and which rules then look at the
fresh counts. The first rule that holds names the next phase. Source: volcano ed72c7c, pkg/controllers/job/state/*.go.
Difference: abort, terminate and complete are honoured while the job restarts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from controller.job.counts import Counts
from controller.job.seen import task_minimum
from extender.api.job import (
    ABORT_JOB,
    ABORTED,
    ABORTING,
    COMPLETE_JOB,
    COMPLETED,
    COMPLETING,
    FAILED,
    PENDING,
    RESTART_JOB,
    RESTART_PARTITION,
    RESTART_POD,
    RESTART_TASK,
    RESTARTING,
    RESUME_JOB,
    RUNNING,
    SYNC_JOB,
    TERMINATE_JOB,
    TERMINATED,
    TERMINATING,
    JobSpec,
)
from extender.api.pod import SUCCEEDED


@dataclass(frozen=True, slots=True)
class Tally:
    """A job's wishes and the fresh counts of its pods."""

    spec: JobSpec
    retry_count: int
    counts: Counts

    @property
    def replicas(self) -> int:
        return sum(task.replicas for task in self.spec.tasks)

    @property
    def done(self) -> bool:
        return self.counts.succeeded + self.counts.failed == self.replicas


class Rule(NamedTuple):
    holds: Callable[[Tally], bool]
    phase: str | None  # None: stay


def always(_: Tally) -> bool:
    return True


def no_replicas(t: Tally) -> bool:
    return t.replicas == 0


def enough_started(t: Tally) -> bool:
    return t.spec.min_available <= t.counts.running + t.counts.succeeded + t.counts.failed


def min_success_reached(t: Tally) -> bool:
    return t.spec.min_success is not None and t.counts.succeeded >= t.spec.min_success


def done_with_a_task_short(t: Tally) -> bool:
    """Every task was promised its minimum, and one that ran has fewer successes."""
    return (
        t.done
        and t.spec.min_available >= sum(task_minimum(task) for task in t.spec.tasks)
        and any(
            t.counts.tasks[task.name].get(SUCCEEDED, 0) < task.min_available
            for task in t.spec.tasks
            if task.min_available is not None and task.name in t.counts.tasks
        )
    )


def done_short_of_min_success(t: Tally) -> bool:
    return t.done and t.spec.min_success is not None and t.counts.succeeded < t.spec.min_success


def done_with_min_available(t: Tally) -> bool:
    return t.done and t.counts.succeeded >= t.spec.min_available


def done(t: Tally) -> bool:
    return t.done


def too_many_pending(t: Tally) -> bool:
    return t.counts.pending > t.replicas - t.spec.min_available


def retries_used_up(t: Tally) -> bool:
    return t.retry_count >= t.spec.max_retry


def enough_pods_gone(t: Tally) -> bool:
    return t.replicas - t.counts.terminating >= t.spec.min_available


def nothing_left(t: Tally) -> bool:
    return t.counts.terminating == t.counts.pending == t.counts.running == 0


Rules = Sequence[Rule]

STARTING: Rules = (Rule(enough_started, RUNNING),)
RUNS: Rules = (
    Rule(no_replicas, None),
    Rule(min_success_reached, COMPLETED),
    Rule(done_with_a_task_short, FAILED),
    Rule(done_short_of_min_success, FAILED),
    Rule(done_with_min_available, COMPLETED),
    Rule(done, FAILED),
    Rule(too_many_pending, PENDING),
)
RESTARTS: Rules = (Rule(retries_used_up, FAILED), Rule(enough_pods_gone, PENDING))
STAYS: Rules = ()


class Step(NamedTuple):
    """What an action does: `do` is sync, kill (the whole job) or part (the target of the request).

    `soft` kills leave pods that have succeeded or failed; `retry` counts the step as one of spec.maxRetry."""

    do: str
    rules: Rules
    soft: bool = True
    retry: bool = False


SYNC, KILL, PART = "sync", "kill", "part"


def _to(phase: str) -> Rules:
    return (Rule(always, phase),)


def _until_gone(phase: str) -> Rules:
    return (Rule(nothing_left, phase),)


_RESTART_ALL = Step(KILL, _to(RESTARTING), soft=False, retry=True)
_RESTART_PART = Step(PART, _to(RESTARTING), retry=True)
_RESUME = Step(KILL, _to(RESTARTING), retry=True)
_PARTS = (RESTART_TASK, RESTART_POD, RESTART_PARTITION)
_STOPS = {
    ABORT_JOB: Step(KILL, _to(ABORTING)),
    TERMINATE_JOB: Step(KILL, _to(TERMINATING)),
    COMPLETE_JOB: Step(KILL, _to(COMPLETING)),
}
_WORKS = {RESTART_JOB: _RESTART_ALL, **dict.fromkeys(_PARTS, _RESTART_PART), **_STOPS}
_OTHER = "any other action"

STEPS: Mapping[str, Mapping[str, Step]] = {
    PENDING: {**_WORKS, _OTHER: Step(SYNC, STARTING)},
    RUNNING: {**_WORKS, _OTHER: Step(SYNC, RUNS)},
    RESTARTING: {
        SYNC_JOB: Step(SYNC, RESTARTS),
        **dict.fromkeys(_PARTS, Step(PART, RESTARTS)),
        **_STOPS,
        _OTHER: Step(KILL, RESTARTS, soft=False),
    },
    ABORTING: {RESUME_JOB: _RESUME, _OTHER: Step(KILL, _until_gone(ABORTED))},
    ABORTED: {RESUME_JOB: _RESUME, _OTHER: Step(KILL, STAYS)},
    COMPLETING: {_OTHER: Step(KILL, _until_gone(COMPLETED))},
    TERMINATING: {_OTHER: Step(KILL, _until_gone(TERMINATED))},
    COMPLETED: {_OTHER: Step(KILL, STAYS)},
    FAILED: {_OTHER: Step(KILL, STAYS)},
    TERMINATED: {_OTHER: Step(KILL, STAYS)},
}


def step(phase: str, action: str) -> Step:
    """An empty or unknown phase is that of a new job."""
    steps = STEPS.get(phase, STEPS[PENDING])
    return steps.get(action, steps[_OTHER])


def next_phase(rules: Rules, tally: Tally) -> str | None:
    """The phase the first rule that holds names; None to stay."""
    return next((rule.phase for rule in rules if rule.holds(tally)), None)
