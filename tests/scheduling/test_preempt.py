"""preempt: who makes room for whom within a queue, and that nobody leaves in vain."""

from __future__ import annotations

import pytest

from extender.actions import ACTIONS
from extender.api import meta
from extender.api.meta import Json
from extender.api.operations import Bind, Evict
from extender.core import conf
from extender.core.axis import IntR
from extender.core.mirror import Mirror
from extender.core.plugin import At, Change, NoArgs, Plugin, Refusal, TaskClass
from extender.core.scheduling import Result, schedule
from extender.core.session import Session
from extender.core.snapshot import Snapshot
from extender.plugins import PLUGINS
from extender.testing.builders import GroupBuilder, PodBuilder, node, pod, podgroup, priority_class, queue, task

LOW, MIDDLE, HIGH = 10, 50, 100
CLASSES = [priority_class("low", LOW), priority_class("middle", MIDDLE), priority_class("high", HIGH)]
VALUES = {"low": LOW, "middle": MIDDLE, "high": HIGH}


class Limit(Plugin[NoArgs]):
    """A queue takes at most three cpus."""

    name = "limit"

    def open(self, ssn: Session) -> None:
        self.used = {row: int(ssn.job_allocated[ssn.jobs.queue == row, 0].sum()) for row in range(len(ssn.queues))}

    def allocatable(self, ssn: Session, queue: int, request: IntR, count: int) -> int:
        del ssn
        return min(count, int((3000 - self.used[queue]) // request[0]))

    def allocated(self, ssn: Session, change: Change) -> None:
        del ssn
        self.used[change.queue] += int(change.total[0])

    def deallocated(self, ssn: Session, change: Change) -> None:
        del ssn
        self.used[change.queue] -= int(change.total[0])


class Neighbours(Plugin[NoArgs]):
    """A node refuses as long as a task of the group "noisy" is on it; node "broken" refuses for good."""

    name = "neighbours"

    def predicate(self, ssn: Session, cls: TaskClass, at: At) -> list[Refusal]:
        del cls
        noisy, broken = at.rows < 0, at.rows < 0
        for place, row in enumerate(at.rows):
            tenants = [t for t in ssn.nodes.tasks[row] if ssn.task_node[t] == row and ssn.task_status[t] != 6]
            noisy[place] = any(ssn.task_key(t).name.startswith("noisy") for t in tenants)
            broken[place] = ssn.nodes.name[row] == "broken"
        return [Refusal("noisy", noisy, plugin=self.name), Refusal("broken", broken, unresolvable=True, plugin=self.name)]


AWARE = "enableTopologyAwarePreemption: true, minCandidateNodesAbsolute: 10"
WITH_TEST_PLUGINS: dict[str, conf.Source] = {**PLUGINS, "limit": Limit, "neighbours": Neighbours}


def decide(*objects: Json, action: str = "preempt", plugins: str = "priority gang conformance", arguments: str = "") -> Result:
    """One session of the action over the objects; each tier of `plugins` is separated by a bar."""
    tiers = "\n".join(
        "- plugins: [" + ", ".join(f"{{name: {name}}}" for name in tier.split()) + "]" for tier in plugins.split("|")
    )
    text = f"actions: '{action}'\ntiers:\n{tiers}\nconfigurations: [{{name: preempt, arguments: {{{arguments}}}}}]"
    mirror = Mirror()
    for obj in [queue(), *CLASSES, *objects]:
        mirror.apply(meta.kind_of(obj), "ADDED", obj)
    return schedule(Snapshot.build(mirror), conf.load(text, WITH_TEST_PLUGINS, ACTIONS), now=1_800_000_000.0)


def evicted(result: Result) -> list[str]:
    """In the order of eviction."""
    return [operation.pod.name for operation in result.operations if isinstance(operation, Evict)]


def bound(result: Result) -> dict[str, str]:
    return {operation.pod.name: operation.node for operation in result.operations if isinstance(operation, Bind)}


def promised(result: Result) -> dict[str, str]:
    """Task -> node, of tasks that were promised room."""
    ssn = result.session
    return {key.name: ssn.nodes.name[ssn.task_node[row]] for key, row in ssn.tasks.rows.items() if ssn.task_status[row] == 2}


def group(name: str, class_name: str, least: int = 1) -> GroupBuilder:
    return podgroup(name).priority(class_name).members(least)


def member(name: str, of: str, class_name: str, cpu: int = 1) -> PodBuilder:
    return task(name, of).cpu(cpu).priority(VALUES[class_name])


def job(name: str, class_name: str, *nodes: str, least: int = 1, cpu: int = 1) -> list[Json]:
    """A job with a task on each node; the node "" stands for a pending one."""
    members = [member(f"{name}-{i}", name, class_name, cpu) for i in range(len(nodes))]
    placed = [made.on(on) if on else made for made, on in zip(members, nodes, strict=True)]
    return [group(name, class_name, least), *placed]


# --- what is told -------------------------------------------------------------------------------------------------------

_LOW = job("low", "low", "n1", "n1", least=2)
STAYS = {
    "a gang at its minimum": (_LOW, job("high", "high", ""), "nobody may leave: their gangs need them (minAvailable)"),
    "nobody of lower priority": (job("a", "high", "n1", "n1", least=0), job("high", "high", ""),
                                 "nobody may leave: none is of lower priority"),
    "too few beyond the minimum": (job("low", "low", "n1", "n1", least=1), job("high", "high", "", cpu=2),
                                   "too few may leave, of the others their gangs need them (minAvailable)"),
    "nobody at all": ([pod("x").cpu(2).on("n1")], job("high", "high", ""), "there is nobody to evict"),
}  # fmt: skip


@pytest.mark.parametrize(("tenants", "wanting", "why"), STAYS.values(), ids=STAYS)
def test_it_is_told_why_nobody_leaves(tenants: list[Json], wanting: list[Json], why: str) -> None:
    """A job that could evict somebody, and does not."""
    (waits,) = decide(node("n1").cpu(2), *tenants, *wanting).waiting
    assert waits.message == f"0/1 nodes are unavailable: 1 Insufficient cpu. preempt: {why}."


# --- who leaves ---------------------------------------------------------------------------------------------------------


def test_the_least_important_job_leaves() -> None:
    tenants = [*job("middle", "middle", "n1", least=0), *job("low", "low", "n1", least=0)]
    result = decide(node("n1").cpu(2), *tenants, *job("high", "high", ""))
    assert evicted(result) == ["low-0"]


def test_within_a_job_the_least_important_task_leaves() -> None:
    tasks = [member("low-0", "low", "low").on("n1"), member("low-1", "low", "low").priority(1).on("n1")]
    result = decide(node("n1").cpu(2), group("low", "low", 0), *tasks, *job("high", "high", ""))
    assert evicted(result) == ["low-1"]


def test_equal_nodes_are_told_apart_by_who_would_leave() -> None:
    tenants = [*job("middle", "middle", "n1", least=0), *job("low", "low", "n2", least=0)]
    result = decide(node("n1").cpu(1), node("n2").cpu(1), *tenants, *job("high", "high", ""))
    assert evicted(result) == ["low-0"]


def test_equals_leave_each_other_alone() -> None:
    result = decide(node("n1").cpu(1), *job("a", "low", "n1", least=0), *job("b", "low", ""))
    assert evicted(result) == []


def test_a_task_of_another_queue_stays() -> None:
    other = [podgroup("o").members(0).queue("other").priority("low"), member("o-0", "o", "low").on("n1")]
    result = decide(queue("other"), node("n1").cpu(1), *other, *job("high", "high", ""))
    assert evicted(result) == []


def test_a_task_that_says_so_stays() -> None:
    keep = member("low-0", "low", "low").on("n1").preemptable(False)
    result = decide(node("n1").cpu(1), group("low", "low", 0), keep, *job("high", "high", ""))
    assert evicted(result) == []


def test_inside_a_job_more_important_tasks_displace_less_important_ones() -> None:
    tasks = [task("g-0", "g").cpu(1).priority(1).on("n1"), task("g-1", "g").cpu(1).priority(9)]
    result = decide(node("n1").cpu(1), podgroup("g").members(0), *tasks, plugins="priority conformance")
    assert evicted(result) == ["g-0"]


@pytest.mark.parametrize(("policy", "want"), [("Never", []), ("PreemptLowerPriority", ["a-0"])])
def test_inside_a_job_nobody_displaces_anybody_past_one_that_may_not(policy: str, want: list[str]) -> None:
    """a-1 comes before a-2, for whom a-0 would leave too."""
    first = member("a-1", "a", "high").with_("spec.preemptionPolicy", policy)
    world = [node("n1").cpu(1), group("a", "low", 2), member("a-0", "a", "low").on("n1"), first, member("a-2", "a", "middle")]
    assert evicted(decide(*world, plugins="priority conformance")) == want


def test_inside_a_job_equals_leave_each_other_alone_whatever_the_plugins_say() -> None:
    tasks = [task("g-0", "g").cpu(1).on("n1"), task("g-1", "g").cpu(1)]
    result = decide(node("n1").cpu(1), podgroup("g").members(1), *tasks, plugins="priority|conformance", arguments="")
    assert evicted(result) == []


# --- gangs --------------------------------------------------------------------------------------------------------------


def test_the_floor_of_a_gang_counts_all_its_victims() -> None:
    """Each victim of a group counts against its minimum, on whatever node it is: one may go, two may not."""
    nodes = [node(f"n{i}").cpu(1) for i in range(5)]
    base = job("base", "low", *(f"n{i}" for i in range(5)), least=4)
    result = decide(*nodes, *base, *job("urgent", "high", "", "", least=2))
    assert evicted(result) == []


def test_a_gang_gets_room_for_all_or_nothing_is_evicted() -> None:
    result = decide(node("n1").cpu(2), *job("low", "low", "n1", "n1", least=0), *job("urgent", "high", "", "", "", least=3))
    assert (evicted(result), promised(result)) == ([], {})


def test_a_gang_uses_free_room_before_it_evicts() -> None:
    nodes = [node("n1").cpu(1), node("n2").cpu(1), node("n3").cpu(1)]
    objects = [*nodes, *job("low", "low", "n1", "n2", least=0), *job("urgent", "high", "", "", least=2)]
    result = decide(*objects, action="preempt, allocate")
    assert len(evicted(result)) == 1
    assert "n3" in promised(result).values()


def test_a_job_stops_evicting_once_it_has_its_minimum() -> None:
    result = decide(node("n1").cpu(3), *job("low", "low", "n1", "n1", "n1", least=0), *job("high", "high", "", "", least=1))
    assert len(evicted(result)) == 1


# --- no more than needed ------------------------------------------------------------------------------------------------


def test_what_is_free_already_counts() -> None:
    result = decide(node("n1").cpu(10), *job("low", "low", *["n1"] * 4, least=0, cpu=2), *job("high", "high", "", cpu=3))
    assert len(evicted(result)) == 1


def test_what_is_being_released_already_counts() -> None:
    leaving = [group("gone", "low", 0), member("gone-0", "gone", "low").on("n1").leaving()]
    result = decide(node("n1").cpu(2), *leaving, *job("low", "low", "n1", least=0), *job("high", "high", ""))
    assert (evicted(result), promised(result)) == ([], {"high-0": "n1"})


@pytest.mark.parametrize(("aware", "want"), [("true", ["middle-0"]), ("false", ["low-0", "middle-0"])])
def test_who_turns_out_needless_is_spared_where_nodes_are_compared(aware: str, want: list[str]) -> None:
    """The small task is asked first, but the large one has to leave anyway and is enough."""
    tenants = [*job("low", "low", "n1", least=0), *job("middle", "middle", "n1", least=0, cpu=3)]
    arguments = f"enableTopologyAwarePreemption: {aware}"
    result = decide(node("n1").cpu(4), *tenants, *job("high", "high", "", cpu=3), arguments=arguments)
    assert evicted(result) == want


def test_nobody_leaves_where_all_together_are_not_enough() -> None:
    result = decide(node("n1").cpu(4), *job("low", "low", "n1", "n1", least=0), *job("high", "high", "", cpu=5))
    assert evicted(result) == []


@pytest.mark.parametrize(("port", "want"), [(80, {}), (81, {"small-0": "n1"})])
def test_who_was_tried_and_stays_is_still_there(port: int, want: dict[str, str]) -> None:
    """Its leaving is not enough for a gang of two, so it stays and keeps its port from those that backfill places."""

    def at(port: int, cpu: int) -> list[Json]:
        return [{"name": "c", "resources": {"requests": {"cpu": cpu}}, "ports": [{"containerPort": 80, "hostPort": port}]}]

    low = [group("low", "low", 0), member("low-0", "low", "low").with_("spec.containers", at(80, 1)).on("n1")]
    small = [group("small", "low"), task("small-0", "small").with_("spec.containers", at(port, 0))]
    objects = [node("n1").cpu(1), *low, *job("high", "high", "", "", least=2), *small]
    result = decide(*objects, action="preempt, backfill", plugins="priority gang conformance | predicates")
    assert (evicted(result), bound(result)) == ([], want)


@pytest.mark.parametrize(("least", "want"), [(2, "n2"), (3, "n1")], ids=["tried", "hopeless from the start"])
def test_scores_count_a_node_without_whom_it_was_tried_to_displace(least: int, want: str) -> None:
    """low-0 had left for the first of the gang, which lacked a second node, and came back: its node still looks emptier."""
    tenants = [*job("keep", "high", "n1"), *job("low", "low", "n2", least=0)]
    gang = [group("big", "middle", least), *(member(f"big-{i}", "big", "middle", cpu=2) for i in range(2))]
    small = [group("small", "low"), task("small-0", "small")]
    nodes = [node("n1").cpu(2).memory("8Gi"), node("n2").cpu(2).memory("8Gi")]
    result = decide(*nodes, *tenants, *gang, *small, action="preempt, backfill", plugins="priority gang | predicates nodeorder")
    assert (evicted(result), bound(result)) == ([], {"small-0": want})


def test_free_room_is_left_to_allocate_where_it_comes_later() -> None:
    """A promise would keep the task from being bound, in this session and in each that follows."""
    result = decide(node("n1").cpu(2), *job("low", "low", "n1", least=0), *job("high", "high", ""), action="preempt, allocate")
    assert bound(result) == {"high-0": "n1"}


# --- queues, checks -------------------------------------------------------------------------------------------------------


def test_a_queue_at_its_limit_makes_room_in_itself_on_an_idle_node() -> None:
    low = job("low", "low", "n1", "n1", "n1")
    result = decide(node("n1").cpu(6), *low, *job("high", "high", ""), plugins="priority conformance limit")
    assert (len(evicted(result)), promised(result)) == (1, {"high-0": "n1"})


def test_evicting_cures_what_the_neighbour_causes() -> None:
    noisy = job("noisy", "low", "n1", least=0)
    quiet = job("low", "low", "n1", least=0)
    result = decide(node("n1").cpu(9), *noisy, *quiet, *job("high", "high", ""), plugins="priority gang neighbours")
    assert evicted(result) == ["noisy-0"]


def test_nobody_leaves_a_node_that_refuses_for_good() -> None:
    low = job("low", "low", "broken", least=0)
    result = decide(node("broken").cpu(1), *low, *job("high", "high", ""), plugins="priority gang neighbours")
    assert evicted(result) == []


def test_a_foreign_neighbour_that_cannot_be_asked_keeps_the_others_safe() -> None:
    noisy = task("noisy-0", "").cpu(1).scheduler("default-scheduler").on("n1")
    low = job("low", "low", "n1", least=0)
    result = decide(node("n1").cpu(2), noisy, *low, *job("high", "high", ""), plugins="priority gang neighbours")
    assert evicted(result) == []


ONE_CPU = {"requests": {"cpu": "1"}}
PORT = {"containers": [{"name": "main", "resources": ONE_CPU, "ports": [{"hostPort": 80, "containerPort": 80}]}]}
NEAR_X = {
    "requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}
    ]
}
IN_THE_WAY = {
    "a port that both want": (PORT, PORT),
    "a neighbour to keep away from": ({}, {"affinity": {"podAntiAffinity": NEAR_X}}),
}


def beside_x(spec: Json, wanting: Json, cpu: int) -> Result:
    """`low-0` with label app=x and `spec` runs beside `low-1` on one node; `high-0` wants to run."""
    low = member("low-0", "low", "low").on("n1").labels(app="x")
    low["spec"].update(spec)
    high = member("high-0", "high", "high")
    high["spec"].update(wanting)
    others = [group("low", "low", 0), member("low-1", "low", "low").on("n1"), group("high", "high")]
    return decide(node("n1").cpu(cpu), low, *others, high, plugins="priority gang predicates", arguments=AWARE)


@pytest.mark.parametrize(("theirs", "mine"), IN_THE_WAY.values(), ids=IN_THE_WAY)
def test_only_who_is_in_the_way_leaves(theirs: Json, mine: Json) -> None:
    """The node has room enough; a check of Kubernetes refuses it for the sake of one of two tenants."""
    assert evicted(beside_x(theirs, mine, cpu=9)) == ["low-0"]


def test_a_neighbour_that_the_task_needs_stays() -> None:
    assert evicted(beside_x({}, {"affinity": {"podAffinity": NEAR_X}}, cpu=2)) == ["low-1"]


def test_nobody_leaves_a_node_with_a_taint() -> None:
    low = job("low", "low", "n1", least=0)
    result = decide(node("n1").cpu(1).taint("dedicated", "x"), *low, *job("high", "high", ""), plugins="priority gang predicates")
    assert evicted(result) == []


# --- who may preempt ----------------------------------------------------------------------------------------------------


def test_preemption_policy_never() -> None:
    never = member("high-0", "high", "high").with_("spec.preemptionPolicy", "Never")
    result = decide(node("n1").cpu(1), *job("low", "low", "n1", least=0), group("high", "high"), never)
    assert evicted(result) == []


def test_a_gated_task_does_not_preempt() -> None:
    gated = member("high-0", "high", "high").gated()
    result = decide(node("n1").cpu(1), *job("low", "low", "n1", least=0), group("high", "high"), gated)
    assert evicted(result) == []


def test_a_job_that_is_not_admitted_does_not_preempt() -> None:
    high = [group("high", "high").phase("Pending"), member("high-0", "high", "high")]
    assert evicted(decide(node("n1").cpu(1), *job("low", "low", "n1", least=0), *high)) == []


@pytest.mark.parametrize("action", ["preempt", "preempt, backfill"])
def test_a_task_that_asks_nothing_takes_only_the_place_of_its_like(action: str) -> None:
    tenants = [group("low", "low", 0), task("low-0", "low").on("n1"), task("low-1", "low").cpu(1).on("n1")]
    high = [group("high", "high"), task("high-0", "high")]
    result = decide(node("n1").cpu(1).pods(2), *tenants, *high, action=action)
    assert (evicted(result), promised(result)) == (["low-0"], {"high-0": "n1"})


def test_a_task_that_asks_nothing_is_left_to_backfill_where_there_is_a_place() -> None:
    result = decide(node("n1").cpu(1), group("high", "high"), task("high-0", "high"), action="preempt, backfill")
    assert (evicted(result), bound(result)) == ([], {"high-0": "n1"})


def test_free_room_is_promised_where_nobody_places_later() -> None:
    """allocate had its turn, and something kept it from placing the task; what comes after preempt must leave it the room."""
    small = [group("small", "low"), task("small-0", "small")]
    result = decide(node("n1").cpu(1), *job("high", "high", ""), *small, action="preempt")
    assert promised(result) == {"high-0": "n1", "small-0": "n1"}


@pytest.mark.parametrize(("arguments", "want"), [("", 0), ("predicateErrorCacheEnable: false", 1)])
def test_a_node_that_refuses_one_task_of_a_role_refuses_all_of_them(arguments: str, want: int) -> None:
    """The second is refused by the only node with room left for it; after that the first is not promised it either."""
    first = member("high-0", "high", "high").role("worker").tolerate("dedicated")
    second = member("high-1", "high", "high").role("worker")
    objects = [node("n1").cpu(2).taint("dedicated"), group("high", "high", 2), first, second]
    result = decide(*objects, plugins="priority gang predicates", arguments=arguments)
    assert len(promised(result)) == want


def test_what_refused_a_member_that_is_placed_refuses_the_others_of_its_role() -> None:
    """allocate gives the first its node, so that the second is the one that fails: the tainted node does not count for it."""
    first = member("high-0", "high", "high").role("worker")
    second = member("high-1", "high", "high").role("worker").tolerate("dedicated")
    nodes = [node("n1").cpu(1), node("n2").cpu(1).taint("dedicated")]
    objects = [*nodes, group("high", "high", 2), first, second]
    result = decide(*objects, action="allocate, preempt", plugins="priority gang predicates")
    ssn = result.session
    why = {ssn.task_key(task).name: str(errors) for task, errors in ssn.fit_errors.items()}
    assert promised(result) == {"high-0": "n1"}
    assert why["high-1"] == "0/2 nodes are unavailable: 1 Insufficient cpu, 1 node(s) refused another task of the role."


@pytest.mark.parametrize(("size", "want"), [(2, {"high-0": "n1"}), (3, {})])
def test_members_that_allocate_did_not_come_to_may_ask_all_nodes(size: int, want: dict[str, str]) -> None:
    """allocate stops at the second, which the node refuses. The third asks the node anew, and then it refuses the whole role."""
    first = member("high-0", "high", "high").role("worker").tolerate("dedicated")
    others = [member(f"high-{i}", "high", "high").role("worker") for i in range(1, size)]
    objects = [node("n1").cpu(size).taint("dedicated"), group("high", "high", size), first, *others]
    assert promised(decide(*objects, action="allocate, preempt", plugins="priority gang predicates")) == want


def nominee(on: str) -> list[Json]:
    return [group("high", "high"), member("high-0", "high", "high").with_("status.nominatedNodeName", on)]


def victim_on_its_way(cpu: int) -> list[Json]:
    conditions = [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]
    leaving = member("gone-0", "gone", "low", cpu).on("n1").leaving().with_("status.conditions", conditions)
    return [group("gone", "low", 0), leaving]


def test_a_task_whose_victim_is_still_leaving_waits() -> None:
    """The node does not take it yet for the noise of its neighbour, and nobody else need go meanwhile."""
    nodes = [node("n1").cpu(4), node("n2").cpu(1)]
    tenants = [*job("low", "low", "n2", least=0), *job("noisy", "high", "n1")]
    objects = [*nodes, *tenants, *victim_on_its_way(1), *nominee("n1")]
    assert evicted(decide(*objects, plugins="priority gang neighbours")) == []


@pytest.mark.parametrize("nominated", ["gone", "n1"])
def test_a_promise_that_is_void_binds_nobody(nominated: str) -> None:
    """The node went away, or somebody else has the room: the task looks again."""
    result = decide(node("n1").cpu(1), *job("low", "low", "n1", least=0), *nominee(nominated))
    assert evicted(result) == ["low-0"]


# --- comparing nodes ----------------------------------------------------------------------------------------------------


def test_topology_aware_takes_the_node_whose_worst_loss_is_least() -> None:
    tenants = [*job("middle", "middle", "n1", least=0), *job("low", "low", "n2", "n2", least=0)]
    nodes = [node("n1").cpu(2), node("n2").cpu(2)]
    result = decide(*nodes, *tenants, *job("high", "high", "", cpu=2), arguments=AWARE)
    assert evicted(result) == ["low-1", "low-0"]


def test_topology_aware_takes_fewer_victims_of_the_same_worth() -> None:
    tenants = [*job("low", "low", "n1", "n1", least=0), *job("also", "low", "n2", least=0, cpu=2)]
    nodes = [node("n1").cpu(2), node("n2").cpu(2)]
    result = decide(*nodes, *tenants, *job("high", "high", "", cpu=2), arguments=AWARE)
    assert evicted(result) == ["also-0"]


def test_topology_aware_takes_the_victim_that_started_last() -> None:
    def started(name: str, on: str, when: str) -> Json:
        return member(name, "low", "low").on(on).with_("status.startTime", when)

    tenants = [started("low-0", "n1", "2026-01-01T00:00:00Z"), started("low-1", "n2", "2026-01-02T00:00:00Z")]
    nodes = [node("n1").cpu(1), node("n2").cpu(1)]
    result = decide(*nodes, group("low", "low", 0), *tenants, *job("high", "high", ""), arguments=AWARE)
    assert evicted(result) == ["low-1"]


# --- what is left for later -----------------------------------------------------------------------------------------------


def test_the_session_knows_who_left_for_whom() -> None:
    ssn = decide(node("n1").cpu(1), *job("low", "low", "n1", least=0), *job("high", "high", "")).session
    assert {ssn.task_key(v).name: ssn.task_key(t).name for v, t in ssn.evicted_for.items()} == {"low-0": "high-0"}


def test_what_was_undone_is_not_remembered() -> None:
    ssn = decide(node("n1").cpu(1), *job("low", "low", "n1", least=0), *job("high", "high", "", "", least=2)).session
    assert (ssn.evicted_for, ssn.promised_by_eviction) == ({}, set())
