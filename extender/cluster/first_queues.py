"""The queues that are always there: root, and the default queue, of which all others are children."""

from __future__ import annotations

import contextlib

from extender.api import queue
from extender.api.errors import AlreadyExists, NotFound
from extender.api.meta import QUEUE, Json, key_of
from extender.cluster.port import Cluster


def first_queues(default_queue: str = queue.DEFAULT) -> list[Json]:
    specs = ((queue.ROOT, {"weight": 1, "reclaimable": False}), (default_queue, {"weight": 1, "reclaimable": True}))
    same = {"apiVersion": QUEUE.api_version, "kind": QUEUE.name}
    return [{**same, "metadata": {"name": name}, "spec": spec} for name, spec in specs]


def ensure_queues(cluster: Cluster, default_queue: str) -> None:
    """Make them where they are missing."""
    for wanted in first_queues(default_queue):
        try:
            cluster.get(QUEUE, key_of(wanted))
        except NotFound:
            with contextlib.suppress(AlreadyExists):
                cluster.create(QUEUE, wanted)
