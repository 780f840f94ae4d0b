"""The fixtures of the contract suite: `cluster` is each adapter in turn, `ns` a fresh namespace in it.

A test that takes `cluster` is a sentence about API servers: it must hold for a real one too, so it makes its own objects in
its own namespace and waits with `settled` for what a server does in its own time."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from extender.api.meta import NAMESPACE, Json
from extender.cluster.clock import VirtualClock
from extender.cluster.memory import MemoryCluster
from extender.cluster.port import Cluster

START = 1_736_121_600.0  # 2025-01-06T00:00:00Z
_NUMBERS = itertools.count()


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(START)


@pytest.fixture
def memory(clock: VirtualClock) -> MemoryCluster:
    """The embedded cluster itself, for tests of what only it has."""
    return MemoryCluster(clock)


@pytest.fixture(params=["memory"])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    adapter: Cluster = request.getfixturevalue(request.param)
    return adapter


@pytest.fixture
def ns(cluster: Cluster) -> str:
    """The name of a namespace that is empty."""
    name = f"t-{next(_NUMBERS)}"
    namespace: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    cluster.create(NAMESPACE, namespace)
    return name


@pytest.fixture
def settled(cluster: Cluster) -> Callable[[], None]:
    """Call it to let the cluster finish what it does by itself."""
    assert isinstance(cluster, MemoryCluster)

    def settle() -> None:
        cluster.settle()

    return settle
