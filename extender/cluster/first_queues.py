"""The queues that are always there: root, and the default queue, of which all others are children."""

from __future__ import annotations

from extender.api import queue
from extender.api.errors import AlreadyExists, NotFound
from extender.api.meta import QUEUE, Json, Key
from extender.cluster.port import Cluster


def ensure_queues(cluster: Cluster, default_queue: str) -> None:
    """Make them where they are missing."""
    for name, spec in ((queue.ROOT, {"weight": 1, "reclaimable": False}), (default_queue, {"weight": 1, "reclaimable": True})):
        _ensure(cluster, name, spec)


def _ensure(cluster: Cluster, name: str, spec: Json) -> None:
    try:
        cluster.get(QUEUE, Key("", name))
    except NotFound:
        obj = {"apiVersion": QUEUE.api_version, "kind": QUEUE.name, "metadata": {"name": name}, "spec": dict(spec)}
        try:
            cluster.create(QUEUE, obj)
        except AlreadyExists:
            return
