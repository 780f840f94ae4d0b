"""The plugins predicates and nodeorder in a session: their arguments, their words, and gangs whose members concern each other."""

from __future__ import annotations

import numpy as np
import pytest

from extender.actions import ACTIONS
from extender.api import meta
from extender.api.meta import Json
from extender.api.operations import Bind
from extender.core import conf
from extender.core.axis import CPU
from extender.core.mirror import Mirror
from extender.core.reasons import explain
from extender.core.scheduling import Result, schedule
from extender.core.session import Session
from extender.core.snapshot import Snapshot
from extender.plugins import PLUGINS
from extender.testing.builders import PodBuilder, node, pod, podgroup, queue, task

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def configured(predicates: str = "{}", nodeorder: str = "{}") -> conf.Conf:
    listed = f"[{{name: gang}}, {{name: predicates, arguments: {predicates}}}, {{name: nodeorder, arguments: {nodeorder}}}]"
    return conf.load(f"actions: allocate, backfill\ntiers: [{{plugins: {listed}}}]", PLUGINS, ACTIONS)


def mirror_of(*objects: Json) -> Mirror:
    mirror = Mirror()
    for obj in (queue(), *objects):
        mirror.apply(meta.kind_of(obj), "ADDED", obj)
    return mirror


def run(*objects: Json, settings: conf.Conf | None = None) -> Result:
    return schedule(Snapshot.build(mirror_of(*objects)), settings or configured(), now=0.0)


def binds(result: Result) -> dict[str, str]:
    return {operation.pod.name: operation.node for operation in result.operations if isinstance(operation, Bind)}


def opened(*objects: Json, settings: conf.Conf | None = None) -> Session:
    return Session(Snapshot.build(mirror_of(*objects)), settings or configured(), now=0.0, rng=np.random.default_rng(0))


def words(ssn: Session, name: str = "t-0") -> dict[str, int]:
    """The causes why a task finds no node, and how many nodes each refuses."""
    return dict(explain(ssn.plan(ssn.task_class(ssn.tasks.rows[meta.Key("default", name)]))).counts)


def points(ssn: Session, name: str = "t-0") -> dict[str, float]:
    plan = ssn.plan(ssn.task_class(ssn.tasks.rows[meta.Key("default", name)]))
    total = plan.total_scores(plan.feasible())[0]
    return {node_name: float(total[row]) for node_name, row in ssn.nodes.rows.items()}


def apart(made: PodBuilder, topology_key: str = HOST) -> PodBuilder:
    """Not together with another pod of the same app."""
    terms = [{"topologyKey": topology_key, "labelSelector": {"matchLabels": {"app": "x"}}}]
    made.labels(app="x")
    return made.with_("spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution", terms)


def big(name: str) -> Json:
    return node(name).cpu(16).memory("64Gi")


# --- predicates -------------------------------------------------------------------------------------------------------------

SAYS = {
    "cordoned": (node().cpu(4).unschedulable(), task().cpu(1), "node(s) were unschedulable"),
    "tainted": (node().cpu(4).taint("gpu"), task().cpu(1), "node(s) had untolerated taint(s)"),
    "not selected": (node().cpu(4), task().cpu(1).select(disk="ssd"), "node(s) didn't match Pod's node affinity/selector"),
    "no pod more": (node().cpu(4).pods(0), task().cpu(1), "node(s) pod number exceeded"),
}


@pytest.mark.parametrize(("on", "asked", "message"), SAYS.values(), ids=SAYS)
def test_what_refuses_a_node_is_said_in_kubernetes_words(on: Json, asked: PodBuilder, message: str) -> None:
    assert words(opened(on, podgroup(), asked)) == {message: 1}


SWITCHES = {
    "predicate.NodeAffinityEnable": (node().cpu(4), task().cpu(1).select(disk="ssd"), []),
    "predicate.TaintTolerationEnable": (node().cpu(4).taint("gpu"), task().cpu(1), []),
    "predicate.NodePortsEnable": (
        node().cpu(4), task().with_("spec.containers", [{"name": "c", "ports": [{"hostPort": 80}]}]),
        [pod("h").with_("spec.containers", [{"name": "c", "ports": [{"hostPort": 80}]}]).on("n1")],
    ),
    "predicate.PodAffinityEnable": (node().cpu(4), apart(task().cpu(1)), [apart(pod("h")).on("n1")]),
    "predicate.PodTopologySpreadEnable": (
        node().cpu(4),
        task().cpu(1).with_("spec.topologySpreadConstraints", [
            {"topologyKey": "rack", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
        ]),
        [],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("key", "on", "asked", "running"), [(key, *case) for key, case in SWITCHES.items()], ids=SWITCHES)
def test_each_check_can_be_switched_off(key: str, on: Json, asked: PodBuilder, running: list[Json]) -> None:
    objects = (on, podgroup(), asked, *running)
    assert binds(run(*objects)) == {}
    assert binds(run(*objects, settings=configured(f"{{{key}: false}}"))) == {"t-0": "n1"}


def test_terms_that_name_no_node_together_never_fit() -> None:
    lines = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in ("n1", "n2")]
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": lines}]}}
    ssn = opened(big("n1"), big("n2"), podgroup(), task().with_("spec.affinity.nodeAffinity", affinity))
    assert words(ssn) == {"plugin NodeAffinity pre-predicates failed pod affinity terms conflict": 2}


def test_members_of_a_gang_keep_apart_within_one_session() -> None:
    """Each member that is placed counts against the next."""
    members = [apart(task(f"t-{i}").cpu(1)) for i in range(3)]
    assert binds(run(*map(big, ("n1", "n2")), podgroup().members(3), *members)) == {}
    placed = binds(run(*map(big, ("n1", "n2", "n3")), podgroup().members(3), *members))
    assert sorted(placed.values()) == ["n1", "n2", "n3"]


def test_a_gang_that_keeps_together_follows_its_first_member() -> None:
    terms = [{"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "x"}}}]
    path = "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    members = [task(f"t-{i}").cpu(3).labels(app="x").with_(path, terms) for i in range(4)]
    nodes = [node(f"{zone}{i}").cpu(6).memory("64Gi").zone(zone) for zone in "abc" for i in range(2)]
    placed = binds(run(*nodes, podgroup().members(4), *members))
    assert len(placed) == 4
    assert len({name[0] for name in placed.values()}) == 1


def test_a_gang_is_spread_over_zones_as_its_constraint_says() -> None:
    constraint = {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule",
                  "labelSelector": {"matchLabels": {"app": "x"}}}  # fmt: skip
    members = [task(f"t-{i}").cpu(1).labels(app="x").with_("spec.topologySpreadConstraints", [constraint]) for i in range(6)]
    nodes = [node("a").cpu(64).zone("a"), node("b").cpu(8).zone("b"), node("c").cpu(8).zone("c")]
    assert sorted(binds(run(*nodes, podgroup().members(6), *members)).values()) == ["a", "a", "b", "b", "c", "c"]


def test_one_holder_of_a_host_port_a_node_even_when_many_are_placed_at_once() -> None:
    def holder(i: int) -> PodBuilder:
        return task(f"t-{i}").with_("spec.containers", [
            {"name": "c", "ports": [{"hostPort": 80}], "resources": {"requests": {"cpu": "1"}}}
        ])  # fmt: skip

    placed = binds(run(big("n1"), big("n2"), podgroup(), *(holder(i) for i in range(3))))
    assert sorted(placed.values()) == ["n1", "n2"]


def test_a_plain_pod_that_a_pending_one_keeps_away_is_judged_again_after_each_placement() -> None:
    """Its plan exists before the other, whose anti-affinity looks at it, takes the node."""
    ssn = opened(big("n1"), big("n2"), podgroup(), task("plain").cpu(1).labels(app="x"), apart(task("shy").cpu(1)))
    row = {name: ssn.tasks.rows[meta.Key("default", name)] for name in ("plain", "shy")}
    plan = ssn.plan(ssn.task_class(row["plain"]))
    assert plan.feasible().tolist() == [True, True]
    stmt = ssn.statement()
    stmt.allocate([row["shy"]], [0])
    assert plan.feasible().tolist() == [False, True]
    stmt.discard()
    assert plan.feasible().tolist() == [True, True]


# --- nodeorder --------------------------------------------------------------------------------------------------------------

OFF = ("leastrequested", "mostrequested", "nodeaffinity", "podaffinity", "balancedresource", "tainttoleration",
       "imagelocality", "podtopologyspread")  # fmt: skip


def only(scorer: str, weight: int = 1) -> conf.Conf:
    """Every scorer but one switched off."""
    weights = ", ".join(f"{name}.weight: {weight if name == scorer else 0}" for name in OFF)
    return configured(nodeorder=f"{{{weights}}}")


def wish(kind: str, **term: object) -> tuple[str, list[Json]]:
    path = f"spec.affinity.{kind}.preferredDuringSchedulingIgnoredDuringExecution"
    return path, [{"weight": 1, "podAffinityTerm": {"topologyKey": HOST, **term}}]


SELECTS_X = {"labelSelector": {"matchLabels": {"app": "x"}}}
PREFERS_SSD = [{"weight": 5, "preference": {"matchExpressions": [{"key": "ssd", "operator": "Exists"}]}}]
SCORERS: dict[str, tuple[list[Json], PodBuilder, list[Json], dict[str, float]]] = {
    "leastrequested": ([big("n1"), big("n2")], task().cpu(8), [pod("o").cpu(8).on("n1")], {"n1": 49, "n2": 74}),
    "mostrequested": ([big("n1"), big("n2")], task().cpu(8), [pod("o").cpu(8).on("n1")], {"n1": 50, "n2": 25}),
    "balancedresource": ([big("n1"), big("n2")], task().cpu(8), [pod("o").memory("32Gi").on("n1")], {"n1": 87, "n2": 62}),
    "nodeaffinity": (
        [big("n1"), node("n2").cpu(16).labels(ssd="y")],
        task().cpu(1).with_("spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution", PREFERS_SSD),
        [], {"n1": 0, "n2": 100},
    ),
    "tainttoleration": (
        [big("n1"), node("n2").cpu(16).taint("a", effect="PreferNoSchedule")], task().cpu(1), [], {"n1": 100, "n2": 0},
    ),
    "podaffinity": (
        [big("n1"), big("n2")], task().cpu(1).with_(*wish("podAffinity", **SELECTS_X)),
        [pod("o").labels(app="x").on("n2")], {"n1": 0, "n2": 100},
    ),
    "podtopologyspread": (
        [big("n1"), big("n2")],
        task().cpu(1).labels(app="x").with_("spec.topologySpreadConstraints", [
            {"topologyKey": HOST, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway", **SELECTS_X}
        ]),
        [pod("o").labels(app="x").on("n2")], {"n1": 100, "n2": 0},
    ),
    "imagelocality": (
        [big("n1"), node("n2").cpu(16).with_("status.images", [{"names": ["app:latest"], "sizeBytes": 4000 * 2**20}])],
        task().with_("spec.containers", [{"name": "c", "image": "app", "resources": {"requests": {"cpu": "1"}}}]),
        [], {"n1": 0, "n2": 100},
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("scorer", "nodes", "asked", "running", "want"), [(name, *case) for name, case in SCORERS.items()], ids=SCORERS
)
def test_each_scorer_has_its_weight(
    scorer: str, nodes: list[Json], asked: PodBuilder, running: list[Json], want: dict[str, float]
) -> None:
    objects = (*nodes, podgroup(), asked, *running)
    assert points(opened(*objects, settings=only(scorer))) == want
    assert points(opened(*objects, settings=only(scorer, 7))) == {name: 7 * value for name, value in want.items()}
    assert points(opened(*objects, settings=only("none"))) == dict.fromkeys(want, 0.0)


def test_the_default_weights_add_up() -> None:
    """leastrequested 1, balancedresource 1 and tainttoleration 3 on the cases above."""
    nodes = [big("n1"), node("n2").cpu(16).memory("64Gi").taint("a", effect="PreferNoSchedule")]
    assert points(opened(*nodes, podgroup(), task().cpu(8))) == {"n1": 74 + 62 + 300, "n2": 74 + 62}


def test_what_others_require_is_worth_nothing_here() -> None:
    """hardPodAffinityWeight is 0, unlike in kube-scheduler's default profile."""
    other = pod("o").with_("spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution",
                           [{"topologyKey": HOST, **SELECTS_X}]).on("n2")  # fmt: skip
    ssn = opened(big("n1"), big("n2"), podgroup(), task().cpu(1).labels(app="x"), other, settings=only("podaffinity"))
    assert points(ssn) == {"n1": 0, "n2": 0}


def test_gpus_take_part_in_the_balance_of_those_who_ask_for_them() -> None:
    nodes = [node("n1").cpu(16).memory("64Gi").gpu(8)]
    plain = points(opened(*nodes, podgroup(), task().cpu(8), settings=only("balancedresource")))
    with_gpu = points(opened(*nodes, podgroup(), task().cpu(8).gpu(4), settings=only("balancedresource")))
    assert (plain, with_gpu) == ({"n1": 62}, {"n1": 63})


def owner(kind: str, name: str, selector: Json) -> Json:
    version = "v1" if kind == "ReplicationController" else "apps/v1"
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": {"selector": selector}}


OWNERS = {
    "ReplicationController": {"app": "x"},
    "ReplicaSet": {"matchLabels": {"app": "x"}},
    "StatefulSet": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["x"]}]},
}


@pytest.mark.parametrize(("kind", "selector"), OWNERS.items(), ids=OWNERS)
def test_pods_are_spread_from_those_of_their_owner(kind: str, selector: Json) -> None:
    """Without constraints of their own; pods of another owner, equal otherwise, are not."""
    one, two = owner(kind, "one", selector), owner("ReplicaSet", "two", {"matchLabels": {"app": "y"}})
    running = pod("o").labels(app="x").on("n1")
    tasks = [task("t-0").cpu(1).owned_by(one), task("t-1").cpu(1).owned_by(two), task("t-2").cpu(1)]
    ssn = opened(big("n1"), big("n2"), podgroup(), one, two, running, *tasks, settings=only("podtopologyspread"))
    assert points(ssn, "t-0") == {"n1": 66, "n2": 100}
    assert points(ssn, "t-1") == {"n1": 100, "n2": 100}
    assert points(ssn, "t-2") == {"n1": 0, "n2": 0}


def test_the_points_of_a_node_ahead_of_time_are_those_it_will_have() -> None:
    """Many equal tasks are placed at once as they would be one by one."""
    names = [f"t-{i:02}" for i in range(20)]
    nodes = [node(f"n{i}").cpu(8 + i).memory("32Gi") for i in range(5)]
    at_once = binds(run(*nodes, podgroup().members(20), *(task(name).cpu(1).memory("1Gi") for name in names)))
    one_by_one: dict[str, str] = {}
    for name in names:
        settled = [task(other).cpu(1).memory("1Gi").on(on) for other, on in one_by_one.items()]
        one_by_one |= binds(run(*nodes, podgroup(), task(name).cpu(1).memory("1Gi"), *settled))
    assert at_once == one_by_one


def test_points_follow_placements_without_predicates_too() -> None:
    """The second finds the first node used."""
    alone = conf.load("actions: allocate\ntiers: [{plugins: [{name: gang}, {name: nodeorder}]}]", PLUGINS, ACTIONS)
    nodes = [node(name).cpu(4).memory("16Gi") for name in ("n1", "n2")]
    tasks = [task(name).cpu(1).memory("4Gi") for name in ("t-0", "t-1")]
    assert binds(run(*nodes, podgroup(), *tasks, settings=alone)) == {"t-0": "n1", "t-1": "n2"}


def test_a_node_that_goes_leaves_no_trace() -> None:
    """Its taints, images and cordon do not pass to the node that takes its row."""
    mirror = mirror_of(
        node("old").cpu(1).unschedulable().taint("a").with_("status.images", [{"names": ["app:latest"], "sizeBytes": 2**30}])
    )
    mirror.apply(meta.NODE, "DELETED", node("old"))
    mirror.apply(meta.NODE, "ADDED", node("new").cpu(4))
    for obj in (podgroup(), task().cpu(1)):
        mirror.apply(meta.kind_of(obj), "ADDED", obj)
    snapshot = Snapshot.build(mirror)
    assert snapshot.nodes.allocatable[:, CPU].tolist() == [4000]
    assert snapshot.nodes.traits.images == {}
    assert not snapshot.nodes.traits.tainted
    assert binds(schedule(snapshot, configured(), now=0.0)) == {"t-0": "new"}


def test_a_node_that_changes_is_judged_anew() -> None:
    mirror = mirror_of(node("n1").cpu(4), podgroup(), task().cpu(1))
    for changed, want in (
        (node("n1").cpu(4).taint("a"), {}),
        (node("n1").cpu(4).taint("b").taint("c"), {}),
        (node("n1").cpu(4).unschedulable(), {}),
        (node("n1").cpu(4), {"t-0": "n1"}),
    ):
        mirror.apply(meta.NODE, "MODIFIED", changed)
        assert binds(schedule(Snapshot.build(mirror), configured(), now=0.0)) == want
