"""Where jobs and groups go, as both say it: the queue, and the bound in the network topology."""

from __future__ import annotations

from extender.api.checks import Faults
from extender.api.errors import Fault
from extender.api.meta import Json
from extender.api.queue import OPEN
from webhook.view import ClusterView


def open_queue_faults(name: str, cluster: ClusterView, path: str) -> Faults:
    """Work enters only a queue that is there and Open; one without a state is not open yet."""
    queue = cluster.queue(name)
    if queue is None:
        yield Fault(path, f"queue '{name}' not found; create it or name another")
        return
    state = queue.get("status", {}).get("state", "")
    if state != OPEN:
        yield Fault(path, f"queue '{name}' is {state or 'without a state'}, only an {OPEN} queue takes work")


def topology_faults(topology: Json, path: str) -> Faults:
    if "highestTierAllowed" in topology and topology.get("highestTierName"):
        yield Fault(path, "highestTierAllowed and highestTierName exclude each other: give only one")
