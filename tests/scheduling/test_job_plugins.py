"""drf, priority, sla, conformance, pdb and binpack: orders, votes, victims and points of single plugins."""

from __future__ import annotations

import numpy as np
import pytest

from extender.api.errors import ConfError
from extender.api.meta import PDB, Json
from extender.core.plugin import Vote
from extender.core.session import Session
from extender.plugins.binpack import binpack_score
from extender.testing.builders import Built, node, podgroup, priority_class, queue, task
from extender.testing.opened import job_row, opened, plugin, state, task_row

# --- drf ------------------------------------------------------------------------------------------------------------------


def running(group: str, count: int, cpu: int = 1) -> list[Json]:
    return [task(f"{group}-r{i}", group).cpu(cpu).on("n") for i in range(count)]


def shared(*tasks: Json) -> Session:
    groups = sorted({t["metadata"]["annotations"]["scheduling.k8s.io/group-name"] for t in tasks})
    return opened(node("n").cpu(10).pods(1000), queue(), *map(podgroup, groups), *tasks, plugins="drf")


def test_the_smallest_dominant_share_goes_first() -> None:
    """The largest share over all resources orders the jobs."""
    ssn = shared(*running("small", 1), *running("large", 4))
    drf = plugin(ssn, "drf")
    assert drf.job_order(ssn, job_row(ssn, "small")) == 0.1
    assert drf.job_order(ssn, job_row(ssn, "large")) == 0.4


def test_drf_preempts_until_shares_meet() -> None:
    """Worked example: 10 cpu; a job with 1 wants 1 more (0.2); a job of four one-cpu pods gives two (0.3, 0.2)."""
    ssn = shared(*running("mine", 1), task("asking", "mine").cpu(1), *running("theirs", 4))
    candidates = [task_row(ssn, f"theirs-r{i}") for i in range(4)]
    chosen = plugin(ssn, "drf").preemptable(ssn, task_row(ssn, "asking"), candidates)
    assert chosen == candidates[:2]


def test_shares_follow_the_session_and_come_back() -> None:
    """What a statement does moves the share; taken back, everything is as before."""
    ssn = shared(*running("a", 1), task("t", "a").cpu(3))
    drf, job = plugin(ssn, "drf"), job_row(ssn, "a")
    before = state(drf)
    with ssn.statement() as stmt:
        stmt.allocate([task_row(ssn, "t")], [ssn.nodes.rows["n"]])
        assert drf.job_order(ssn, job) == 0.4
        stmt.evict(task_row(ssn, "a-r0"), "preempt")
        assert drf.job_order(ssn, job) == 0.3
    assert all((before[name] == now).all() for name, now in state(drf).items())


# --- priority -----------------------------------------------------------------------------------------------------------


def ranked() -> Session:
    return opened(
        priority_class("low", 1), priority_class("high", 9), node("n").cpu(10), queue(),
        podgroup("low").priority("low"), podgroup("high").priority("high"),
        task("low-a", "low").cpu(1).priority(1).on("n"), task("low-b", "low").cpu(1).priority(5).on("n"),
        task("high-a", "high").cpu(1).priority(3).on("n"), task("high-t", "high").cpu(1).priority(4),
        plugins="priority",
    )  # fmt: skip


def test_priority_orders() -> None:
    """The higher goes first, of jobs and of tasks."""
    ssn = ranked()
    assert ssn.job_order(job_row(ssn, "high")) < ssn.job_order(job_row(ssn, "low"))
    assert ssn.task_order(task_row(ssn, "low-b")) < ssn.task_order(task_row(ssn, "low-a"))


PREEMPTS = {
    "jobs of lower priority, and lower tasks of its own": ("high-t", ["low-a", "low-b", "high-a"], ["low-a", "low-b", "high-a"]),
    "nobody of a higher job, lower tasks of its own": ("low-b", ["high-a", "low-a"], ["low-a"]),
    "not itself or its equals": ("low-a", ["low-b"], []),
}


@pytest.mark.parametrize(("name", "candidates", "want"), PREEMPTS.values(), ids=PREEMPTS)
def test_priority_victims(name: str, candidates: list[str], want: list[str]) -> None:
    """Who may be pushed out, and by whom."""
    ssn = ranked()
    chosen = plugin(ssn, "priority").preemptable(ssn, task_row(ssn, name), [task_row(ssn, c) for c in candidates])
    assert [ssn.task_key(row).name for row in chosen] == want


def test_priority_starving() -> None:
    """A job with a task that has no node is starving."""
    ssn = ranked()
    assert plugin(ssn, "priority").job_starving(ssn, job_row(ssn, "high"))
    assert not plugin(ssn, "priority").job_starving(ssn, job_row(ssn, "low"))


# --- sla ------------------------------------------------------------------------------------------------------------------

WAITING = {
    "not yet": ("1h", {}, 3599.0, Vote.ABSTAIN),
    "long enough": ("1h", {}, 3600.0, Vote.PERMIT),
    "nobody set a time": (None, {}, 1e9, Vote.ABSTAIN),
    "its own time": ("1h", {"volcano.sh/sla-waiting-time": "10s"}, 10.0, Vote.PERMIT),
    "its own time in the old spelling": (None, {"sla-waiting-time": "10s"}, 10.0, Vote.PERMIT),
    "one that cannot be read is none": ("1h", {"volcano.sh/sla-waiting-time": "soon"}, 10.0, Vote.ABSTAIN),
    "one below zero is none": ("1h", {"volcano.sh/sla-waiting-time": "-10s"}, 10.0, Vote.ABSTAIN),
}


@pytest.mark.parametrize(("argument", "annotations", "age", "want"), WAITING.values(), ids=WAITING)
def test_sla(argument: str | None, annotations: dict[str, str], age: float, want: Vote) -> None:
    """A job that has waited long enough is let in and keeps the room it is promised."""
    group = podgroup("g").created(1000)
    for key, value in annotations.items():
        group.annotate(key, value)
    arguments = {"sla-waiting-time": argument} if argument else {}
    ssn = opened(queue(), group, plugins=[{"name": "sla", "arguments": arguments}], now=1000 + age)
    sla, job = plugin(ssn, "sla"), job_row(ssn, "g")
    assert sla.job_enqueueable(ssn, job) is want
    assert sla.job_pipelined(ssn, job) is want


def test_sla_order() -> None:
    """The earliest deadline first, jobs without one last."""
    ssn = opened(
        queue(), podgroup("never").created(0), podgroup("late").created(0).annotate("sla-waiting-time", "2h"),
        podgroup("soon").created(60).annotate("sla-waiting-time", "1h"), plugins="sla", now=0,
    )  # fmt: skip
    rows = [job_row(ssn, name) for name in ("never", "late", "soon")]
    assert [ssn.job_key(row).name for row in sorted(rows, key=ssn.job_order)] == ["soon", "late", "never"]


def test_sla_says_what_it_cannot_read() -> None:
    """A wrong argument is reported and ignored."""
    with pytest.raises(ConfError, match=r"sla-waiting-time: must be a duration above zero such as 1h30m, not '1 day'"):
        opened(queue(), plugins=[{"name": "sla", "arguments": {"sla-waiting-time": "1 day"}}])


# --- conformance and pdb --------------------------------------------------------------------------------------------------


def test_conformance_spares_what_the_cluster_needs() -> None:
    """Reserved priority classes and kube-system."""
    ssn = opened(
        node("n").cpu(9), queue(), podgroup("g"), podgroup("g", "kube-system"), task("asking", "g").cpu(1),
        task("plain", "g").cpu(1).on("n"), task("node", "g").cpu(1).priority(0, "system-node-critical").on("n"),
        task("cluster", "g").cpu(1).priority(0, "system-cluster-critical").on("n"),
        task("system", "g", "kube-system").cpu(1).on("n"), plugins="conformance",
    )  # fmt: skip
    rows = [task_row(ssn, name) for name in ("plain", "node", "cluster")] + [task_row(ssn, "system", "kube-system")]
    conformance = plugin(ssn, "conformance")
    assert conformance.preemptable(ssn, task_row(ssn, "asking"), rows) == rows[:1]
    assert conformance.reclaimable(ssn, task_row(ssn, "asking"), rows) == rows[:1]


def budget(name: str, allowed: int, labels: dict[str, str], disrupted: tuple[str, ...] = ()) -> Built:
    made = Built(PDB, name).with_("spec.selector.matchLabels", labels).with_("status.disruptionsAllowed", allowed)
    return made.with_("status.disruptedPods", dict.fromkeys(disrupted, "2025-01-01T00:00:00Z"))


BUDGETS = {
    "as many as are allowed": ([budget("b", 2, {"app": "a"})], ["a0", "a1"]),
    "none allowed": ([budget("b", 0, {"app": "a"})], []),
    "not covered": ([budget("b", 0, {"app": "b"})], ["a0", "a1", "a2"]),
    "every budget must allow": ([budget("b", 2, {"app": "a"}), budget("c", 1, {"app": "a"})], ["a0"]),
    "one that is being disrupted is counted already": ([budget("b", 1, {"app": "a"}, ("a0",))], ["a0", "a1"]),
    "an empty selector covers nothing": ([budget("b", 0, {})], ["a0", "a1", "a2"]),
}


@pytest.mark.parametrize(("budgets", "want"), BUDGETS.values(), ids=BUDGETS)
def test_budgets(budgets: list[Json], want: list[str]) -> None:
    """Candidates in order, each taking one disruption of every budget that covers it; asking twice takes none."""
    tasks = [task(f"a{i}", "g").cpu(1).labels(app="a").on("n") for i in range(3)]
    ssn = opened(node("n").cpu(9), queue(), podgroup("g"), *tasks, *budgets, plugins="pdb")
    rows = [task_row(ssn, f"a{i}") for i in range(3)]
    for _ in range(2):
        assert [ssn.task_key(row).name for row in plugin(ssn, "pdb").preemptable(ssn, rows[0], rows)] == want


def test_pods_without_labels_may_go() -> None:
    """No budget covers them."""
    ssn = opened(node("n").cpu(9), queue(), podgroup("g"), task("bare", "g").on("n"), budget("b", 0, {"app": "a"}), plugins="pdb")
    row = task_row(ssn, "bare")
    assert plugin(ssn, "pdb").reclaimable(ssn, row, [row]) == [row]


# --- binpack ----------------------------------------------------------------------------------------------------------------

SCORES = {
    "worked example": ([1000, 1, 1], [1000, 2, 0], [4000, 8, 110], [5, 1, 0], (0.5 * 5 + 0.375) / 6 * 100),
    "filled to the brim": ([2000, 0, 1], [0, 0, 0], [2000, 8, 110], [1, 1, 0], 100.0),
    "does not fit": ([2001, 0, 1], [0, 0, 0], [2000, 8, 110], [1, 1, 0], 0.0),
    "does not fit in something without weight": ([1000, 9, 1], [0, 0, 0], [2000, 8, 110], [1, 0, 0], 50.0),
    "a node without the resource": ([1000, 4, 1], [0, 0, 0], [0, 8, 110], [1, 1, 0], 25.0),
    "nothing asked that has a weight": ([0, 0, 1], [0, 0, 0], [2000, 8, 110], [1, 1, 0], 0.0),
}


@pytest.mark.parametrize(("request_", "used", "allocatable", "weights", "want"), SCORES.values(), ids=SCORES)
def test_binpack(request_: list[int], used: list[int], allocatable: list[int], weights: list[int], want: float) -> None:
    """The score is how full the task leaves the node."""
    score = binpack_score(np.array(request_), np.array([used]), np.array([allocatable]), np.array(weights, dtype=float))
    assert score[0] == pytest.approx(want)


def test_binpack_arguments() -> None:
    """The weights of scheduler.conf; a negative one is reported and is 1."""
    arguments = {
        "binpack.weight": 10, "binpack.cpu": 5, "binpack.resources": "nvidia.com/gpu, ", "binpack.resources.nvidia.com/gpu": 7,
    }  # fmt: skip
    ssn = opened(node("n").gpu(1), queue(), plugins=[{"name": "binpack", "arguments": arguments}])
    binpack = plugin(ssn, "binpack")
    assert binpack.args.weight == 10
    assert dict(binpack.args.resources) == {"cpu": 5, "memory": 1, "nvidia.com/gpu": 7}
    assert binpack.weights.tolist() == [5, 1, 0, 7]
    with pytest.raises(ConfError, match=r"binpack.cpu: must not be negative, not -2"):
        opened(queue(), plugins=[{"name": "binpack", "arguments": {"binpack.cpu": -2}}])
