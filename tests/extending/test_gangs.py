"""Gangs through the four verbs: planned whole, kept, started whole, given back."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from extender.api.meta import PDB, POD_GROUP
from extender.api.operations import Operation, Patch, PatchStatus
from extender.api.pod import Pod
from extender.api.views import view
from extender.testing.builders import Built, PodBuilder, node, pod, podgroup, queue
from extender.testing.storage import claim, classes, mounts, volume
from extender.verbs.answering import NotSeenYet, Turn
from extender.verbs.survey import Survey
from extender.verbs.wire import AskedToPreempt, Victims
from tests.extending.world import PREEMPTING, World, gang, machines, member


def test_a_gang_is_planned_when_its_first_member_comes() -> None:
    """The others find the node that was kept for them."""
    world = World(*machines(2), *gang("g", 8))
    assert sorted(world.place(*(f"g-{i}" for i in range(8)))) == ["n0"] * 4 + ["n1"] * 4


def test_nothing_is_said_of_other_nodes_where_one_is_left() -> None:
    """kube-scheduler would read thousands of reasons that it shows to nobody."""
    world = World(*machines(2), *gang("g", 2))
    found = world.filter("g-0")
    assert (len(found.names), found.curable, found.hopeless) == (1, {}, {})


def test_a_gang_that_does_not_fit_whole_is_refused_whole() -> None:
    """Every node has the same short text, and none is offered for preemption."""
    world = World(*machines(2), *gang("g", 9))
    refused = world.filter("g-3")
    text = "gang g: only 8 of 9 fit: Insufficient cpu on 2 of 2 nodes"
    assert (refused.names, refused.curable, refused.hopeless) == ([], {}, {"n0": text, "n1": text})


def test_a_gang_is_planned_where_its_volumes_are() -> None:
    """kube-scheduler writes whose they are: the books hold bindings alone."""
    disks = [volume(f"v{i}").only_on("n1") for i in range(2)]
    own = [claim(f"d{i}") for i in range(3)]
    members = [mounts(member(f"g-{i}").cpu(1), f"d{i}") for i in range(3)]
    world = World(*machines(2), *classes(), *disks, *own, podgroup().members(2), *members[:2])
    assert world.place("g-0", "g-1") == ["n1", "n1"]
    assert {(seat.bind.before, seat.bind.awaits) for held in world.extender.books for seat in held.seats.values()} == {((), None)}
    short = World(*machines(2), *classes(), *disks, *own, podgroup().members(3), *members)
    assert set(short.filter("g-0").hopeless.values()) == {
        "gang g: only 2 of 3 fit: node(s) didn't find available persistent volumes to bind on 2 of 2 nodes"
    }


def test_what_is_kept_counts_as_used_for_other_gangs() -> None:
    world = World(*machines(2), *gang("a", 6), *gang("b", 3))
    world.place("a-0")
    assert world.place("b-0") == [""]


def test_what_is_kept_counts_as_used_for_foreign_pods() -> None:
    """kube-scheduler could evict nobody for it: the room is only kept."""
    world = World(*machines(1), *gang("g", 3), pod("x").cpu(2))
    world.place("g-0")
    assert world.filter("x").hopeless == {"n0": "room is kept for pods that are starting"}


def test_foreign_pods_pass() -> None:
    world = World(*machines(3), *gang("g", 3), pod("x").cpu(1))
    world.place("g-0")
    assert world.filter("x").names == ["n0", "n1", "n2"]


def test_of_foreign_pods_every_node_has_no_points() -> None:
    """Whoever asks may count on one answer a node."""
    world = World(*machines(2), pod("x"))
    assert world.scores("x") == [0] * len(world.nodes)


def test_the_planned_node_has_the_best_score() -> None:
    world = World(node("n0").cpu(1), node("n1").cpu(64), *gang("g", 1, cpu=2))
    world.place("g-0")
    assert world.scores("g-0") == [0, 10]


def test_nobody_is_bound_before_the_gang_is_whole() -> None:
    world = World(*machines(1), *gang("g", 3))
    places = world.place("g-0", "g-1", "g-2")
    turns = [world.ask(f"g-{i}", place) for i, place in enumerate(places)]
    assert turns == [Turn.WAIT, Turn.WAIT, Turn.GO]


def test_a_gang_short_of_pods_is_refused() -> None:
    world = World(*machines(2), podgroup("g").members(3), member("g-0").cpu(1), member("g-1").cpu(1))
    assert world.filter("g-0").hopeless["n0"] == "gang g: there are too few pods for the gang: 2 of 3"


def test_a_pod_whose_group_is_missing_waits() -> None:
    """It may be on its way; placed alone the pod would start its gang in part."""
    world = World(*machines(1), member("g-0").cpu(1))
    assert "does not exist" in world.filter("g-0").hopeless["n0"]


def test_a_queue_at_its_limit_refuses_with_its_numbers() -> None:
    """The text says what the queue has and what was asked."""
    world = World(queue("q").capability(cpu=3), queue("r"), *machines(4), *gang("g", 4)[1:], podgroup("g").members(4).queue("q"))
    assert "queue q" in world.filter("g-0").hopeless["n0"]


def test_members_beyond_the_minimum_come_one_by_one() -> None:
    """The last of them finds no room, which the others do not feel."""
    world = World(*machines(1, cpu=3), *gang("g", 5, least=2))
    assert world.place("g-4", "g-3", "g-2", "g-4", "g-0") == ["n0", "n0", "", "n0", "n0"]


def test_the_member_that_asks_is_part_of_the_plan() -> None:
    """Though others would come before it in the gang's own order."""
    world = World(*machines(1, cpu=2), *gang("g", 4, least=2))
    assert world.place("g-3") == ["n0"]


def test_a_node_that_kube_scheduler_leaves_out_is_planned_around() -> None:
    world = World(*machines(3, cpu=1), *gang("g", 2))
    (first,) = world.filter("g-0").names
    others = [name for name in world.nodes if name != first]
    (again,) = world.filter("g-0", *others).names
    assert again in others


def test_planning_around_a_node_leaves_alone_who_has_asked() -> None:
    world = World(*machines(3, cpu=1), *gang("g", 2))
    places = world.place("g-0", "g-1")
    world.ask("g-0", places[0])
    third = next(name for name in world.nodes if name not in places)
    assert (world.filter("g-1", third, places[0]).names, world.place("g-0")) == ([third], [places[0]])


def test_no_place_left_without_a_node_gives_the_whole_gang_back() -> None:
    world = World(*machines(2, cpu=1), *gang("g", 2))
    places = world.place("g-0", "g-1")
    world.ask("g-0", places[0])
    assert world.filter("g-1", places[0]).names == []
    assert world.ask("g-0", places[0]) is Turn.NO


def test_the_look_at_a_nominated_node_alone_undoes_nothing() -> None:
    """kube-scheduler asks about it first and about all nodes after that."""
    world = World(*machines(2, cpu=1), *gang("g", 2))
    places = world.place("g-0", "g-1")
    world.pods["g-0"]["status"]["nominatedNodeName"] = places[1]
    assert world.filter("g-0", places[1]).names == []
    assert world.place("g-0", "g-1") == places


def test_a_reservation_ends_with_its_time() -> None:
    world = World(*machines(1), *gang("a", 4), *gang("b", 4))
    world.place("a-0")
    assert world.place("b-0") == [""]
    world.now += 31
    assert world.place("b-0") == ["n0"]


def test_whoever_comes_for_its_node_keeps_the_gangs_nodes() -> None:
    world = World(*machines(1), *gang("a", 4), *gang("b", 4))
    world.place("a-0")
    world.now += 20
    world.place("a-1")
    world.now += 20
    assert world.place("b-0") == [""]


def test_a_node_that_goes_takes_the_plan_with_it() -> None:
    world = World(*machines(2), *gang("g", 8))
    places = world.place(*(f"g-{i}" for i in range(8)))
    world.gone(node("n0").cpu(4))
    assert world.ask("g-0", places[0]) is Turn.NO


def test_a_member_that_vanishes_takes_the_plan_with_it() -> None:
    """Its gang is refused then, and what was kept is free for others."""
    world = World(*machines(1), *gang("g", 4), *gang("h", 4))
    world.place("g-0")
    world.gone(world.pods["g-2"])
    assert world.place("h-0") == ["n0"]


def test_a_member_that_asks_for_more_is_planned_anew() -> None:
    world = World(node("n0").cpu(4), node("n1").cpu(64), pod("x").cpu(56).on("n1"), *gang("g", 1))
    first = world.place("g-0")
    world.pods["g-0"] = member("g-0").cpu(6)
    world.see(world.pods["g-0"], "MODIFIED")
    assert (first, world.place("g-0")) == (["n0"], ["n1"])


def test_a_wait_that_ends_gives_up_for_all() -> None:
    world = World(*machines(1), *gang("g", 2))
    places = world.place("g-0", "g-1")
    world.ask("g-0", places[0])
    found = world.extender.books.find(world.pods["g-0"]["metadata"]["uid"])
    assert found is not None
    world.extender.give_up(found[1].bind)
    assert world.extender.turn(found[1].bind).turn is Turn.NO


def test_a_pod_that_is_not_known_yet_is_no_refusal() -> None:
    world = World(*machines(1), *gang("g", 1))
    world.pods["late"] = member("late").cpu(1)
    with pytest.raises(NotSeenYet):
        world.filter("late")


def test_a_pod_of_a_scheduler_that_is_not_followed_is_an_error() -> None:
    world = World(*machines(1), podgroup("g"))
    world.pods["x"] = member("x").scheduler("other")
    assert "--extender-scheduler-name" in world.filter("x").error


def test_no_more_gangs_begin_than_there_are_threads_for() -> None:
    world = World(*machines(4), *gang("a", 4), *gang("b", 4), most_waiting=6)
    world.place("a-0")
    assert "not its turn" in world.filter("b-0").hopeless["n0"]


def test_a_bind_is_asked_for_again() -> None:
    """The one before may have been answered too late."""
    world = World(*machines(1), *gang("g", 1))
    (place,) = world.place("g-0")
    assert [world.ask("g-0", place), world.ask("g-0", place)] == [Turn.GO, Turn.GO]


def test_after_a_restart_what_runs_counts() -> None:
    """Three of four are bound: the fourth waits for nobody."""
    there = [member(f"g-{i}").cpu(1).on("n0") for i in range(3)]
    world = World(*machines(1), podgroup("g").members(4).phase("Running"), *there, member("g-3").cpu(1))
    (place,) = world.place("g-3")
    assert world.ask("g-3", place) is Turn.GO


def test_roles_are_counted_too() -> None:
    """A gang of one master and two workers does not start with three workers."""
    roles = podgroup("g").members(3, {"master": 1, "worker": 2})
    pods = [member("m").role("master").cpu(1), *(member(f"w-{i}").role("worker").cpu(1) for i in range(3))]
    world = World(*machines(1), roles, *pods)
    names = ("w-0", "w-1", "w-2", "m")
    places = world.place(*names)
    assert [world.ask(name, place) for name, place in zip(names, places, strict=True)] == [Turn.WAIT] * 3 + [Turn.GO]


# --- who is woken ---------------------------------------------------------------------------------------------------------


def _put_aside(name: str) -> PodBuilder:
    """As kube-scheduler leaves a pod that it could not place."""
    said = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available"}]
    return member(name).cpu(1).with_("status.conditions", said)


def test_members_that_were_put_aside_are_woken_when_their_nodes_are_kept() -> None:
    """The others come by themselves, and a write about each of them would cost more than it brings."""
    world = World(*machines(1), podgroup("g").members(3), member("g-0").cpu(1), member("g-1").cpu(1), _put_aside("g-2"))
    world.place("g-0")
    survey = Survey(world.extender)
    survey.take(world.now)
    world.now += 3
    assert [each.key.name for each in survey.take(world.now) if isinstance(each, Patch)] == ["g-2"]


def test_a_member_that_is_put_aside_after_its_node_was_kept_is_woken_too() -> None:
    """The mirror does not listen to what is said about a pod whose binding it assumes."""
    world = World(*machines(1), *gang("g", 2))
    world.place("g-0")
    world.see(_put_aside("g-1"), "MODIFIED")
    world.now += 3
    assert [each.key.name for each in Survey(world.extender).take(world.now) if isinstance(each, Patch)] == ["g-1"]


def test_of_a_gang_that_nobody_has_come_with_nothing_is_said() -> None:
    """That it is unschedulable is known once it has been refused."""
    world = World(*machines(1), *gang("g", 2), *gang("large", 9))
    survey = Survey(world.extender)
    assert _conditions(survey.take(world.now)) == {}
    world.filter("large-0")
    assert _conditions(survey.take(world.now)) == {"large": ["Unschedulable"]}


def _conditions(operations: Iterable[Operation]) -> dict[str, list[str]]:
    """What is written about each PodGroup."""
    patches = [each for each in operations if isinstance(each, PatchStatus) and each.kind == POD_GROUP]
    return {
        each.key.name: [condition["type"] for condition in each.patch["status"]["conditions"]]
        for each in patches
        if "conditions" in each.patch["status"]
    }


# --- preemption -----------------------------------------------------------------------------------------------------------


def _crowded() -> World:
    running = [member(f"low-{i}", "low").cpu(2).priority(1).on("n0") for i in range(2)]
    low = [podgroup("low").members(1).phase("Running"), *running]
    high = [podgroup("high").members(1).priority("high"), member("high-0", "high").cpu(2).priority(1000)]
    return World(node("n0").cpu(4), *low, *high, text=PREEMPTING)


def test_a_node_that_others_could_leave_is_offered() -> None:
    """What eviction can cure and what it cannot are told apart."""
    assert list(_crowded().filter("high-0").curable) == ["n0"]


def test_victims_are_those_of_the_preempt_action() -> None:
    assert list(_crowded().preempt("high-0", n0=["low-0", "low-1"])) == ["n0"]


def test_without_the_action_nobody_is_evicted_for_a_gang() -> None:
    world = World(node("n0").cpu(1), *gang("g", 2))
    assert world.filter("g-0").curable == {}


def test_a_foreign_pod_evicts_a_gang_whole_or_not() -> None:
    """All of it is on this node: it goes whole."""
    running = [member(f"g-{i}").cpu(1).on("n0") for i in range(2)]
    world = World(node("n0").cpu(2), podgroup("g").members(2).phase("Running"), *running, pod("x").cpu(1).priority(9))
    assert world.preempt("x", n0=["g-0"]) == {"n0": ["g-0", "g-1"]}


def test_violated_budgets_are_counted_anew() -> None:
    """For the member that kube-scheduler did not choose as well."""
    running = [member(f"g-{i}").cpu(1).on("n0").labels(app="g") for i in range(2)]
    budget = Built(PDB, "b").with_("spec.selector.matchLabels", {"app": "g"}).with_("status.disruptionsAllowed", 1)
    world = World(node("n0").cpu(2), podgroup("g").members(2).phase("Running"), *running, pod("x").cpu(1).priority(9), budget)
    asked = AskedToPreempt(view(Pod, world.pods["x"]), {"n0": Victims((running[0]["metadata"]["uid"],))})
    assert world.extender.preempt(asked, world.now)["n0"].violations == 1


def test_a_budget_covers_no_pod_without_labels() -> None:
    """As kube-scheduler counts, though its selector would match."""
    expression = {"key": "spot", "operator": "DoesNotExist"}
    budget = Built(PDB, "b").with_("spec.selector.matchExpressions", [expression]).with_("status.disruptionsAllowed", 0)
    running = [member(f"g-{i}").cpu(1).on("n0") for i in range(2)]
    world = World(node("n0").cpu(2), podgroup("g").members(2).phase("Running"), *running, pod("x").cpu(1).priority(9), budget)
    asked = AskedToPreempt(view(Pod, world.pods["x"]), {"n0": Victims((running[0]["metadata"]["uid"],))})
    assert world.extender.preempt(asked, world.now)["n0"].violations == 0


def test_a_gang_that_reaches_further_is_left_alone() -> None:
    running = [member("g-0").cpu(1).on("n0"), member("g-1").cpu(1).on("n1")]
    world = World(*machines(2, cpu=1), podgroup("g").members(2).phase("Running"), *running, pod("x").cpu(1).priority(9))
    assert world.preempt("x", n0=["g-0"]) == {}


def _pair(first: PodBuilder, second: PodBuilder) -> World:
    """A gang of two on one node, of a pod more that is going, and a foreign pod of priority 9."""
    group = podgroup("g").members(2).phase("Running")
    going = member("g-2").cpu(1).on("n0").leaving()
    return World(node("n0").cpu(3), group, first.cpu(1).on("n0"), second.cpu(1).on("n0"), going, pod("x").cpu(1).priority(9))


def test_a_member_that_goes_anyway_takes_nobody_with_it() -> None:
    world = _pair(member("g-0"), member("g-1"))
    assert world.preempt("x", n0=["g-2"]) == {"n0": ["g-2"]}


@pytest.mark.parametrize("second", [member("g-1").priority(1000), member("g-1").preemptable(False)])
def test_no_gang_is_completed_with_a_pod_that_may_not_leave(second: PodBuilder) -> None:
    """Of higher priority, or not preemptable."""
    assert _pair(member("g-0"), second).preempt("x", n0=["g-0"]) == {}


def test_the_most_important_victim_comes_first() -> None:
    """kube-scheduler compares nodes by the first."""
    world = _pair(member("g-0"), member("g-1").priority(5))
    asked = AskedToPreempt(view(Pod, world.pods["x"]), {"n0": Victims((world.pods["g-0"]["metadata"]["uid"],))})
    first, *_ = world.extender.preempt(asked, world.now)["n0"].uids
    assert first == world.pods["g-1"]["metadata"]["uid"]


def test_a_gang_that_would_be_short_of_a_role_goes_whole() -> None:
    running = [member("g-0").role("master"), member("g-1").role("worker"), member("g-2").role("worker")]
    group = podgroup("g").members(2, {"master": 1, "worker": 1}).phase("Running")
    world = World(node("n0").cpu(3), group, *(each.cpu(1).on("n0") for each in running), pod("x").cpu(1).priority(9))
    answers = [world.preempt("x", n0=[name]) for name in ("g-0", "g-2")]
    assert answers == [{"n0": ["g-0", "g-1", "g-2"]}, {"n0": ["g-2"]}]


def test_a_gang_on_its_way_is_left_alone_until_it_has_arrived() -> None:
    """One member is bound, the other is being bound: whoever evicted them now would tear the gang in the air."""
    world = World(*machines(1, cpu=2), *gang("g", 2), pod("x").cpu(1).priority(1000))
    for name, place in zip(["g-0", "g-1"], world.place("g-0", "g-1"), strict=True):
        world.ask(name, place)
    answers = []
    for i in range(2):
        world.see(member(f"g-{i}").cpu(1).on("n0"), "MODIFIED")
        answers.append(world.preempt("x", n0=["g-0"]))
    assert answers == [{}, {"n0": ["g-0", "g-1"]}]


def test_a_member_beyond_the_minimum_that_is_on_its_way_protects_nobody() -> None:
    running = [member(f"g-{i}").cpu(1).on("n0") for i in range(2)]
    world = World(*machines(1, cpu=3), podgroup("g").members(2).phase("Running"), *running, member("g-2").cpu(1), pod("x").cpu(1))
    world.place("g-2")
    assert world.preempt("x", n0=["g-0"]) == {"n0": ["g-0"]}


def test_foreign_victims_stay_as_chosen() -> None:
    world = World(*machines(1, cpu=1), pod("y").cpu(1).on("n0"), pod("x").cpu(1))
    assert world.preempt("x", n0=["y"]) == {"n0": ["y"]}


def test_victims_that_we_do_not_know_drop_the_node() -> None:
    world = World(*machines(1, cpu=1), pod("x").cpu(1))
    world.pods["ghost"] = pod("ghost")
    assert world.preempt("x", n0=["ghost"]) == {}
