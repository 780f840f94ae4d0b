"""Which jobs failed, and which flows will not go on: what was placed and yet came to nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from extender.api.meta import JOB, JOB_FLOW, POD, Json, key_of
from extender.ctl.lines import JobLine, job_phase_of
from extender.local import Outcome

FAILED = "Failed"
_STOPPED = ("Aborted", "Terminated")  # by its own policies, where a pod of it failed


@dataclass(frozen=True, slots=True)
class Failure:
    """`job`: a job as in the rows of the table, or `JobFlow default/f`."""

    job: str
    message: str


def failures(outcome: Outcome, lines: Iterable[JobLine]) -> Iterator[Failure]:
    """First the jobs, in the order of their rows, then the flows."""
    jobs = {str(key_of(job)): job for job in outcome.objects.get(JOB, ())}
    lone = {f"Pod {key_of(pod)}": str((pod.get("status") or {}).get("message") or "") for pod in outcome.objects.get(POD, ())}
    for line in lines:
        status = (jobs[line.name].get("status") or {}) if line.name in jobs else {}
        pods = int(status.get("failed") or 0)
        if line.phase == FAILED or (line.phase in _STOPPED and pods):
            said = str((status.get("state") or {}).get("message") or "") or lone.get(line.name, "")
            cause = f"{pods} of its pods failed" if pods else "its pods failed"
            yield Failure(line.name, said or (cause if line.phase == FAILED else f"{cause}, it is {line.phase}"))
    for flow in outcome.objects.get(JOB_FLOW, ()):
        if ((flow.get("status") or {}).get("state") or {}).get("phase") == FAILED:
            yield Failure(f"JobFlow {key_of(flow)}", _why_not(flow, jobs))


def _why_not(flow: Json, jobs: dict[str, Json]) -> str:
    """Its jobs that have not completed, and those that will not be made: the flow makes none any more."""
    namespace, name = key_of(flow)
    ended: list[str] = []
    unmade: list[str] = []
    listed = {each["name"]: str(each.get("state") or "") for each in (flow.get("status") or {}).get("jobStatusList") or ()}
    for entry in flow["spec"].get("flows") or ():
        job = f"{name}-{entry['name']}"
        there = jobs.get(f"{namespace}/{job}")
        phase = job_phase_of(there) if there is not None else listed.get(job, "")
        if not phase:
            unmade.append(job)
        elif phase in (FAILED, *_STOPPED):
            ended.append(f"{job} is {phase}")
    rest = f"; never to be started: {', '.join(unmade)}" if unmade else ""
    return f"{', '.join(ended) or 'one of its jobs has failed'}{rest}"
