"""proportion, overcommit and resourcequota: what queues deserve, whom they let in, what they give back, and in which words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.actions import enqueue
from extender.api.meta import RESOURCE_QUOTA, Json
from extender.core import quotas
from extender.core.plugin import NotAdmitted, Vote
from extender.core.session import Session
from extender.plugins.overcommit import Overcommit
from extender.testing.builders import Built, node, podgroup, queue, task
from extender.testing.opened import job_row, opened, plugin, queue_row, request, state, task_row


def used(name: str, of: str, cpu: int, count: int = 1) -> list[Json]:
    """A group that runs `count` pods in queue `of`."""
    tasks = [task(f"{name}-{i}", name).cpu(cpu).on("n") for i in range(count)]
    return [podgroup(name).queue(of).phase("Running").members(count), *tasks]


def wants(name: str, of: str, cpu: int, count: int = 1) -> list[Json]:
    return [podgroup(name).queue(of), *(task(f"{name}-{i}", name).cpu(cpu) for i in range(count))]


# --- the sums under all of them -----------------------------------------------------------------------------------------

ADMITTED = {
    "let in, nothing there yet": (podgroup("g").asks(cpu=5), [], "5"),
    "let in, in part there": (podgroup("g").asks(cpu=5), [task("t", "g").cpu(2).on("n")], "3"),
    "runs whole": (podgroup("g").asks(cpu=5).members(1).phase("Running"), [task("t", "g").cpu(2).on("n")], "3"),
    "runs below its minimum": (podgroup("g").asks(cpu=5).members(2).phase("Running"), [task("t", "g").cpu(2).on("n")], "0"),
    "runs with more than its minimum": (podgroup("g").asks(cpu=1).phase("Running"), [task("t", "g").cpu(2).on("n")], "0"),
    "still waits": (podgroup("g").asks(cpu=5).phase("Pending"), [], "0"),
    "asks no minimum": (podgroup("g"), [], "0"),
    "a foreign gate holds some of it": (podgroup("g").asks(cpu=5), [task("t", "g").cpu(2).gated()], "3"),
    "its queue's own gate does not": (
        podgroup("g").asks(cpu=5), [task("t", "g").cpu(2).gated("scheduling.volcano.sh/queue-allocation-gate")], "5",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("group", "tasks", "cpu"), ADMITTED.values(), ids=ADMITTED)
def test_what_was_let_in_and_is_not_there_yet(group: Json, tasks: list[Json], cpu: str) -> None:
    """Of a minimum only what is not used yet is still to come."""
    ssn = opened(node("n").cpu(9), queue(), group, *tasks, plugins="overcommit")
    row = quotas.admitted_amounts(ssn)[job_row(ssn, "g")]
    assert ssn.axis.text(0, row[0]) == cpu


def test_sums_are_per_queue_and_of_living_jobs() -> None:
    """Groups of unknown queues, and pods whose group is gone, count nowhere."""
    ssn = opened(
        node("n").cpu(99), queue("a"), queue("b"), *used("ga", "a", 3, 2), *wants("gb", "b", 2, 3), *used("gc", "gone", 5),
        task("orphan", "nobody").cpu(7).on("n"), plugins="proportion",
    )  # fmt: skip
    sums = quotas.queue_sums(ssn)
    a, b = queue_row(ssn, "a"), queue_row(ssn, "b")
    assert sums.jobs.tolist() == [1, 1]
    assert sums.allocated[:, 0].tolist() == [6000, 0]
    assert (sums.request[a, 0], sums.request[b, 0]) == (6000, 6000)
    assert sums.elastic[a, 0] == 6000  # no minimum: all of it


CAPABILITIES = {
    "nothing said": (queue("q"), [100_000, 8_000]),
    "a capability": (queue("q").capability(cpu=30), [30_000, 8_000]),
    "more than there is": (queue("q").capability(cpu=900, gpu=900), [100_000, 8_000]),
    "none of a scalar": (queue("q").capability(gpu=0), [100_000, 0]),
    "what others are guaranteed is not for it": (queue("q").guarantee(cpu=10), [100_000, 8_000]),
}


@pytest.mark.parametrize(("of", "want"), CAPABILITIES.values(), ids=CAPABILITIES)
def test_real_capability(of: Json, want: list[int]) -> None:
    """The cluster without what others are guaranteed, and the capability."""
    ssn = opened(node("n").cpu(100).gpu(8), of, queue("other"), plugins="proportion")
    assert quotas.real_capability(ssn)[queue_row(ssn, "q")][[0, 3]].tolist() == want


def test_guarantees_of_others_lower_the_real_capability() -> None:
    """60 of 100 are promised to others; 40 and its own 10 are what it can have."""
    ssn = opened(node("n").cpu(100), queue("q").guarantee(cpu=10), queue("other").guarantee(cpu=50), plugins="proportion")
    assert quotas.real_capability(ssn)[queue_row(ssn, "q")][0] == 50_000


# --- proportion -----------------------------------------------------------------------------------------------------------


def worked_example() -> Session:
    """100 cpu: A weight 1 asks 20, B weight 3 asks 100, C weight 1 asks 100 and may have 15."""
    return opened(
        node("n").cpu(100).pods(1000), queue("A").weight(1), queue("B").weight(3), queue("C").weight(1).capability(cpu=15),
        queue("idle").weight(9), *wants("a", "A", 20), *wants("b", "B", 5, 20), *wants("c", "C", 5, 20), plugins="proportion",
    )  # fmt: skip


def test_deserved() -> None:
    """A queue without jobs takes no part."""
    ssn = worked_example()
    deserved = plugin(ssn, "proportion").deserved[:, 0]
    assert {name: deserved[row] for name, row in ssn.queues.rows.items()} == {"A": 20000, "B": 65000, "C": 15000, "idle": 0}


def test_a_queue_may_take_what_it_deserves() -> None:
    """In one computation, and not a task more."""
    ssn = worked_example()
    proportion, row = plugin(ssn, "proportion"), queue_row(ssn, "C")
    assert proportion.allocatable(ssn, row, request(ssn, cpu=4), 9) == 3
    assert proportion.allocatable(ssn, row, request(ssn, cpu=15), 9) == 1
    assert not proportion.preemptive(ssn, row, request(ssn, cpu=16))
    assert proportion.explain_queue(ssn, row, request(ssn, cpu=15)) is None
    assert proportion.explain_queue(ssn, row, request(ssn, cpu=16)) == (
        "queue C: cpu 16 asked > capability 15",
        {"cpu": {"asked": "16", "capability": "15"}},
    )
    assert proportion.explain_queue(ssn, queue_row(ssn, "A"), request(ssn, cpu=21)) == (
        "queue A: cpu 21 asked > deserved 20",
        {"cpu": {"asked": "21", "deserved": "20"}},
    )


def test_a_closed_queue_takes_nothing() -> None:
    """Neither tasks nor jobs."""
    ssn = opened(node("n").cpu(9), queue("q").state("Closed"), *wants("g", "q", 1), plugins="proportion")
    proportion = plugin(ssn, "proportion")
    assert proportion.allocatable(ssn, 0, request(ssn, cpu=1), 1) == 0
    assert proportion.job_enqueueable(ssn, job_row(ssn, "g")) is Vote.REJECT


def test_queues_with_less_of_their_share_go_first() -> None:
    """Share is what is taken of what is deserved; priority comes before it."""
    ssn = opened(
        node("n").cpu(12).pods(1000), queue("a"), queue("b"), queue("c").with_("spec.priority", 1),
        *used("ua", "a", 3), *wants("wa", "a", 9), *used("ub", "b", 1), *wants("wb", "b", 9), *used("uc", "c", 4),
        plugins="proportion",
    )  # fmt: skip
    assert [ssn.queues.name[row] for row in sorted(range(3), key=ssn.queue_order)] == ["c", "b", "a"]


def test_overused() -> None:
    """A queue that has all it deserves, also one that asks nothing at all."""
    ssn = opened(
        node("n").cpu(4), queue("full"), queue("hungry"), queue("idle"), *used("u", "full", 2), *wants("w", "hungry", 9),
        plugins="proportion",
    )  # fmt: skip
    assert {name: ssn.overused(row) for name, row in ssn.queues.rows.items()} == {"full": True, "hungry": False, "idle": True}


def test_reclaim_stops_where_the_queue_has_its_due() -> None:
    """Tested before each victim is taken: of five tasks beyond a share of two and a half, three go."""
    ssn = opened(
        node("n").cpu(5).pods(1000), queue("rich"), queue("poor"), *used("r", "rich", 1, 5), *wants("p", "poor", 1, 5),
        plugins="proportion",
    )  # fmt: skip
    rows = [task_row(ssn, f"r-{i}") for i in range(5)]
    proportion = plugin(ssn, "proportion")
    assert proportion.deserved[queue_row(ssn, "rich")][0] == 2500
    assert proportion.reclaimable(ssn, task_row(ssn, "p-0"), rows) == rows[:3]
    assert proportion.reclaimable(ssn, rows[0], [task_row(ssn, "p-0")]) == []


# --- admission ------------------------------------------------------------------------------------------------------------


def refusal(ssn: Session, name: str, job: str) -> NotAdmitted | None:
    """What a plugin says about a job, None where it lets it in."""
    row = job_row(ssn, job)
    vote = plugin(ssn, name).job_enqueueable(ssn, row)
    told = ssn.enqueue_refusals[row]
    assert (vote is Vote.REJECT) == bool(told)
    return told[-1] if told else None


def test_proportion_lets_in_up_to_the_capability() -> None:
    """Used, let in before, and asked together; not what the queue deserves."""
    ssn = opened(
        node("n").cpu(100), queue("q").capability(cpu=16), *used("u", "q", 8), podgroup("in").queue("q").asks(cpu=4),
        podgroup("fits").queue("q").asks(cpu=12).phase("Pending"), podgroup("not").queue("q").asks(cpu=13).phase("Pending"),
        plugins="proportion",
    )  # fmt: skip
    # What the running group has beyond its minimum (it has none) can be taken back, so it does not count.
    assert refusal(ssn, "proportion", "fits") is None
    assert refusal(ssn, "proportion", "not") == NotAdmitted(
        "queue resource quota insufficient: insufficient cpu",
        "queue q: cpu 4 admitted + 13 asked > capability 16",
        {"cpu": {"admitted": "4", "asked": "13", "capability": "16"}},
    )
    plugin(ssn, "proportion").job_enqueued(ssn, job_row(ssn, "fits"))
    assert refusal(ssn, "proportion", "fits") is not None


def test_elastic_use_never_makes_room_beyond_the_capability() -> None:
    """Evicted use must not be subtracted twice."""
    ssn = opened(
        node("n").cpu(100), queue("q").capability(cpu=16), *used("u", "q", 8),
        podgroup("g").queue("q").asks(cpu=17).phase("Pending"), plugins="proportion",
    )  # fmt: skip
    with ssn.statement() as stmt:
        stmt.evict(task_row(ssn, "u-0"), "reclaim")
        assert refusal(ssn, "proportion", "g") is not None


def test_overcommit_lets_in_up_to_the_factor() -> None:
    """Worked example: 100 cpu, factor 1.2, used 90, let in 20: a job of 10 still gets in, then nobody does."""
    ssn = opened(
        node("n").cpu(100), queue(), *used("u", "default", 90), podgroup("in").asks(cpu=20),
        podgroup("ten").asks(cpu=10).phase("Pending"), podgroup("one").asks(cpu=1).phase("Pending"), plugins="overcommit",
    )  # fmt: skip
    assert refusal(ssn, "overcommit", "ten") is None
    plugin(ssn, "overcommit").job_enqueued(ssn, job_row(ssn, "ten"))
    assert refusal(ssn, "overcommit", "one") == NotAdmitted(
        "resource in cluster is overused: overused cpu",
        "the cluster taken 1.2 times: cpu 90 used + 30 admitted + 1 asked > limit 120",
        {"cpu": {"used": "90", "admitted": "30", "asked": "1", "limit": "120"}},
    )


MINIMUMS = {  # a group that asks for 10 of 20 and has one task of 8
    "let in: all of it beside what it uses": (podgroup("g").asks(cpu=10).members(2), 2),
    "let in, a foreign gate holds 3 of it": (podgroup("g").asks(cpu=10).members(2), 5),
    "runs: what it does not use yet": (podgroup("g").asks(cpu=10).phase("Running"), 10),
    "runs below its minimum: what it uses": (podgroup("g").asks(cpu=10).members(2).phase("Running"), 12),
}


@pytest.mark.parametrize(("name", "group", "left"), [(name, *row) for name, row in MINIMUMS.items()], ids=MINIMUMS)
def test_what_a_group_keeps_from_those_that_wait(name: str, group: Json, left: int) -> None:
    """Until a group runs, its whole minimum is kept for it, whatever its first tasks hold already."""
    gated = [task("gated", "g").cpu(3).gated()] if "gate" in name else []
    ssn = opened(
        node("n").cpu(20), queue(), group, task("t", "g").cpu(8).on("n"), *gated,
        podgroup("fits").asks(cpu=left).phase("Pending"), podgroup("too much").asks(cpu=left + 1).phase("Pending"),
        plugins=[{"name": "overcommit", "arguments": {"overcommit-factor": 1.0}}],
    )  # fmt: skip
    assert refusal(ssn, "overcommit", "fits") is None
    assert refusal(ssn, "overcommit", "too much") is not None


def quota(name: str, hard: dict[str, str], used: dict[str, str]) -> Json:
    return Built(RESOURCE_QUOTA, name).with_("status.hard", hard).with_("status.used", used)


QUOTAS = {
    "room": (quota("q", {"cpu": "4"}, {"cpu": "1"}), {"cpu": "3"}, None),
    "another name": (quota("q", {"requests.cpu": "1"}, {}), {"cpu": "3"}, None),
    "names to the letter": (
        quota("q", {"requests.cpu": "1"}, {}), {"requests.cpu": "3", "cpu": "3"},
        "resource quota insufficient, requested: requests.cpu=3, used: requests.cpu=0, limited: requests.cpu=1",
    ),
    "only what is too much is named": (
        quota("q", {"cpu": "4", "pods": "2"}, {"cpu": "1", "pods": "0"}), {"cpu": "3500m", "pods": "1"},
        "resource quota insufficient, requested: cpu=3500m, used: cpu=1, limited: cpu=4",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("of", "asked", "event"), QUOTAS.values(), ids=QUOTAS)
def test_resource_quota(of: Json, asked: dict[str, str], event: str | None) -> None:
    """A minimum must fit what is left of every quota of its namespace."""
    group = podgroup("g").phase("Pending").with_("spec.minResources", asked)
    ssn = opened(queue(), group, of, plugins="resourcequota")
    told = refusal(ssn, "resourcequota", "g")
    assert (told.event if told else None) == event


def test_resource_quota_counts_what_this_session_lets_in() -> None:
    """Two jobs that fit alone do not fit together; another namespace is another quota."""
    ssn = opened(
        queue(), podgroup("a").asks(cpu=3).phase("Pending"), podgroup("b").asks(cpu=3).phase("Pending"),
        podgroup("c", "elsewhere").asks(cpu=3).phase("Pending"), quota("q", {"cpu": "4"}, {}), plugins="resourcequota",
    )  # fmt: skip
    made = plugin(ssn, "resourcequota")
    assert refusal(ssn, "resourcequota", "a") is None
    made.job_enqueued(ssn, job_row(ssn, "a"))
    told = refusal(ssn, "resourcequota", "b")
    assert told is not None
    assert told.text == "resource quota default/q: cpu 3 used + 3 asked > hard 4"
    assert made.job_enqueueable(ssn, job_row(ssn, "c", "elsewhere")) is Vote.PERMIT


# --- what a session does and takes back -----------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["allocate", "pipeline", "evict"])), max_size=12))
@settings(deadline=None, max_examples=60)
def test_undoing_restores_every_number(steps: list[tuple[int, str]]) -> None:
    """Whatever a statement does, once it is taken back no plugin remembers any of it."""
    tree = [queue("root"), queue("mid").parent("root"), queue("a").parent("mid").deserved(cpu=4), queue("b").parent("mid")]
    ssn = opened(
        node("n").cpu(100).gpu(8), *tree, *used("u", "a", 2, 3), *wants("w", "b", 1, 3),
        plugins=[{"name": "drf"}, {"name": "proportion"}, {"name": "capacity", "enableHierarchy": True}, {"name": "gang"}],
    )  # fmt: skip
    rows = [task_row(ssn, name) for name in ("u-0", "u-1", "u-2", "w-0", "w-1", "w-2")]
    home = ssn.nodes.rows["n"]
    before = {made.name: state(made) for made in ssn.plugins}
    with ssn.statement() as stmt:
        done: set[int] = set()
        for index, what in steps:
            task_ = rows[index]
            if task_ in done or (what == "evict") != (index < 3):
                continue
            done.add(task_)
            if what == "evict":
                stmt.evict(task_, "reclaim")
            elif what == "allocate":
                stmt.allocate([task_], [home])
            else:
                stmt.pipeline([task_], [home])
    for made in ssn.plugins:
        for name, now in state(made).items():
            np.testing.assert_array_equal(now, before[made.name][name], err_msg=f"{made.name}.{name}")


@pytest.mark.parametrize(("plugins", "asked"), [("overcommit", 1), ("overcommit, sla", 3)])
def test_of_jobs_that_ask_the_same_one_is_asked(monkeypatch: pytest.MonkeyPatch, plugins: str, asked: int) -> None:
    """All that it stands for wait for the same reason. Where a plugin tells them apart (sla, by age) each is asked about."""
    votes = []
    vote = Overcommit.job_enqueueable

    def counting(self: Overcommit, ssn: Session, job: int) -> Vote:
        votes.append(ssn.job_key(job).name)
        return vote(self, ssn, job)

    monkeypatch.setattr(Overcommit, "job_enqueueable", counting)
    pending = [podgroup(name).queue("q").asks(cpu=5).phase("Pending") for name in "abc"]
    small = podgroup("small").queue("q").asks(cpu=1).phase("Pending")
    ssn = opened(node("n").cpu(10), queue("q"), *used("r", "q", 9), *pending, small, plugins=plugins)
    enqueue.run(ssn, None)
    told = {name: [refusal.text for refusal in ssn.enqueue_refusals.get(job_row(ssn, name), [])] for name in ("a", "c", "small")}
    text = "the cluster taken 1.2 times: cpu 9 used + 5 asked > limit 12"
    assert (sum(name in "abc" for name in votes), told) == (asked, {"a": [text], "c": [text], "small": []})
