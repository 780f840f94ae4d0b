"""kube-scheduler's scorers, formula by formula. Points are 0..100, before weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import orjson
import pytest

from extender.api.meta import Json
from extender.core.kube import normalise, resources
from extender.ctl.score import answer_line
from extender.testing.builders import PodBuilder, node, pod

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
MIB = 1024 * 1024


def ints(*rows: object) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.array(rows, dtype=np.int64)


def points(
    scorer: str, asked: PodBuilder, nodes: Sequence[Json], running: Sequence[Json] = (), objects: Sequence[Json] = ()
) -> object:
    """Node -> points of one scorer, None where it is skipped."""
    question = {"id": "q", "nodes": list(nodes), "pods": list(running), "objects": list(objects), "pod": asked}
    answer = answer_line(orjson.dumps(question))
    assert "error" not in answer
    return answer["score"].get(scorer)


# --- amounts --------------------------------------------------------------------------------------------------------------

ALLOCATED = {
    #                            requested    allocatable   least most
    "empty":                     ((0, 0),     (100, 100),   100,  0),
    "full":                      ((100, 100), (100, 100),   0,    100),
    "the mean of two":           ((50, 0),    (100, 100),   75,   25),
    "each share is cut off":     ((1, 1),     (3, 3),       66,   33),
    "the mean is cut off":       ((1, 2),     (100, 100),   98,   1),
    "more than there is":        ((200, 0),   (100, 100),   50,   50),
    "a resource that is absent": ((50, 7),    (100, 0),     50,   50),
    "nothing there at all":      ((50, 7),    (0, 0),       0,    0),
    "large amounts stay exact":  ((2**53 - 1, 0), (2**53, 1), 50, 49),
}  # fmt: skip


@pytest.mark.parametrize(("requested", "allocatable", "least", "most"), ALLOCATED.values(), ids=ALLOCATED)
def test_least_and_most_allocated(requested: tuple[int, int], allocatable: tuple[int, int], least: int, most: int) -> None:
    """Mean over resources of the free share, or of the used one, in whole hundredths."""
    assert resources.least_allocated(ints(requested), ints(allocatable)).tolist() == [least]
    assert resources.most_allocated(ints(requested), ints(allocatable)).tolist() == [most]


def test_shares_are_those_of_integer_division() -> None:
    """The fast division equals the exact one, whatever the amounts."""
    rng = np.random.default_rng(1)
    whole = ints(*(2 ** rng.uniform(0, 55, size=(20_000, 1))).astype(np.int64))
    part = (whole * rng.random(whole.shape)).astype(np.int64)
    exact = [100 * p // w for p, w in zip(part[:, 0].tolist(), whole[:, 0].tolist(), strict=True)]
    assert resources.most_allocated(part, whole).tolist() == exact


BALANCE = {
    #                                       used before    request      allocatable   points
    "no change of balance":                 ((0, 0),       (10, 10),    (100, 100),   75),
    "a lopsided pod on an empty node":      ((0, 0),       (50, 0),     (100, 100),   62),
    "a pod that evens a node out":          ((50, 0),      (0, 50),     (100, 100),   87),
    "as lopsided as can be":                ((0, 0),       (100, 0),    (100, 100),   50),
    "use beyond the node counts as full":   ((300, 0),     (0, 50),     (100, 100),   87),
    "one resource alone is always even":    ((0, 0),       (50, 9),     (100, 0),     75),
    "three resources: standard deviation":  ((0, 0, 0),    (50, 0, 0),  (100, 100, 100), 63),
    "three, one of them absent":            ((0, 0, 0),    (50, 0, 3),  (100, 100, 0), 62),
}  # fmt: skip


@pytest.mark.parametrize(("before", "request_", "allocatable", "want"), BALANCE.values(), ids=BALANCE)
def test_balanced_allocation(before: tuple[int, ...], request_: tuple[int, ...], allocatable: tuple[int, ...], want: int) -> None:
    """75 for a pod that leaves the spread of fractions as it was; more where it narrows it."""
    assert resources.balanced_allocation(ints(before), ints(*request_), ints(allocatable)).tolist() == [want]


def test_containers_that_ask_nothing_count_with_a_default() -> None:
    """100m and 200Mi a container, of the pod and of those on the node."""
    on = node("n1").cpu(1).memory(f"{2000 * MIB}")
    assert points("NodeResourcesFit", pod(), [on]) == {"n1": 90}
    assert points("NodeResourcesFit", pod(), [on], [pod("other").on("n1")]) == {"n1": 80}


def test_balance_is_not_judged_for_a_pod_that_asks_nothing() -> None:
    assert points("NodeResourcesBalancedAllocation", pod(), [node("n1").cpu(1)]) is None


# --- normalising ----------------------------------------------------------------------------------------------------------

EVERY = np.ones(3, dtype=bool)


def test_the_highest_becomes_a_hundred() -> None:
    assert normalise.by_maximum(ints(0, 1, 3), EVERY).tolist() == [0, 33, 100]
    assert normalise.by_maximum(ints(0, 1, 3), EVERY, reverse=True).tolist() == [100, 67, 0]


def test_all_zero_stays_zero_and_reversed_is_a_hundred() -> None:
    assert normalise.by_maximum(ints(0, 0, 0), EVERY).tolist() == [0, 0, 0]
    assert normalise.by_maximum(ints(0, 0, 0), EVERY, reverse=True).tolist() == [100, 100, 100]


def test_only_scored_rows_set_the_scale() -> None:
    scored = np.array([True, True, False])
    assert normalise.by_maximum(ints(1, 2, 8), scored)[:2].tolist() == [50, 100]
    assert normalise.by_range(ints(-1, 3, 8), scored)[:2].tolist() == [0, 100]


def test_the_range_is_stretched() -> None:
    assert normalise.by_range(ints(-5, 0, 10), EVERY).tolist() == [0, 33, 100]
    assert normalise.by_range(ints(4, 4, 4), EVERY).tolist() == [0, 0, 0]


def test_fewer_is_better_and_the_ignored_get_nothing() -> None:
    ignored = np.array([False, False, True])
    assert normalise.fewer_is_better(ints(1, 4, 9), EVERY, ignored).tolist() == [100, 25, 0]
    assert normalise.fewer_is_better(ints(0, 0, 9), EVERY, ignored).tolist() == [100, 100, 0]


# --- nodes ----------------------------------------------------------------------------------------------------------------


def test_taints_that_advise_count_against_a_node() -> None:
    nodes = [node("n1"), node("n2").taint("a", effect="PreferNoSchedule"),
             node("n3").taint("a", effect="PreferNoSchedule").taint("b", effect="PreferNoSchedule")]  # fmt: skip
    assert points("TaintToleration", pod(), nodes) == {"n1": 100, "n2": 50, "n3": 0}
    assert points("TaintToleration", pod().tolerate("a"), nodes) == {"n1": 100, "n2": 100, "n3": 0}
    assert points("TaintToleration", pod().tolerate("a", effect="NoSchedule"), nodes) == {"n1": 100, "n2": 50, "n3": 0}


def test_preferred_terms_add_their_weights() -> None:
    def term(weight: int, key: str) -> Json:
        return {"weight": weight, "preference": {"matchExpressions": [{"key": key, "operator": "Exists"}]}}

    wish = {"preferredDuringSchedulingIgnoredDuringExecution": [term(10, "ssd"), term(30, "gpu")]}
    nodes = [node("n1").labels(ssd="y"), node("n2").labels(gpu="y"), node("n3").labels(ssd="y", gpu="y"), node("n4")]
    asked = pod().with_("spec.affinity.nodeAffinity", wish)
    assert points("NodeAffinity", asked, nodes) == {"n1": 25, "n2": 75, "n3": 100, "n4": 0}
    assert points("NodeAffinity", pod(), nodes) is None


def with_images(name: str, **images: int) -> Json:
    """Sizes in MiB."""
    found = [{"names": [f"{image}:latest"], "sizeBytes": size * MIB} for image, size in images.items()]
    return node(name).with_("status.images", found)


def of_image(*images: str) -> PodBuilder:
    return pod().with_("spec.containers", [{"name": f"c{i}", "image": image} for i, image in enumerate(images)])


IMAGES = {
    "a small image is worth nothing": (of_image("app"), [with_images("n1", app=20)], {"n1": 0}),
    "a large one all": (of_image("app"), [with_images("n1", app=5000)], {"n1": 100}),
    "in between": (of_image("app"), [with_images("n1", app=511)], {"n1": 49}),
    "the rarer the less it is worth": (of_image("app"), [with_images("n1", app=1022), node("n2")], {"n1": 49, "n2": 0}),
    "with its tag written": (of_image("app:latest"), [with_images("n1", app=511)], {"n1": 49}),
    "of another tag": (of_image("app:v2"), [with_images("n1", app=511)], {"n1": 0}),
    "a registry's port is no tag": (of_image("host:5000/app"), [with_images("n1", **{"host:5000/app": 511})], {"n1": 49}),
    "two containers share the scale": (of_image("app", "other"), [with_images("n1", app=1011)], {"n1": 49}),
    "used twice counts twice": (of_image("app", "app"), [with_images("n1", app=1011)], {"n1": 100}),
}


@pytest.mark.parametrize(("asked", "nodes", "want"), IMAGES.values(), ids=IMAGES)
def test_image_locality(asked: PodBuilder, nodes: list[Json], want: Json) -> None:
    """Sizes of the images that are there, scaled by how many nodes have them, between 23 and 1000 MiB a container."""
    assert points("ImageLocality", asked, nodes) == want


# --- pods -----------------------------------------------------------------------------------------------------------------

ZONES = [node("n1").zone("a"), node("n2").zone("a"), node("n3").zone("b")]


def wishing(kind: str, weight: int, name: str = "p", namespace: str = "default") -> PodBuilder:
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "web"}}}
    wish = [{"weight": weight, "podAffinityTerm": term}]
    return pod(name, namespace).with_(f"spec.affinity.{kind}.preferredDuringSchedulingIgnoredDuringExecution", wish)


def insisting(name: str) -> PodBuilder:
    terms = [{"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "web"}}}]
    return pod(name).with_("spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution", terms)


def web(name: str = "w", on: str = "") -> PodBuilder:
    made = pod(name).labels(app="web")
    return made.on(on) if on else made


POD_AFFINITY: dict[str, tuple[PodBuilder, list[Json], object]] = {
    "nobody to be near": (wishing("podAffinity", 5), [], None),
    "near": (wishing("podAffinity", 5), [web(on="n3")], {"n1": 0, "n2": 0, "n3": 100}),
    "not near": (wishing("podAntiAffinity", 5), [web(on="n3")], {"n1": 100, "n2": 100, "n3": 0}),
    "more of them, more points": (
        wishing("podAffinity", 5), [web("a", "n1"), web("b", "n2"), web("c", "n3")], {"n1": 100, "n2": 100, "n3": 0},
    ),
    "the wish of one that is there": (web(), [wishing("podAffinity", 5, "o").on("n3")], {"n1": 0, "n2": 0, "n3": 100}),
    "its wish not to be near": (web(), [wishing("podAntiAffinity", 5, "o").on("n3")], {"n1": 100, "n2": 100, "n3": 0}),
    "its requirement counts a little": (
        web(), [insisting("o").on("n3"), wishing("podAffinity", 2, "q").on("n1")], {"n1": 100, "n2": 100, "n3": 0},
    ),
    "wishes that cancel out": (
        web(), [wishing("podAffinity", 5, "o").on("n3"), wishing("podAntiAffinity", 5, "q").on("n3")],
        {"n1": 0, "n2": 0, "n3": 0},
    ),
    "of another namespace": (web(), [wishing("podAffinity", 5, "o", "other").on("n3")], None),
}  # fmt: skip


@pytest.mark.parametrize(("asked", "running", "want"), POD_AFFINITY.values(), ids=POD_AFFINITY)
def test_preferred_pod_affinity(asked: PodBuilder, running: list[Json], want: object) -> None:
    assert points("InterPodAffinity", asked, ZONES, running) == want


def spreading(*constraints: tuple[str, int]) -> PodBuilder:
    selector = {"matchLabels": {"app": "web"}}
    return web("asked").with_("spec.topologySpreadConstraints", [
        {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": selector}
        for key, skew in constraints
    ])  # fmt: skip


def service(**selector: str) -> Json:
    metadata = {"name": "s", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"selector": selector}}


SPREAD: dict[str, tuple[PodBuilder, list[Json], list[Json], object]] = {
    "no constraints, no service": (web(), [web("w", "n1")], [], None),
    "an empty cluster": (spreading((ZONE, 1)), [], [], {"n1": 100, "n2": 100, "n3": 100}),
    # ln(2 domains + 2) = 1.39: one pod makes 1, two make 3
    "the emptier zone": (
        spreading((ZONE, 1)), [web("a", "n1"), web("b", "n2"), web("c", "n3")], [], {"n1": 33, "n2": 33, "n3": 100},
    ),
    # ln(3 nodes + 2) = 1.61: one pod makes 2
    "the emptier node": (spreading((HOST, 1)), [web("a", "n1")], [], {"n1": 0, "n2": 100, "n3": 100}),
    # both: 1.61 + 2 * 1.39 = 4, 1.39 * 2 = 3, 0
    "zones and nodes together": (
        spreading((ZONE, 1), (HOST, 1)), [web("a", "n1"), web("b", "n2")], [], {"n1": 0, "n2": 0, "n3": 100},
    ),
    "a wide skew waters it down": (spreading((ZONE, 5)), [web("a", "n1")], [], {"n1": 80, "n2": 80, "n3": 100}),
    "pods that do not match": (spreading((ZONE, 1)), [pod("o").on("n1")], [], {"n1": 100, "n2": 100, "n3": 100}),
    "terminating pods do not count": (spreading((HOST, 1)), [web("a", "n1").leaving()], [], {"n1": 100, "n2": 100, "n3": 100}),
    # defaults: hostname, skew 3, and zone, skew 5: 6 + 1.61 + 1.39 = 9, 6 + 1.39 = 7, 6
    "by its service": (web(), [web("a", "n1")], [service(app="web")], {"n1": 66, "n2": 88, "n3": 100}),
    "a service of others": (web(), [web("a", "n1")], [service(app="db")], None),
}  # fmt: skip


@pytest.mark.parametrize(("asked", "running", "objects", "want"), SPREAD.values(), ids=SPREAD)
def test_topology_spread(asked: PodBuilder, running: list[Json], objects: list[Json], want: object) -> None:
    """100 * (max + min - raw) / max, raw = round(sum of count * ln(domains + 2) + maxSkew - 1)."""
    assert points("PodTopologySpread", asked, ZONES, running, objects) == want


def test_nodes_without_the_key_get_no_points() -> None:
    nodes = [*ZONES, node("n4")]
    assert points("PodTopologySpread", spreading((ZONE, 1)), nodes) == {"n1": 100, "n2": 100, "n3": 100, "n4": 0}


def test_spread_by_default_does_not_ask_for_zones() -> None:
    """A node without a zone is judged by its name alone: 2 + 1.39 = 3, beside 2 + 4 = 6 of the node that has one."""
    nodes = [node("n1").zone("a"), node("n2")]
    want = {"n1": 50, "n2": 100}
    assert points("PodTopologySpread", web(), nodes, [web("a", "n2")], [service(app="web")]) == want
