"""Fake nodes and gangs of pods on a real API server, made and removed by many requests side by side.

Nothing here runs: no kubelet stands behind the nodes. A taint and a selector keep other pods off them and ours on them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from extender.api import queue
from extender.api.errors import AlreadyExists, NotFound
from extender.api.labels import GROUP_NAME
from extender.api.meta import (
    JOB,
    LEASE,
    MUTATING_WEBHOOKS,
    NAMESPACE,
    NODE,
    POD,
    POD_GROUP,
    QUEUE,
    SERVICE_ACCOUNT,
    VALIDATING_WEBHOOKS,
    Json,
    Key,
    Kind,
    Time,
    format_time,
    key_of,
)
from extender.cluster.port import Cluster

OWNER = "pumice-bench"
MANAGED_BY = "app.kubernetes.io/managed-by"
OURS = f"{MANAGED_BY}={OWNER}"
NODE_LEASES = "kube-node-lease"
SIDE_BY_SIDE = 8  # kept-alive connections; more of them bring no more out of an API server on two cores
_LABELS = {MANAGED_BY: OWNER}
_ROOM = {"cpu": "32", "memory": "256Gi", "pods": "110"}
_ASKED = {"cpu": "1", "memory": "1Gi"}
_LEASE_SECONDS = 40

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Load:
    """Gangs of equal pods; the same pods without groups where they are `plain`."""

    namespace: str
    scheduler_name: str
    gangs: int
    size: int
    plain: bool = False

    @property
    def pods(self) -> int:
        return self.gangs * self.size


def side_by_side(do: Callable[[T], object], things: Iterable[T]) -> None:
    """All of them, or the first error."""
    with ThreadPoolExecutor(SIDE_BY_SIDE, thread_name_prefix="load") as pool:
        for _ in pool.map(do, things):
            pass


# --- objects ------------------------------------------------------------------------------------------------------------


def labelled(namespace: str, name: str) -> Json:
    """The metadata of something that `remove_all` finds."""
    return {"name": name, "labels": dict(_LABELS), **({"namespace": namespace} if namespace else {})}


def node(name: str, now: Time, labels: dict[str, str]) -> Json:
    at = format_time(now)
    ready = {"type": "Ready", "status": "True", "reason": "Fake", "message": "nothing runs here",
             "lastHeartbeatTime": at, "lastTransitionTime": at}  # fmt: skip
    return {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {**_LABELS, "kubernetes.io/hostname": name, **labels}},
        "spec": {"taints": [_taint()]},
        "status": {"allocatable": dict(_ROOM), "capacity": dict(_ROOM), "conditions": [ready]},
    }  # fmt: skip


def group(load: Load, name: str) -> Json:
    least = {"cpu": str(load.size), "memory": f"{load.size}Gi"}
    return {
        "apiVersion": POD_GROUP.api_version, "kind": POD_GROUP.name,
        "metadata": labelled(load.namespace, name),
        "spec": {"minMember": load.size, "queue": OWNER, "minResources": least},
    }  # fmt: skip


def pod(load: Load, name: str, member_of: str, on: str = "") -> Json:
    meta = labelled(load.namespace, name)
    if not load.plain:
        meta["annotations"] = {GROUP_NAME: member_of}
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": meta,
        "spec": {
            "schedulerName": load.scheduler_name,
            "containers": [{"name": "main", "image": "registry.example/nothing:1", "resources": {"requests": dict(_ASKED)}}],
            "nodeSelector": dict(_LABELS),
            "tolerations": [{"key": OWNER, "operator": "Exists"}],
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
            **({"nodeName": on} if on else {}),
        },
    }  # fmt: skip


def _taint() -> Json:
    return {"key": OWNER, "value": "true", "effect": "NoSchedule"}


def groups(load: Load) -> Iterator[Json]:
    return iter(()) if load.plain else (group(load, f"gang-{g}") for g in range(load.gangs))


def pods(load: Load, nodes: int = 0) -> Iterator[Json]:
    """On nodes already, in turn, where `nodes` says how many there are."""
    for g in range(load.gangs):
        for i in range(load.size):
            number = g * load.size + i
            yield pod(load, f"gang-{g}-{i}", f"gang-{g}", node_name(number % nodes) if nodes else "")


def node_name(number: int) -> str:
    return f"{OWNER}-{number}"


# --- on the server ------------------------------------------------------------------------------------------------------


def make_namespace(cluster: Cluster, name: str) -> None:
    """Ready for pods: its service account need not wait for a controller."""
    cluster.create(NAMESPACE, {"metadata": {"name": name, "labels": dict(_LABELS)}})
    with contextlib.suppress(AlreadyExists):
        cluster.create(SERVICE_ACCOUNT, {"metadata": {"namespace": name, "name": "default"}})


def make_queue(cluster: Cluster) -> None:
    """Open without a controller that would open it: a queue of nobody else's, whatever the others have left."""
    cluster.create(QUEUE, {"metadata": {"name": OWNER, "labels": dict(_LABELS)}, "spec": {"weight": 1, "reclaimable": False}})
    cluster.patch(QUEUE, Key("", OWNER), {"status": {"state": queue.OPEN}}, subresource="status")


def make_nodes(cluster: Cluster, count: int, now: Time, labels: dict[str, str]) -> None:
    """Ready and without the taint that an API server puts on new nodes."""

    def make(number: int) -> None:
        wanted = node(node_name(number), now, labels)
        made = cluster.create(NODE, wanted)
        if len(made["spec"].get("taints") or ()) > 1:
            cluster.patch(NODE, key_of(made), {"spec": {"taints": [_taint()]}})

    side_by_side(make, range(count))


def keep_ready(cluster: Cluster, count: int, now: Time) -> None:
    """Renew the nodes' leases, as kubelets do, lest the node controller takes the nodes for lost."""
    renewed = format_time(now).replace("Z", ".000000Z")

    def renew(number: int) -> None:
        name = node_name(number)
        spec = {"holderIdentity": name, "leaseDurationSeconds": _LEASE_SECONDS, "renewTime": renewed}
        try:
            cluster.patch(LEASE, Key(NODE_LEASES, name), {"spec": spec})
        except NotFound:
            cluster.create(LEASE, {"metadata": {"namespace": NODE_LEASES, "name": name, "labels": dict(_LABELS)}, "spec": spec})

    side_by_side(renew, range(count))


def make_gangs(cluster: Cluster, load: Load, nodes: int = 0) -> None:
    """`nodes`: pods run already, spread over so many."""

    def make(obj: Json) -> None:
        cluster.create(POD, obj)
        if nodes:
            cluster.patch(POD, key_of(obj), {"status": {"phase": "Running"}}, subresource="status")

    side_by_side(lambda obj: cluster.create(POD_GROUP, obj), groups(load))
    side_by_side(make, pods(load, nodes))


def remove_gangs(cluster: Cluster, namespace: str) -> None:
    _remove(cluster, POD, namespace)
    with contextlib.suppress(NotFound):  # no such kind
        _remove(cluster, POD_GROUP, namespace)


def remove_all(cluster: Cluster) -> None:
    """Whatever has our label, of earlier runs too: webhooks first, for nobody answers them any more."""
    for kind in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS):
        _remove(cluster, kind)
    remove_gangs(cluster, "")
    with contextlib.suppress(NotFound):  # no such kind
        _remove(cluster, JOB)
    with contextlib.suppress(NotFound):  # no such kind, or no such queue; admission deletes closed ones only
        cluster.patch(QUEUE, Key("", OWNER), {"status": {"state": queue.CLOSED}}, subresource="status")
        _remove(cluster, QUEUE)
    _remove(cluster, NODE)
    _remove(cluster, LEASE, NODE_LEASES)
    _remove(cluster, NAMESPACE)


def _remove(cluster: Cluster, kind: Kind, namespace: str = "") -> None:
    def remove(key: Key) -> None:
        with contextlib.suppress(NotFound):
            cluster.delete(kind, key, grace_seconds=0)

    side_by_side(remove, [key_of(obj) for obj in cluster.list(kind, namespace, label_selector=OURS).objects])
