"""The phases of a job: which rule holds, and what an action does in a phase."""

from __future__ import annotations

from typing import Any

import pytest

from controller.job import phases
from controller.job.counts import Counts
from controller.job.phases import RESTARTS, RUNS, STARTING, Tally, next_phase
from extender.api.job import Job, JobSpec
from extender.api.views import view
from tests.reconcile.builders import job, task


def spec(*tasks: Any, **fields: Any) -> JobSpec:
    return view(Job, job(*tasks, **fields)).spec


def tally(asked: JobSpec, retry_count: int = 0, **counts: Any) -> Tally:
    return Tally(asked, retry_count, Counts(**counts))


TWO = spec(task("a", 1), task("b", 1))
STRICT = spec(task("a", 1, minAvailable=1), task("b", 1, minAvailable=1))
LOOSE = spec(task("a", 1, minAvailable=0), task("b", 1, minAvailable=0), minAvailable=1)
QUICK = spec(task("a", 1), task("b", 1), minSuccess=1)
GREEDY = spec(task("a", 1), task("b", 1), minAvailable=1, minSuccess=2)
TEN = spec(task("a", 10), minAvailable=8)
ONE_SIDED = {"a": {"Succeeded": 1}, "b": {"Failed": 1}}

RULES = {
    "starts when the minimum runs": (STARTING, tally(TWO, running=2), "Running"),
    "starts when the minimum has run": (STARTING, tally(TWO, running=1, succeeded=1), "Running"),
    "waits for the last of the minimum": (STARTING, tally(TWO, running=1, pending=1), None),
    "keeps running without replicas": (RUNS, tally(spec(task("a", 0))), None),
    "is complete when all succeeded": (RUNS, tally(TWO, succeeded=2), "Completed"),
    "fails when a task is short of its minimum": (RUNS, tally(STRICT, succeeded=1, failed=1, tasks=ONE_SIDED), "Failed"),
    "is complete when one success was all it asked": (RUNS, tally(LOOSE, succeeded=1, failed=1, tasks=ONE_SIDED), "Completed"),
    "is complete at once when enough succeeded": (RUNS, tally(QUICK, succeeded=1, running=1), "Completed"),
    "fails short of minSuccess": (RUNS, tally(GREEDY, succeeded=1, failed=1), "Failed"),
    "fails short of minAvailable": (RUNS, tally(TWO, succeeded=1, failed=1), "Failed"),
    "goes on while one runs": (RUNS, tally(TWO, succeeded=1, running=1), None),
    "is pending again when too few are left": (RUNS, tally(TEN, running=7, pending=3), "Pending"),
    "bears as many pending as are spare": (RUNS, tally(TEN, running=8, pending=2), None),
    "fails when the retries are used up": (RESTARTS, tally(TWO, retry_count=3), "Failed"),
    "starts anew when the old pods have gone": (RESTARTS, tally(TWO, retry_count=1), "Pending"),
    "waits for old pods": (RESTARTS, tally(TWO, retry_count=1, terminating=1), None),
    "need not wait for more than the minimum": (RESTARTS, tally(TEN, retry_count=1, terminating=2), "Pending"),
}


@pytest.mark.parametrize(("rules", "counted", "want"), RULES.values(), ids=RULES)
def test_rule(rules: phases.Rules, counted: Tally, want: str | None) -> None:
    """The first rule that holds names the next phase."""
    assert next_phase(rules, counted) == want


STEPS = {
    "a running job restarts whole": ("Running", "RestartJob", ("kill", False, True)),
    "a running job restarts a task": ("Running", "RestartTask", ("part", True, True)),
    "an abort keeps pods that ended": ("Running", "AbortJob", ("kill", True, False)),
    "an unknown action synchronises": ("Running", "Frobnicate", ("sync", True, False)),
    "a new job is one that is pending": ("", "SyncJob", ("sync", True, False)),
    "a restarting job can be aborted": ("Restarting", "AbortJob", ("kill", True, False)),
    "a restarting job restarts again uncounted": ("Restarting", "RestartJob", ("kill", False, False)),
    "an aborted job resumes as a retry": ("Aborted", "ResumeJob", ("kill", True, True)),
    "an aborted job stays so otherwise": ("Aborted", "RestartJob", ("kill", True, False)),
    "a finished job is only cleaned up": ("Completed", "RestartJob", ("kill", True, False)),
}


@pytest.mark.parametrize(("phase", "action", "want"), STEPS.values(), ids=STEPS)
def test_step(phase: str, action: str, want: tuple[str, bool, bool]) -> None:
    """What an action does: (sync, kill or part; keeps ended pods; counts as a retry)."""
    step = phases.step(phase, action)
    assert (step.do, step.soft, step.retry) == want


def test_an_abort_during_a_restart_is_honoured() -> None:
    """Upstream swallows it."""
    assert next_phase(phases.step("Restarting", "AbortJob").rules, tally(TWO)) == "Aborting"
