"""Every extension point: how the answers of several plugins become one, tier by tier, and which switch turns it off."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from extender.api.meta import POD, Key
from extender.api.operations import Bind, Patch
from extender.core.extension_points import POINTS, SWITCHES, Combine
from extender.core.hyper_nodes import Eviction, HyperNode, Purpose
from extender.core.plugin import Across, Refusal, Refused, Vote
from extender.core.scheduling import schedule
from extender.core.session import Session
from extender.plugins.gang import Gang
from extender.testing.builders import node, podgroup, queue, task
from tests.scheduling.points import NOW, OBJECTS, Tiers, asked, conf_of, fake, off, on, placed, snapshot

BY_HOOK = {point.hook: point for point in POINTS}


def hooks_that(combine: Combine) -> set[str]:
    return {point.hook for point in POINTS if point.combine is combine}


def job(ssn: Session, name: str) -> int:
    return ssn.jobs.rows[Key("default", name)]


# --- switches -----------------------------------------------------------------------------------------------------------

EVERYTHING = fake("everything", **{point.hook: lambda *_: None for point in POINTS})


@pytest.mark.parametrize("switch", sorted(SWITCHES))
def test_a_switch_turns_off_its_points_and_no_others(switch: str) -> None:
    """Points without a switch cannot be turned off."""
    registered = {hook for hook, tiers in asked([[off(EVERYTHING, switch)]]).hooks.items() if tiers[0]}
    usually = {point.hook for point in POINTS if point.default}
    assert usually - registered == {point.hook for point in POINTS if point.switch == switch and point.default}


def test_clusters_are_ordered_only_where_the_file_says_so() -> None:
    """The one switch that is off by default."""
    last_first = fake("last", cluster_order=lambda cluster: -ord(cluster))
    assert sorted("ba", key=asked([[last_first]]).cluster_order) == ["a", "b"]
    assert sorted("ab", key=asked([[on(last_first, "enabledClusterOrder")]]).cluster_order) == ["b", "a"]


# --- keys ---------------------------------------------------------------------------------------------------------------

PARTS = (
    queue(), podgroup("p").members(1).with_("spec.subGroupPolicy", [{"name": "s", "matchLabelKeys": ["part"]}]),
    task("p-0", "p").cpu(1).labels(part="0"), task("p-1", "p").cpu(1).labels(part="1"),
)  # fmt: skip

# Hook: session -> two subjects, the first goes before the second where no plugin has a say; and how to ask for a key.
Ordered = tuple[Callable[[Session], Sequence[Any]], Callable[[Session, Any], Any]]
ORDERED: dict[str, Ordered] = {
    "job_order": (lambda ssn: (job(ssn, "g"), job(ssn, "h")), Session.job_order),
    "queue_order": (lambda ssn: (ssn.queues.rows["default"], ssn.queues.rows["other"]), Session.queue_order),
    "task_order": (lambda ssn: list(ssn.jobs.tasks[job(ssn, "g")]), Session.task_order),
    "sub_job_order": (lambda ssn: ssn.sub_jobs(job(ssn, "p")), Session.sub_job_order),
    "cluster_order": (lambda _: ("a", "b"), Session.cluster_order),
    "victim_queue_order": (
        lambda ssn: (ssn.queues.rows["default"], ssn.queues.rows["other"]), lambda ssn, row: ssn.victim_queue_order(row, 0),
    ),
}  # fmt: skip

ORDERS: dict[str, tuple[list[list[str]], bool]] = {
    "nobody has a say": ([], False),
    "one turns them round": ([["second"]], True),
    "the first has no preference": ([["neither"], ["second"]], True),
    "the first in a tier decides": ([["first", "second"]], False),
    "a later tier is not asked": ([["first"], ["second"]], False),
    "a plugin that stands twice says the same twice": ([["neither", "second"], ["first", "second"]], True),
}


@pytest.mark.parametrize("hook", ORDERED)
@pytest.mark.parametrize(("tiers", "turned"), ORDERS.values(), ids=ORDERS)
def test_keys(hook: str, tiers: list[list[str]], turned: bool) -> None:
    """The first plugin that sees a difference decides; where none does, age or name."""
    subjects, key = ORDERED[hook]
    first, second = subjects(asked([], OBJECTS + PARTS))
    answers: dict[str, Callable[..., int]] = {
        "first": lambda x, *_: int(_same(x, second)),
        "second": lambda x, *_: int(_same(x, first)),
        "neither": lambda *_: 7,
    }
    plugins = {name: fake(name, **{hook: answer}) for name, answer in answers.items()}
    switch = BY_HOOK[hook].switch
    made: Tiers = [[on(plugins[name], switch) if switch else plugins[name] for name in tier] for tier in tiers]
    ssn = asked(made, OBJECTS + PARTS)
    assert (key(ssn, second) < key(ssn, first)) is turned


def _same(one: Any, other: Any) -> bool:
    return bool(getattr(one, "name", one) == getattr(other, "name", other))


# --- yes and no ---------------------------------------------------------------------------------------------------------

P, A, R = Vote.PERMIT, Vote.ABSTAIN, Vote.REJECT
VOTES: dict[str, tuple[list[list[Vote]], bool]] = {
    "nobody is asked": ([], True),
    "all abstain": ([[A, A], [A]], True),
    "a rejection ends it": ([[P, R]], False),
    "a rejection of a later tier counts where the first abstains": ([[A], [R]], False),
    "a permit decides at the end of its tier": ([[P, A], [R]], True),
    "a permit of a later tier": ([[A], [P]], True),
}
JOB_VOTES: dict[str, Callable[[Session], bool]] = {
    "job_pipelined": lambda ssn: ssn.job_pipelined(job(ssn, "p")),
    "job_enqueueable": lambda ssn: ssn.job_enqueueable(job(ssn, "p")),
    "sub_job_pipelined": lambda ssn: ssn.sub_job_pipelined(ssn.sub_jobs(job(ssn, "p"))[0]),
}


@pytest.mark.parametrize("hook", JOB_VOTES)
@pytest.mark.parametrize(("tiers", "want"), VOTES.values(), ids=VOTES)
def test_votes(hook: str, tiers: list[list[Vote]], want: bool) -> None:
    assert JOB_VOTES[hook](asked(_answering(hook, tiers), PARTS)) is want


def _answering(hook: str, tiers: Sequence[Sequence[Any]]) -> Tiers:
    """A plugin for each answer."""
    return [
        [fake(f"{i}-{k}", **{hook: lambda *_, answer=answer: answer}) for k, answer in enumerate(tier)]
        for i, tier in enumerate(tiers)
    ]


# Hook: how to ask; what nobody's answer is; the answer of one plugin that decides.
JUDGED: dict[str, tuple[Callable[[Session], bool], bool, bool]] = {
    "job_ready": (lambda ssn: ssn.job_ready(job(ssn, "p")), True, False),
    "sub_job_ready": (lambda ssn: ssn.sub_job_ready(ssn.sub_jobs(job(ssn, "p"))[0]), True, False),
    "preemptive": (lambda ssn: ssn.preemptive(0, ssn.request(0)), True, False),
    "overused": (lambda ssn: ssn.overused(0), False, True),
}


@pytest.mark.parametrize("hook", JUDGED)
def test_all_must_agree_or_one_is_enough(hook: str) -> None:
    """Whatever the tier."""
    ask, usual, decisive = JUDGED[hook]
    assert ask(asked([], PARTS)) is usual
    assert ask(asked(_answering(hook, [[usual], [usual]]), PARTS)) is usual
    assert ask(asked(_answering(hook, [[decisive, usual], [usual]]), PARTS)) is decisive
    assert ask(asked(_answering(hook, [[usual], [usual, decisive]]), PARTS)) is decisive


STARVING: dict[str, tuple[list[list[bool]], bool]] = {
    "nobody is asked": ([], False),
    "all of the first tier": ([[True, True], [False]], True),
    "one of it is against": ([[True, False], [True]], False),
    "an empty tier is passed over": ([[], [True]], True),
}


@pytest.mark.parametrize(("tiers", "want"), STARVING.values(), ids=STARVING)
def test_the_first_tier_that_has_the_hook_decides_who_starves(tiers: list[list[bool]], want: bool) -> None:
    assert asked(_answering("job_starving", tiers)).job_starving(0) is want


def test_a_sub_job_that_is_the_whole_job_is_judged_as_the_job() -> None:
    """sub_job_ready and sub_job_pipelined are asked only where there are sub-groups."""
    never = fake("never", sub_job_ready=lambda _: False, sub_job_pipelined=lambda _: R)
    ssn = asked([[never]])
    (whole,) = ssn.sub_jobs(job(ssn, "g"))
    assert (ssn.sub_job_ready(whole), ssn.sub_job_pipelined(whole)) == (True, True)
    unready = asked([[fake("no", job_ready=lambda _: False, job_pipelined=lambda _: R)]])
    (whole,) = unready.sub_jobs(job(unready, "g"))
    assert (unready.sub_job_ready(whole), unready.sub_job_pipelined(whole)) == (False, False)


LEAST: dict[str, tuple[list[list[int]], int]] = {
    "nobody is asked": ([], 2),
    "the smallest number": ([[2, 1], [2]], 1),
    "never more than there are": ([[9]], 2),
    "never fewer than none": ([[-1]], 0),
    "a later tier": ([[2], [0]], 0),
}


@pytest.mark.parametrize("hook", sorted(hooks_that(Combine.LEAST)))
@pytest.mark.parametrize(("tiers", "want"), LEAST.values(), ids=LEAST)
def test_the_smallest_number(hook: str, tiers: list[list[int]], want: int) -> None:
    ssn = asked(_answering(hook, tiers))
    assert ssn.allocatable_tasks(0, list(ssn.jobs.tasks[job(ssn, "g")])) == want


# --- the first, or one alone --------------------------------------------------------------------------------------------


def test_the_first_that_finds_a_job_invalid_says_why() -> None:
    tiers = _answering("job_valid", [[None], [Refused("Mine", "first"), Refused("Other", "second")]])
    assert asked(tiers).job_valid(0) == Refused("Mine", "first")
    assert asked(_answering("job_valid", [[None]])).job_valid(0) is None
    assert placed(tiers) == {}


def test_the_first_pre_predicate_that_refuses_is_told() -> None:
    result = schedule(snapshot(), conf_of(_answering("pre_predicate", [[None, "no way"], ["nor this"]])), NOW)
    assert {waiting.message for waiting in result.waiting} == {
        "gang of 2: 0 fit, 2 lack a node; 0/3 nodes are unavailable: 3 no way.", "0/3 nodes are unavailable: 3 no way.",
    }  # fmt: skip


def test_the_first_best_node_is_taken_whatever_the_scores() -> None:
    """One that answers None leaves it to the next, and at last to the scores."""
    scores = fake("scores", node_order=lambda _, at: np.array([5.0, 0.0, 9.0])[at.rows])
    chooses = {str(row): fake(f"c{row}", best_node=lambda _, __, row=row: row) for row in (None, 0, 1)}
    one = (*OBJECTS[:4], podgroup("h").phase("Inqueue"), task("h-w-0", "h").cpu(1))
    assert placed([[scores]], one) == {"h-w-0": "n2"}
    assert placed([[scores, chooses["None"], chooses["1"]], [chooses["0"]]], one) == {"h-w-0": "n1"}
    assert placed([[scores, off(chooses["1"], "enableBestNode")]], one) == {"h-w-0": "n2"}


ALONE: dict[str, tuple[list[list[int | None]], int | None]] = {
    "nobody is asked": ([], None),
    "the first": ([[1, 0], [0]], 1),
    "the first of a later tier": ([[], [0]], 0),
    "even if it wants none": ([[None, 0]], None),
}


@pytest.mark.parametrize(("tiers", "want"), ALONE.values(), ids=ALONE)
def test_one_plugin_alone_names_the_target_job(tiers: list[list[int | None]], want: int | None) -> None:
    assert asked(_answering("target_job", tiers)).target_job([0, 1]) == want


GRADIENTS: dict[str, Callable[[Session], Any]] = {
    "hyper_node_gradient_for_job": lambda ssn: ssn.hyper_node_gradient_for_job(0, ssn.root, Purpose.ALLOCATE),
    "hyper_node_gradient_for_sub_job":
        lambda ssn: ssn.hyper_node_gradient_for_sub_job(ssn.sub_jobs(0)[0], ssn.root, Purpose.EVICT),
}  # fmt: skip


@pytest.mark.parametrize("hook", GRADIENTS)
def test_one_plugin_alone_says_in_which_hyper_nodes_to_look(hook: str) -> None:
    """Even if it knows none; without any it is the root, which holds every node."""
    rack = HyperNode("rack", np.array([True, False, False]))
    assert GRADIENTS[hook](asked(_answering(hook, [[[[rack]], []], [[]]]))) == [[rack]]
    assert GRADIENTS[hook](asked(_answering(hook, [[[]], [[[rack]]]]))) == []
    ((root,),) = GRADIENTS[hook](asked([]))
    assert (root.name, root.nodes.all(), root.is_root) == ("<cluster-top-hypernode>", True, True)


# --- nodes --------------------------------------------------------------------------------------------------------------

ONE = (*OBJECTS[:4], podgroup("h").phase("Inqueue"), task("h-w-0", "h").cpu(1))


def at_places(*values: float) -> Callable[..., Any]:
    return lambda _, at: np.array(values)[at.rows]


def refusing(*values: bool) -> Callable[..., Any]:
    return lambda _, at: [Refusal("mine", np.array(values)[at.rows])]


def test_any_refusal_counts() -> None:
    """Of a node by itself or across nodes; a plugin that refuses nothing changes nothing."""
    first, second = fake("a", predicate=refusing(True, False, False)), fake("b", predicate=refusing(False, True, False))
    across = fake("c", predicate_across=lambda _: [Refusal("far", np.array([False, True, False]))])
    silent = fake("d", predicate=lambda _, __: [], predicate_across=lambda _: None)
    assert placed([[first], [second, silent]], ONE) == {"h-w-0": "n2"}
    assert placed([[first], [silent, across]], ONE) == {"h-w-0": "n2"}
    assert placed([[off(first, "enablePredicate")]], ONE) == {"h-w-0": "n0"}


SCORED: dict[str, tuple[list[list[Mapping[str, Callable[..., Any]]]], str]] = {
    "none: the lowest row": ([], "n0"),
    "added up": ([[{"node_order": at_places(5, 4, 0)}], [{"node_order": at_places(0, 4, 6)}]], "n1"),
    "None is nothing": ([[{"node_order": lambda *_: None}, {"node_order": at_places(0, 0, 1)}]], "n2"),
    "across nodes": (
        [[{"node_order": at_places(5, 4, 0)}], [{"batch_node_order": lambda *_: Across(np.array([0.0, 3.0, 0.0]))}]], "n1",
    ),
    "raw points are rounded down": (
        [[{"node_map": at_places(1.9, 1.1, 0)}], [{"node_order": at_places(0, 0.5, 0)}]], "n1",
    ),
    "below zero as well": ([[{"node_map": at_places(-0.5, -1.5, -2)}], [{"node_order": at_places(0, 0.9, 2.5)}]], "n2"),
    "normalised by the same plugin only": (
        [[{"node_map": at_places(1, 2, 4), "node_reduce": lambda _, points, __: np.negative(points, out=points)},
          {"node_map": at_places(0, 2, 0)}]], "n1",
    ),
    "normalised among the feasible": (
        [[{"predicate": refusing(False, False, True), "node_map": at_places(1, 2, 4),
           "node_reduce": lambda _, points, feasible: points.__imul__(10 // points[feasible].max())}],
         [{"node_order": at_places(6, 0, 0)}]], "n0",
    ),
    "a plugin without raw points for the class": (
        [[{"node_map": lambda *_: None, "node_reduce": lambda *_: 1 / 0}, {"node_order": at_places(0, 1, 0)}]], "n1",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("tiers", "want"), SCORED.values(), ids=SCORED)
def test_scores(tiers: list[list[Mapping[str, Callable[..., Any]]]], want: str) -> None:
    made: Tiers = [[fake(f"{i}-{k}", **hooks) for k, hooks in enumerate(tier)] for i, tier in enumerate(tiers)]
    assert placed(made, ONE) == {"h-w-0": want}
    turned_off: Tiers = [[off(plugin, "enableNodeOrder") for plugin in tier] for tier in made]  # type: ignore[arg-type]
    assert placed(turned_off, ONE) == {"h-w-0": "n0"}


def test_raw_points_are_asked_again_for_nodes_that_changed() -> None:
    """And normalised anew for each task: here each wants the emptiest node, of which only two are good."""
    emptiest = fake(
        "emptiest",
        node_map=lambda _, at: -at.used[:, 0].astype(float),
        node_reduce=lambda _, points, __: points.__iadd__([10_000, 10_000, 0]),
    )
    many = (*OBJECTS[:4], podgroup("h").members(4).phase("Inqueue"), *(task(f"h-w-{i}", "h").cpu(1) for i in range(4)))
    assert list(placed([[Gang, emptiest]], many).values()) == ["n0", "n1", "n0", "n1"]


def test_what_a_plugin_distinguishes_is_judged_apart() -> None:
    """Two tasks that ask the same, told apart by the last letter of their name."""
    picky = fake(
        "picky",
        distinguish=lambda row: row % 2,
        predicate=lambda cls, at: [Refusal("odd", at.rows != cls.task % 2)],
    )
    two = (*OBJECTS[:4], podgroup("h").members(2).phase("Inqueue"), task("h-w-0", "h").cpu(1), task("h-w-1", "h").cpu(1))
    assert placed([[Gang, picky]], two) == {"h-w-0": "n0", "h-w-1": "n1"}


def test_points_of_hyper_nodes_are_added_up() -> None:
    """Names that nobody asked about count for nothing."""
    ssn = asked(_answering("hyper_node_order", [[{"a": 1.0, "b": 2.0}], [{"a": 2.0, "stray": 9.0}]]))
    every = np.ones(3, dtype=bool)
    candidates = {name: HyperNode(name, every) for name in "abc"}
    assert ssn.hyper_node_order(ssn.sub_jobs(0)[0], candidates) == {"a": 3.0, "b": 2.0, "c": 0.0}


# --- victims ------------------------------------------------------------------------------------------------------------

VICTIMS: dict[str, tuple[list[list[list[int] | None]], list[int]]] = {
    "nobody is asked": ([], []),
    "whom all give, in the order of the first": ([[[3, 1, 2], [1, 2, 3]]], [3, 1, 2]),
    "who abstains does not count": ([[None, [2], None]], [2]),
    "all abstain: the next tier": ([[None], [[1]]], [1]),
    "they agree on nobody: the next tier": ([[[1], [2]], [[3]]], [3]),
    "who agree on nobody do not begin anew": ([[[1], [2], [2, 3]]], []),
    "an empty list is no veto": ([[[]], [[2]]], [2]),
    "an empty list ends its tier": ([[[], [1]], [[2]]], [2]),
    "a later tier is not asked": ([[[1]], [[2]]], [1]),
}
GIVEN_UP: dict[str, Callable[[Session, list[int]], list[int]]] = {
    "preemptable": lambda ssn, candidates: ssn.victims("preemptable", 0, candidates),
    "reclaimable": lambda ssn, candidates: ssn.victims("reclaimable", 0, candidates),
    "unified_evictable": lambda ssn, candidates: ssn.unified_evictable(Eviction("gangpreempt", 0, ssn.root), candidates),
}


@pytest.mark.parametrize("hook", GIVEN_UP)
@pytest.mark.parametrize(("tiers", "want"), VICTIMS.values(), ids=VICTIMS)
def test_victims(hook: str, tiers: list[list[list[int] | None]], want: list[int]) -> None:
    assert GIVEN_UP[hook](asked(_answering(hook, tiers)), [1, 2, 3]) == want


@pytest.mark.parametrize("hook", GIVEN_UP)
def test_every_plugin_is_offered_all_candidates(hook: str) -> None:
    """Not what those before it have left over."""
    seen: list[list[int]] = []

    def look(_: object, candidates: list[int]) -> list[int]:
        seen.append(candidates)
        return [1, 2]

    first, second = fake("first", **{hook: lambda _, __: [1]}), fake("second", **{hook: look})
    assert (GIVEN_UP[hook](asked([[first, second]]), [1, 2]), seen) == ([1], [[1, 2]])


UNIONS: dict[str, tuple[list[list[list[int]]], list[int]]] = {
    "nobody is asked": ([], []),
    "together within a tier": ([[[1, 2], [2, 3]], [[4]]], [1, 2, 3]),
    "the first tier that has any": ([[[], []], [[4]]], [4]),
}


@pytest.mark.parametrize(("tiers", "want"), UNIONS.values(), ids=UNIONS)
def test_victim_tasks(tiers: list[list[list[int]]], want: list[int]) -> None:
    assert asked(_answering("victim_tasks", tiers)).victim_tasks([1, 2, 3, 4]) == want


# --- who is told --------------------------------------------------------------------------------------------------------


def test_all_are_told() -> None:
    """In the order of the configuration; one that stands twice twice."""
    heard: list[str] = []
    ears = {name: fake(name, reserved_nodes=lambda name=name: heard.append(name), job_enqueued=lambda _, name=name:
                       heard.append(name)) for name in "ab"}  # fmt: skip
    ssn = asked([[ears["b"]], [ears["a"], ears["b"]]])
    ssn.reserved_nodes()
    ssn.job_enqueued(0)
    assert "".join(heard) == "babbab"


def test_placements_are_told_and_taken_back() -> None:
    """`allocated` and `deallocated` mirror each other where a gang does not fit; what comes before a binding goes with it."""
    heard: list[tuple[str, int]] = []
    ear = fake(
        "ear",
        allocated=lambda change: heard.append(("+", len(change.tasks))),
        deallocated=lambda change: heard.append(("-", len(change.tasks))),
        before_bind=lambda _: [Patch(POD, Key("default", "x"), {})],
    )
    small = (node("n0").cpu(1), queue("default"), *OBJECTS[5:])
    result = schedule(snapshot(small), conf_of([[Gang, ear]]), NOW)
    assert heard == [("+", 1), ("-", 1), ("+", 1)]
    (bind,) = [operation for operation in result.operations if isinstance(operation, Bind)]
    assert (bind.pod.name, bind.before) == ("h-w-0", (Patch(POD, Key("default", "x"), {}),))


def test_every_point_is_tried_here() -> None:
    """A new row of the table needs a test of its combination rule."""
    tried = {*ORDERED, *JOB_VOTES, *JUDGED, *GRADIENTS, *GIVEN_UP, *hooks_that(Combine.LEAST), *hooks_that(Combine.CALL)}
    tried |= {"job_starving", "job_valid", "pre_predicate", "best_node", "target_job", "hyper_node_order", "victim_tasks"}
    tried |= {"predicate", "predicate_across", "node_order", "batch_node_order", "node_map", "node_reduce"}
    tried |= {"distinguish", "before_bind"}
    assert tried == set(BY_HOOK)
