"""Waiting for what a real cluster does in its own time. The only place where tests sleep."""

from __future__ import annotations

import time
from collections.abc import Callable

from extender.api.errors import NotFound
from extender.api.meta import CONFIG_MAP, NAMESPACE, Key
from extender.cluster.port import Cluster

PATIENCE = 60.0  # seconds
_QUIET = 0.7  # seconds without a write after which a cluster counts as settled
_STEP = 0.05


def wait_until(holds: Callable[[], object], what: str, patience: float = PATIENCE) -> None:
    """Raises AssertionError where `what` has not come about in time."""
    deadline = time.monotonic() + patience
    while not holds():
        assert time.monotonic() < deadline, f"waited {patience:.0f} s for {what}"
        time.sleep(_STEP)


def wait_until_quiet(cluster: Cluster, namespace: str) -> None:
    """Until nothing has been written anywhere for a while; if the namespace is on its way out, until it is gone."""
    wait_until(lambda: not _is_going(cluster, namespace), f"the end of namespace {namespace}")
    deadline = time.monotonic() + PATIENCE
    version, since = "", time.monotonic()
    while time.monotonic() - since < _QUIET:
        assert time.monotonic() < deadline, f"the cluster is still busy after {PATIENCE:.0f} s"
        newest = cluster.list(CONFIG_MAP, "kube-public").resource_version
        if newest != version:
            version, since = newest, time.monotonic()
        time.sleep(_STEP)


def _is_going(cluster: Cluster, namespace: str) -> bool:
    try:
        return "deletionTimestamp" in cluster.get(NAMESPACE, Key("", namespace))["metadata"]
    except NotFound:
        return False
