"""PodDisruptionBudgets: the status that says how many pods may go now, and what an eviction makes of it.

Source: kubernetes v1.36.1 pkg/controller/disruption (getExpectedPodCount, countHealthyPods, updatePdbStatus) and
pkg/registry/core/pod/storage/eviction.go."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from extender.api.errors import ClusterError, NotFound, TooManyRequests
from extender.api.meta import (
    DEPLOYMENT,
    PDB,
    POD,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
    Json,
    Key,
    controller_of,
    format_time,
    key_of,
    labels_of,
)
from extender.api.pod import ENDED, PENDING
from extender.api.selectors import LabelSelector
from extender.api.views import view
from extender.cluster.clock import Clock
from extender.cluster.hearing import Hearing
from extender.cluster.pod_rules import is_ready, with_condition
from extender.cluster.port import Cluster

Scale = Callable[[str, Json], int | None]
_SCALABLE = {(kind.api_version, kind.name): kind for kind in (DEPLOYMENT, REPLICA_SET, REPLICATION_CONTROLLER, STATEFUL_SET)}


def covered_by(budget: Json, pods: Iterable[Json]) -> list[Json]:
    """An empty selector covers every pod of the namespace, a missing one none."""
    written = (budget.get("spec") or {}).get("selector")
    if written is None:
        return []
    selector = view(LabelSelector, written)
    return [pod for pod in pods if selector.matches(labels_of(pod))]


def status_of(budget: Json, pods: list[Json], scale: Scale, now: str) -> Json:
    """The status of a budget over the pods it covers. `scale`: replicas wanted by a pod's controller, None if unknown."""
    spec = budget["spec"]
    covered = covered_by(budget, pods)
    healthy = sum(1 for pod in covered if "deletionTimestamp" not in pod["metadata"] and is_ready(pod))
    expected = _expected(spec, covered, scale)
    wanted = 0 if expected is None else _wanted(spec, expected)
    allowed = max(healthy - wanted, 0) if expected else 0
    status = {
        **(budget.get("status") or {}),
        "currentHealthy": healthy,
        "desiredHealthy": wanted,
        "expectedPods": expected or 0,
        "disruptionsAllowed": allowed,
        "observedGeneration": budget["metadata"].get("generation", 1),
    }
    reason = "SyncFailed" if expected is None else "SufficientPods" if allowed else "InsufficientPods"
    condition = {"type": "DisruptionAllowed", "status": "True" if allowed else "False", "reason": reason, "message": ""}
    return with_condition(status, condition, now)


def _expected(spec: Json, covered: list[Json], scale: Scale) -> int | None:
    """A number of pods to keep counts the pods there are; all else what their controllers want (None where one is unknown)."""
    if isinstance(spec.get("minAvailable"), int):
        return len(covered)
    wanted: dict[str, int] = {}
    for pod in covered:
        owner = controller_of(pod)
        replicas = scale(pod["metadata"].get("namespace", ""), owner) if owner is not None else None
        if owner is None or replicas is None:
            return None
        wanted[owner["uid"]] = replicas
    return sum(wanted.values())


def _wanted(spec: Json, expected: int) -> int:
    if spec.get("minAvailable") is not None:
        return _amount(spec["minAvailable"], expected)
    if spec.get("maxUnavailable") is not None:
        return max(expected - _amount(spec["maxUnavailable"], expected), 0)
    return 0


def _amount(value: int | str, of: int) -> int:
    if isinstance(value, int):
        return value
    return math.ceil(int(value.rstrip("%")) * of / 100)


def check_eviction(budgets: Iterable[Json], pod: Json) -> None:
    """Raises TooManyRequests where a budget forbids it; a pod that does not run, or is going already, needs nobody's leave."""
    if pod["status"].get("phase") in (*ENDED, PENDING) or "deletionTimestamp" in pod["metadata"]:
        return
    covering = [budget for budget in budgets if covered_by(budget, [pod])]
    if len(covering) > 1:
        raise ClusterError("This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.")
    for budget in covering:
        status = budget.get("status") or {}
        enough = 0 < status.get("desiredHealthy", 0) <= status.get("currentHealthy", 0)
        always = budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow"
        if not is_ready(pod) and (enough or always):
            return
        if status.get("disruptionsAllowed", 0) <= 0:
            raise TooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.")


class Budgets:
    """Keeps the status of every budget; looks only at namespaces in which pods or budgets changed."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._heard = Hearing(cluster, (PDB, POD))

    def settle(self) -> None:
        dirty = {event.object["metadata"]["namespace"] for _, event in self._heard.events()}
        if not dirty:
            return
        now = format_time(self._clock.now())
        for budget in self._cluster.list(PDB).objects:
            namespace = budget["metadata"]["namespace"]
            if namespace in dirty:
                status = status_of(budget, self._cluster.list(POD, namespace).objects, self._scale, now)
                self._cluster.patch(PDB, key_of(budget), {"status": status}, subresource="status")

    def _scale(self, namespace: str, owner: Json) -> int | None:
        kind = _SCALABLE.get((owner["apiVersion"], owner["kind"]))
        if kind is None:
            return None
        try:
            found = self._cluster.get(kind, Key(namespace, owner["name"]))
        except NotFound:
            return None
        return int(found["spec"].get("replicas", 1))
