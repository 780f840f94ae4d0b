"""Lifecycle policies of a job or of a task: on which event or exit code, which action.

Source: volcano ed72c7c, webhooks/admission/jobs/validate/util.go. Difference: the action of an exit code's policy is
checked too (upstream lets internal actions through there)."""

from __future__ import annotations

from extender.api import job
from extender.api.checks import Faults, apply, one_of
from extender.api.errors import Fault
from extender.api.job import ANY_EVENT as ANY
from extender.api.meta import Json

EVENTS = (ANY, job.POD_FAILED, job.POD_EVICTED, job.POD_PENDING, job.GROUP_UNKNOWN, job.TASK_COMPLETED, job.TASK_FAILED,
          "JobUpdated")  # fmt: skip
ACTIONS = (job.ABORT_JOB, job.RESTART_JOB, job.RESTART_TASK, job.RESTART_POD, job.RESTART_PARTITION, job.TERMINATE_JOB,
           job.COMPLETE_JOB, job.RESUME_JOB)  # fmt: skip
_EVENT, _ACTION = one_of(*EVENTS), one_of(*ACTIONS)


def policy_faults(policies: list[Json], path: str) -> Faults:
    events: dict[str, str] = {}
    codes: dict[int, str] = {}
    for index, policy in enumerate(policies):
        at = f"{path}[{index}]"
        named = _events(policy, at)
        if named and "exitCode" in policy:
            yield Fault(at, "event and exitCode exclude each other: split them into two policies")
        if not named and "exitCode" not in policy:
            yield Fault(at, f"either event (one of {', '.join(EVENTS)}) or exitCode is required")
            continue
        yield from apply({"action": _ACTION}, {"action": policy.get("action", "")}, at)
        for event, where in named.items():
            if _EVENT(event):
                yield Fault(where, _EVENT(event))
            elif event in events:
                yield Fault(where, f"event '{event}' is used by {events[event]} already")
            events.setdefault(event, where)
        if "exitCode" in policy:
            code, where = policy["exitCode"], f"{at}.exitCode"
            if code == 0:
                yield Fault(where, "0 is success and cannot trigger an action: use a code other than 0")
            elif code in codes:
                yield Fault(where, f"exit code {code} is used by {codes[code]} already")
            codes.setdefault(code, where)
    if ANY in events and len(events) > 1:
        yield Fault(path, f"'{ANY}' stands for every event: no other event may be used beside it")


def _events(policy: Json, path: str) -> dict[str, str]:
    """The distinct events of one policy, each with the field that names it."""
    listed = {event: f"{path}.events[{index}]" for index, event in reversed([*enumerate(policy.get("events", []))])}
    return {**listed, **({policy["event"]: f"{path}.event"} if policy.get("event") else {})}
