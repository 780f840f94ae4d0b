"""ReplicaSet and Deployment. Source: kubernetes v1.36.1 pkg/controller/replicaset, pkg/controller/deployment (rolling.go)."""

from __future__ import annotations

from collections.abc import Iterable

from extender.api.meta import (
    DEPLOYMENT,
    POD,
    REPLICA_SET,
    Json,
    Kind,
    Time,
    format_time,
    key_of,
    owner_reference,
    parse_time,
    uid_of,
)
from extender.api.operations import Create, Operation, Patch
from extender.cluster.pod_rules import with_condition
from extender.cluster.workloads import pods as p

HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
_NOT_PASSED_DOWN = ("kubectl.kubernetes.io/last-applied-configuration", REVISION)


def replica_set(rs: Json, pods: Iterable[Json], kind: Kind = REPLICA_SET) -> list[Operation]:
    """As many active pods as wanted; ReplicationControllers likewise."""
    pods = list(pods)
    active = p.active(pods)
    wanted = rs["spec"].get("replicas", 1)
    operations: list[Operation] = []
    if not p.going(rs):
        operations += [Create(POD, p.pod_from(rs["spec"]["template"], rs)) for _ in range(wanted - len(active))]
        operations += [p.delete_pod(pod) for pod in p.surplus_first(active)[: max(len(active) - wanted, 0)]]
    ready = len(p.ready(active))
    status = {
        "replicas": len(active),
        "fullyLabeledReplicas": len(active),
        "readyReplicas": ready,
        "availableReplicas": ready,
        "observedGeneration": rs["metadata"].get("generation", 1),
    }
    return operations + p.status_patch(kind, rs, status)


def deployment(deploy: Json, sets: Iterable[Json], now: Time) -> list[Operation]:
    """The ReplicaSet of the present template grows as the others shrink."""
    sets = sorted(sets, key=lambda rs: parse_time(rs["metadata"]["creationTimestamp"]) or 0.0)
    mark = p.revision(deploy["spec"]["template"])
    new = next((rs for rs in sets if (rs["metadata"].get("labels") or {}).get(HASH) == mark), None)
    old = [rs for rs in sets if rs is not new]
    operations: list[Operation] = []
    if not p.going(deploy):
        if new is None:
            first = _first_replicas(deploy, old)
            operations.append(Create(REPLICA_SET, _new_set(deploy, mark, first, len(old) + 1)))
        else:
            operations += _roll(deploy, new, old)
    return operations + p.status_patch(DEPLOYMENT, deploy, _status(deploy, new, sets, now))


def _new_set(deploy: Json, mark: str, replicas: int, number: int) -> Json:
    meta, spec = deploy["metadata"], deploy["spec"]
    template = spec["template"]
    labels = {**((template.get("metadata") or {}).get("labels") or {}), HASH: mark}
    annotations = {name: value for name, value in (meta.get("annotations") or {}).items() if name not in _NOT_PASSED_DOWN}
    selector = spec.get("selector") or {}
    return {
        "metadata": {
            "name": f"{meta['name']}-{mark}",
            "namespace": meta["namespace"],
            "labels": labels,
            "annotations": {**annotations, REVISION: str(number)},
            "ownerReferences": [owner_reference(deploy)],
        },
        "spec": {
            "replicas": replicas,
            "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), HASH: mark}},
            "template": {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}},
        },
    }


def _first_replicas(deploy: Json, old: list[Json]) -> int:
    wanted = int(deploy["spec"].get("replicas", 1))
    if _recreates(deploy):
        return 0 if any((rs.get("status") or {}).get("replicas") or rs["spec"]["replicas"] for rs in old) else wanted
    room = wanted + _surge(deploy) - sum(int(rs["spec"]["replicas"]) for rs in old)
    return max(min(wanted, room), 0)


def _roll(deploy: Json, new: Json, old: list[Json]) -> list[Operation]:
    wanted = int(deploy["spec"].get("replicas", 1))
    have = new["spec"]["replicas"]
    running = [rs for rs in old if rs["spec"]["replicas"]]
    if _recreates(deploy):
        if running:
            return [_scale(rs, 0) for rs in running]
        pods_left = any((rs.get("status") or {}).get("replicas") for rs in old)
        return [_scale(new, wanted)] if have != wanted and not pods_left else []
    total = have + sum(rs["spec"]["replicas"] for rs in running)
    grown = min(wanted, have + max(wanted + _surge(deploy) - total, 0)) if have < wanted else wanted
    return [_scale(new, grown)] if grown != have else _shrink(deploy, new, running, wanted, total)


def _shrink(deploy: Json, new: Json, running: list[Json], wanted: int, total: int) -> list[Operation]:
    """Old pods may go as far as enough are available; those that are not available go first."""
    least = wanted - _unavailable(deploy)
    not_up = max(new["spec"]["replicas"], 0) - _available(new)
    room = total - least - max(not_up, 0)
    spare = sum(_available(rs) for rs in [new, *running]) - least
    operations: list[Operation] = []
    for rs in running:
        unhealthy = min(rs["spec"]["replicas"] - _available(rs), room)
        healthy = min(_available(rs), max(room - max(unhealthy, 0), 0), max(spare, 0))
        cut = max(unhealthy, 0) + healthy
        if cut > 0:
            room, spare = room - cut, spare - healthy
            operations.append(_scale(rs, rs["spec"]["replicas"] - cut))
    return operations


def _scale(rs: Json, replicas: int) -> Patch:
    return Patch(REPLICA_SET, key_of(rs), {"spec": {"replicas": replicas}}, uid=uid_of(rs))


def _available(rs: Json) -> int:
    return int((rs.get("status") or {}).get("availableReplicas", 0))


def _recreates(deploy: Json) -> bool:
    return bool((deploy["spec"].get("strategy") or {}).get("type") == "Recreate")


def _surge(deploy: Json) -> int:
    rolling = (deploy["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    return p.share(rolling.get("maxSurge", "25%"), deploy["spec"].get("replicas", 1), up=True)


def _unavailable(deploy: Json) -> int:
    """At least one where nothing may surge, or nothing would ever move."""
    rolling = (deploy["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    amount = p.share(rolling.get("maxUnavailable", "25%"), deploy["spec"].get("replicas", 1), up=False)
    return amount if amount or _surge(deploy) else 1


def _status(deploy: Json, new: Json | None, sets: list[Json], now: Time) -> Json:
    counts = {
        name: sum((rs.get("status") or {}).get(name, 0) for rs in sets)
        for name in ("replicas", "readyReplicas", "availableReplicas")
    }
    wanted = deploy["spec"].get("replicas", 1)
    enough = counts["availableReplicas"] >= wanted - _unavailable(deploy)
    condition = {
        "type": "Available",
        "status": "True" if enough else "False",
        "reason": "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable",
    }
    return {
        **counts,
        "updatedReplicas": (new.get("status") or {}).get("replicas", 0) if new is not None else 0,
        "unavailableReplicas": max(wanted - counts["availableReplicas"], 0),
        "observedGeneration": deploy["metadata"].get("generation", 1),
        "conditions": with_condition(deploy.get("status") or {}, condition, format_time(now))["conditions"],
    }
