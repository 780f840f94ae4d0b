"""How many pods a PodDisruptionBudget lets go: the formula, case by case."""

from __future__ import annotations

import pytest

from extender.api.errors import ClusterError, TooManyRequests
from extender.api.meta import Json
from extender.cluster.budgets import check_eviction, status_of
from extender.testing.builders import PodBuilder, pod

NOW = "2025-01-06T00:00:00Z"
RS = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "rs", "uid": "rs-1"}}


def budget(selector: Json | None, **spec: object) -> Json:
    return {"metadata": {"name": "b", "namespace": "default"}, "spec": {"selector": selector, **spec}}


def healthy(name: str) -> PodBuilder:
    ready = [{"type": "Ready", "status": "True"}]
    return pod(name).labels(app="x").on("n1").with_("status.conditions", ready).owned_by(RS)


EVERY = {"matchLabels": {"app": "x"}}
THREE = [healthy("a"), healthy("b"), healthy("c")]
CASES = {
    "a number to keep": (budget(EVERY, minAvailable=2), THREE, (3, 2, 1)),
    "a share to keep is of what the controller wants, rounded up": (budget(EVERY, minAvailable="50%"), THREE, (4, 2, 1)),
    "a number that may be missing": (budget(EVERY, maxUnavailable=1), THREE, (4, 3, 0)),
    "a share that may be missing is rounded up": (budget(EVERY, maxUnavailable="30%"), THREE, (4, 2, 1)),
    "never less than nothing": (budget(EVERY, minAvailable=9), THREE, (3, 9, 0)),
    "a pod that is being deleted is not healthy": (
        budget(EVERY, minAvailable=1), [*THREE[:2], healthy("c").leaving()], (3, 1, 1)
    ),
    "a pod that is not ready is not healthy": (
        budget(EVERY, minAvailable=1), [*THREE[:2], pod("c").labels(app="x").on("n1")], (3, 1, 1)
    ),
    "other pods do not count": (budget(EVERY, minAvailable=1), [*THREE[:1], pod("other").on("n1")], (1, 1, 0)),
    "an empty selector covers all": (budget({}, minAvailable=1), THREE, (3, 1, 2)),
    "no selector covers none": (budget(None, minAvailable=1), THREE, (0, 1, 0)),
    "a share of pods without controller is unknown": (
        budget(EVERY, minAvailable="50%"), [pod("bare").labels(app="x").on("n1")], (0, 0, 0)
    ),
}  # fmt: skip


def replicas(namespace: str, owner: Json) -> int | None:
    return 4 if (namespace, owner["name"]) == ("default", "rs") else None


@pytest.mark.parametrize(("on", "pods", "want"), CASES.values(), ids=CASES)
def test_status(on: Json, pods: list[Json], want: tuple[int, int, int]) -> None:
    """(expected pods, healthy pods wanted, disruptions allowed)."""
    status = status_of(on, pods, replicas, NOW)
    assert (status["expectedPods"], status["desiredHealthy"], status["disruptionsAllowed"]) == want


def test_a_pod_that_is_not_ready_may_go_while_enough_are() -> None:
    on = budget(EVERY, minAvailable=1) | {"status": {"currentHealthy": 1, "desiredHealthy": 1, "disruptionsAllowed": 0}}
    assert check_eviction([on], pod("sick").labels(app="x").on("n1")) is None  # type: ignore[func-returns-value]


def test_it_may_not_where_too_few_are() -> None:
    on = budget(EVERY, minAvailable=2) | {"status": {"currentHealthy": 1, "desiredHealthy": 2, "disruptionsAllowed": 0}}
    with pytest.raises(TooManyRequests):
        check_eviction([on], pod("sick").labels(app="x").on("n1"))


def test_two_budgets_for_one_pod_are_an_error() -> None:
    with pytest.raises(ClusterError, match="more than one PodDisruptionBudget"):
        check_eviction([budget(EVERY, minAvailable=1), budget({}, minAvailable=1)], healthy("a"))
