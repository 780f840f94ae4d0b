"""gang: all or nothing, by minMember, by role and by part; and who may be taken from a gang."""

from __future__ import annotations

import pytest

from extender.api.meta import POD_GROUP, Json
from extender.api.operations import PatchStatus
from extender.core.closing import close
from extender.core.plugin import Vote
from extender.core.session import Session
from extender.testing.builders import GroupBuilder, node, podgroup, queue, task
from extender.testing.opened import job_row, opened, plugin, task_row


def session(group: GroupBuilder, *tasks: Json) -> Session:
    return opened(node("n").cpu(64), queue(), group, *tasks, plugins="gang")


def running(*names: str, role: str = "") -> list[Json]:
    return [task(name, "g").cpu(1).role(role).on("n") for name in names]


def pending(*names: str, role: str = "", cpu: int = 1) -> list[Json]:
    made = [task(name, "g").role(role) for name in names]
    return [each.cpu(cpu) if cpu else each for each in made]


def parts(by: str, *values: str, on: str = "") -> list[Json]:
    made = [task(f"{by}-{i}", "g").cpu(1).labels({"part": value}) for i, value in enumerate(values)]
    return [each.on(on) if on else each for each in made]


def in_parts(least: int, size: int, minimum: int) -> GroupBuilder:
    policy = {"name": "p", "subGroupSize": size, "minSubGroups": minimum, "matchLabelKeys": ["part"]}
    return podgroup("g").members(least).with_("spec.subGroupPolicy", [policy])


READY = {
    "all there": (podgroup("g").members(2), running("a", "b"), True, 0),
    "one is missing": (podgroup("g").members(2), running("a") + pending("b"), False, 1),
    "pending ones that ask nothing count": (podgroup("g").members(2), running("a") + pending("b", cpu=0), True, 0),
    "enough, yet not of each role": (
        podgroup("g").members(2, {"ps": 1, "worker": 1}), running("a", "b", role="worker") + pending("c", role="ps"), False, 1,
    ),
    "enough of each role": (
        podgroup("g").members(2, {"ps": 1, "worker": 1}), running("a", role="worker") + running("b", role="ps"), True, 0,
    ),
    "roles beyond minMember do not bind": (
        podgroup("g").members(1, {"ps": 1, "worker": 1}), running("a", role="worker") + pending("b", role="ps"), True, 0,
    ),
    "one whole part": (in_parts(1, 2, 1), parts("r", "x", "x", on="n") + parts("w", "y", "y"), True, 0),
    "two halves are no part": (in_parts(1, 2, 1), parts("r", "x", "y", on="n") + parts("w", "x", "y"), False, 1),
    "the closest parts are what it lacks": (
        in_parts(1, 3, 2), parts("r", "x", "x", "y", on="n") + parts("w", "x", "y", "y", "z", "z", "z"), False, 3,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("group", "tasks", "ready", "lacking"), READY.values(), ids=READY)
def test_ready(group: GroupBuilder, tasks: list[Json], ready: bool, lacking: int) -> None:
    """A job is ready with its minimums, and what it lacks is never overstated."""
    ssn = session(group, *tasks)
    gang, job = plugin(ssn, "gang"), job_row(ssn, "g")
    assert gang.job_ready(ssn, job) is ready
    assert max(gang.tasks_to_ready(ssn, job), 0) == lacking
    assert gang.job_pipelined(ssn, job) is (Vote.PERMIT if ready else Vote.REJECT)


VALID = {
    "enough pods": (podgroup("g").members(2), pending("a", "b"), None),
    "too few pods": (podgroup("g").members(3), pending("a", "b"), "there are too few pods for the gang: 2 of 3"),
    "failed pods do not count": (
        podgroup("g").members(2), [*pending("a"), task("b", "g").on("n", "Failed")],
        "there are too few pods for the gang: 1 of 2",
    ),
    "a role without pods": (
        podgroup("g").members(2, {"ps": 1, "worker": 1}), pending("a", "b", role="worker"),
        "there are too few pods for the gang: ps 0 of 1",
    ),
    "too few parts": (in_parts(1, 1, 2), parts("w", "x", "x"), "there are too few subgroups for the gang, see minSubGroups"),
}  # fmt: skip


@pytest.mark.parametrize(("group", "tasks", "message"), VALID.values(), ids=VALID)
def test_valid(group: GroupBuilder, tasks: list[Json], message: str | None) -> None:
    """A job whose pods do not exist yet cannot run, whatever room there is."""
    ssn = session(group, *tasks)
    refused = plugin(ssn, "gang").job_valid(ssn, job_row(ssn, "g"))
    assert (refused.message if refused else None) == message


def test_promised_room_counts_for_pipelined_only() -> None:
    """A gang that is promised what it lacks is pipelined and not ready; taken back, it is neither."""
    ssn = session(podgroup("g").members(2, {"w": 2}), *running("a", role="w"), *pending("b", role="w"))
    gang, job = plugin(ssn, "gang"), job_row(ssn, "g")
    with ssn.statement() as stmt:
        stmt.pipeline([task_row(ssn, "b")], [ssn.nodes.rows["n"]])
        assert gang.job_pipelined(ssn, job) is Vote.PERMIT
        assert not gang.job_ready(ssn, job)
        assert not gang.job_starving(ssn, job)
    assert gang.job_pipelined(ssn, job) is Vote.REJECT
    assert gang.job_starving(ssn, job)


def test_a_policy_with_a_selector_alone_is_one_part() -> None:
    """Unlike in the reference its pods are found."""
    policy = {"name": "p", "subGroupSize": 2, "minSubGroups": 1, "labelSelector": {"matchLabels": {"part": "x"}}}
    group = podgroup("g").members(1).with_("spec.subGroupPolicy", [policy])
    ssn = session(group, *parts("r", "x", "x", on="n"), *parts("w", "y"))
    assert plugin(ssn, "gang").job_ready(ssn, job_row(ssn, "g"))


VICTIMS = {
    "only what is beyond the minimum": (2, ["a", "b", "c", "d"], ["a", "b"]),
    "nothing of a gang that is just whole": (4, ["a", "b", "c", "d"], []),
    "in the order given": (3, ["c", "a"], ["c"]),
    "everything where there is no minimum": (0, ["a", "b", "c", "d"], ["a", "b", "c", "d"]),
}


@pytest.mark.parametrize(("least", "candidates", "want"), VICTIMS.values(), ids=VICTIMS)
def test_victims(least: int, candidates: list[str], want: list[str]) -> None:
    """A gang never loses members below its minimum."""
    ssn = session(podgroup("g").members(least), *running("a", "b", "c", "d"), task("t", "other").cpu(1))
    rows = [task_row(ssn, name) for name in candidates]
    chosen = plugin(ssn, "gang").preemptable(ssn, task_row(ssn, "t"), rows)
    assert [ssn.task_key(row).name for row in chosen] == want


PHASES = {
    "members that leave their nodes still hold them": ("Running", [task("a", "g").cpu(1).on("n").leaving()], None),
    "a pod that is deleted before it had a node starts nothing": ("Inqueue", [task("a", "g").cpu(1).leaving()], None),
    "a node that is not known is a node": ("Inqueue", [task("a", "g").cpu(1).on("gone").leaving()], "Running"),
    "what runs is Running": ("Inqueue", running("a"), "Running"),
    "what has ended is Completed": ("Running", [task("a", "g").cpu(1).on("n", "Succeeded")], "Completed"),
    "without a node it waits": ("Running", pending("a", cpu=65), "Pending"),
}  # fmt: skip


@pytest.mark.parametrize(("shown", "tasks", "written"), PHASES.values(), ids=PHASES)
def test_the_phase_follows_the_members(shown: str, tasks: list[Json], written: str | None) -> None:
    """Written at the end of a session where it differs from what the PodGroup shows."""
    ssn = session(podgroup("g").members(1).phase(shown), *tasks)
    close(ssn)
    statuses = [op.patch["status"] for op in ssn.operations if isinstance(op, PatchStatus) and op.kind is POD_GROUP]
    assert next((status["phase"] for status in statuses if "phase" in status), None) == written


def test_ready_jobs_go_last() -> None:
    """Jobs that still lack members are served first."""
    ssn = opened(
        node("n").cpu(9), queue(), podgroup("old").created(1), podgroup("new").created(2),
        task("o", "old").cpu(1).on("n"), task("w", "new").cpu(1), plugins="gang",
    )  # fmt: skip
    assert ssn.job_order(job_row(ssn, "new")) < ssn.job_order(job_row(ssn, "old"))


def test_a_plugin_that_stands_twice_answers_in_both_places() -> None:
    """As upstream has it: one plugin, with what its last place says; neither is left unopened."""
    group = podgroup("g").members(2)
    twice: list[Json] = [{"name": "gang", "enableJobReady": False}, {"name": "priority"}, {"name": "gang"}]
    ssn = opened(node("n").cpu(64), queue(), group, *pending("a"), plugins=twice)
    assert [made.name for made in ssn.plugins] == ["gang", "priority"]
    assert ssn.job_valid(job_row(ssn, "g")) is not None
