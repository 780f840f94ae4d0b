"""reclaim: queues that have less than their share take back what others hold beyond theirs."""

from __future__ import annotations

import pytest

from extender.actions import ACTIONS
from extender.api import meta
from extender.api.meta import Json
from extender.api.operations import Bind, Evict
from extender.core import conf
from extender.core import status as st
from extender.core.mirror import Mirror
from extender.core.scheduling import Result, schedule
from extender.core.snapshot import Snapshot
from extender.plugins import PLUGINS
from extender.testing.builders import node, podgroup, priority_class, queue, task

CONF = """
actions: {actions}
tiers:
- plugins: [{{name: priority}}, {{name: gang}}, {{name: conformance}}, {{name: proportion}}]
"""


def decide(*objects: Json, actions: str = "reclaim") -> Result:
    mirror = Mirror()
    for obj in [priority_class("low", 10), priority_class("high", 100), *objects]:
        mirror.apply(meta.kind_of(obj), "ADDED", obj)
    loaded = conf.load(CONF.format(actions=actions), PLUGINS, ACTIONS)
    return schedule(Snapshot.build(mirror), loaded, now=1_800_000_000.0)


def evicted(result: Result) -> list[str]:
    return [operation.pod.name for operation in result.operations if isinstance(operation, Evict)]


def bound(result: Result) -> dict[str, str]:
    return {operation.pod.name: operation.node for operation in result.operations if isinstance(operation, Bind)}


def promised(result: Result) -> list[str]:
    ssn = result.session
    return sorted(key.name for key, row in ssn.tasks.rows.items() if ssn.task_status[row] == st.PIPELINED)


def job(name: str, of: str, *nodes: str, least: int = 0, cpu: int = 1, class_name: str = "low") -> list[Json]:
    """A job of queue `of` with a task on each node; the node "" stands for a pending one."""
    members = [task(f"{name}-{i}", name).cpu(cpu) for i in range(len(nodes))]
    placed = [made.on(on) if on else made for made, on in zip(members, nodes, strict=True)]
    return [podgroup(name).queue(of).members(least).priority(class_name), *placed]


TWO_QUEUES = [queue("mine"), queue("theirs")]


def test_a_queue_below_its_share_takes_from_one_above() -> None:
    result = decide(*TWO_QUEUES, node("n1").cpu(4), *job("a", "theirs", *["n1"] * 4), *job("b", "mine", "", least=1))
    assert (len(evicted(result)), promised(result)) == (1, ["b-0"])


def test_it_takes_no_more_than_its_share() -> None:
    """Two of four cpus are its own; the third job finds the queue at its share."""
    wanting = [obj for i in range(4) for obj in job(f"b{i}", "mine", "", least=1)]
    result = decide(*TWO_QUEUES, node("n1").cpu(4), *job("a", "theirs", *["n1"] * 4), *wanting)
    assert len(evicted(result)) == 2


def test_queues_reclaim_in_turn() -> None:
    """Two queues below their share each get one place, rather than the first one two."""
    queues = [queue("a"), queue("b"), queue("theirs")]
    wanting = [*job("a0", "a", "", least=1), *job("a1", "a", "", least=1), *job("b0", "b", "", least=1)]
    running = [*job("r", "theirs", *["n1"] * 4)]
    result = decide(*queues, node("n1").cpu(4), *running, *wanting)
    assert {"a0-0", "b0-0"} <= set(promised(result))


def test_a_queue_that_does_not_lend_keeps_its_tasks() -> None:
    queues = [queue("mine"), queue("theirs").reclaimable(False)]
    result = decide(*queues, node("n1").cpu(4), *job("a", "theirs", *["n1"] * 4), *job("b", "mine", "", least=1))
    assert evicted(result) == []


def test_what_is_free_already_counts() -> None:
    """Two of ten cpus are idle and three are wanted: one task of two cpus covers it."""
    wanting = job("b", "mine", "", least=1, cpu=3)
    result = decide(*TWO_QUEUES, node("n1").cpu(10), *job("a", "theirs", *["n1"] * 4, cpu=2), *wanting)
    assert len(evicted(result)) == 1


def test_nobody_leaves_while_there_is_free_room_elsewhere() -> None:
    """The task is not promised it either: allocate binds it there at once."""
    nodes = [node("n1").cpu(4), node("n2").cpu(1)]
    world = [*TWO_QUEUES, *nodes, *job("a", "theirs", *["n1"] * 4), *job("b", "mine", "", least=1)]
    result = decide(*world, actions='"reclaim, allocate"')
    assert (evicted(result), bound(result)) == ([], {"b-0": "n2"})


def test_a_task_that_asks_nothing_counts_as_placed() -> None:
    """The gang of two has its place for the one and what is free for the other: nothing need be reclaimed."""
    wanting = [podgroup("b").queue("mine").members(2), task("b-0", "b"), *(task(f"b-{i}", "b").cpu(1) for i in (1, 2))]
    world = [*TWO_QUEUES, node("n1").cpu(5), *job("a", "theirs", *["n1"] * 4), *wanting]
    assert evicted(decide(*world, actions='"allocate, reclaim, backfill"')) == []


@pytest.mark.parametrize(("name", "want"), {"b-0": [], "b-9": ["a-0"]}.items())
def test_a_task_that_asks_nothing_waits_for_its_turn(name: str, want: list[str]) -> None:
    """The gang of two has room for one member: whoever comes before the one that asks nothing looks for victims first."""
    wanting = [podgroup("b").queue("mine").members(2), *(task(f"b-{i}", "b").cpu(1) for i in (1, 2)), task(name, "b")]
    world = [*TWO_QUEUES, node("n1").cpu(5), *job("a", "theirs", *["n1"] * 4), *wanting]
    assert evicted(decide(*world, actions='"allocate, reclaim, backfill"')) == want


def test_what_preempt_promised_to_tasks_that_ask_nothing_counts_in_reclaim() -> None:
    """Once l-0 leaves for b-1 the gang of three is whole with b-0 and b-3, though b-2 comes before b-3; backfill lets go of both
    promises, and b-1 waits for its room."""
    asks = {"b-0": 0, "b-1": 1, "b-2": 1, "b-3": 0}
    members = [task(name, "b").cpu(cpu) if cpu else task(name, "b") for name, cpu in asks.items()]
    wanting = [podgroup("b").queue("mine").members(3).priority("high"), *members]
    world = [*TWO_QUEUES, node("n1").cpu(4), *job("a", "theirs", *["n1"] * 3), *job("l", "mine", "n1"), *wanting]
    result = decide(*world, actions='"preempt, reclaim, backfill"')
    assert (evicted(result), promised(result)) == (["l-0"], ["b-1"])


def test_a_gang_gets_its_minimum_or_nobody_leaves() -> None:
    result = decide(*TWO_QUEUES, node("n1").cpu(4), *job("a", "theirs", *["n1"] * 4), *job("b", "mine", *[""] * 3, least=3))
    assert (evicted(result), promised(result)) == ([], [])


def test_a_gang_that_lends_keeps_its_minimum() -> None:
    lending = job("a", "theirs", *["n1"] * 4, least=3)
    result = decide(*TWO_QUEUES, node("n1").cpu(4), *lending, *job("b", "mine", "", "", least=2))
    assert evicted(result) == []


def test_a_task_that_does_not_run_yet_stays() -> None:
    bound = [task(f"a-{i}", "a").cpu(1).on("n1", "Pending") for i in range(4)]
    lending = [podgroup("a").queue("theirs").members(0), *bound]
    assert evicted(decide(*TWO_QUEUES, node("n1").cpu(4), *lending, *job("b", "mine", "", least=1))) == []


def test_preemption_policy_never() -> None:
    never = task("b-0", "b").cpu(1).with_("spec.preemptionPolicy", "Never")
    wanting = [podgroup("b").queue("mine").members(1), never]
    assert evicted(decide(*TWO_QUEUES, node("n1").cpu(4), *job("a", "theirs", *["n1"] * 4), *wanting)) == []


def test_the_queue_that_matters_least_gives_first() -> None:
    queues = [queue("mine"), queue("first").with_("spec.priority", 5), queue("last").with_("spec.priority", 1)]
    lending = [*job("a", "first", "n1", "n1", "n1"), *job("z", "last", "n1", "n1", "n1")]
    result = decide(*queues, node("n1").cpu(6), *lending, *job("b", "mine", "", least=1))
    assert [name[0] for name in evicted(result)] == ["z"]


def test_the_least_important_job_of_a_queue_gives_first() -> None:
    lending = [*job("a", "theirs", "n1", "n1", class_name="high"), *job("z", "theirs", "n1", "n1", class_name="low")]
    assert [name[0] for name in evicted(decide(*TWO_QUEUES, node("n1").cpu(4), *lending, *job("b", "mine", "", least=1)))] == [
        "z"
    ]


def test_nodes_are_tried_in_their_order() -> None:
    """As in the reference, nodes are not scored here: whoever has to leave the first of them leaves."""
    lending = [*job("a", "theirs", "n1", "n1", class_name="high"), *job("z", "theirs", "n2", "n2", class_name="low")]
    nodes = [node("n1").cpu(2), node("n2").cpu(2)]
    assert [name[0] for name in evicted(decide(*TWO_QUEUES, *nodes, *lending, *job("b", "mine", "", least=1)))] == ["a"]


@pytest.mark.parametrize(("tenant", "want"), [([], []), (["n3"], ["b-0", "b-1"])], ids=["nobody", "somebody"])
def test_free_room_counts_only_beside_somebody_who_could_be_asked(tenant: list[str], want: list[str]) -> None:
    """What is free was offered to the job by allocate: n3 counts for reclaim as far as others hold room there."""
    queues = [queue("mine"), queue("theirs").capability(cpu=1)]
    mine = [podgroup("b").queue("mine").members(2), task("b-0", "b").cpu(1), task("b-1", "b").cpu(2)]
    world = [*queues, node("n1").cpu(2), node("n3").cpu(3), *job("a", "theirs", "n1", "n1", *tenant), *mine]
    assert promised(decide(*world)) == want


def test_two_queues_at_their_shares_rest() -> None:
    """What one took back is not taken from it again."""
    world = [*job("a", "theirs", *["n1"] * 2), *job("b", "mine", *["n1"] * 2)]
    wanting = [*job("c", "theirs", "", least=1), *job("d", "mine", "", least=1)]
    assert evicted(decide(*TWO_QUEUES, node("n1").cpu(4), *world, *wanting)) == []
