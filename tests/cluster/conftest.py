"""The fixtures of the contract suite: `cluster` is each adapter in turn, `ns` a fresh namespace in it.

A test that takes `cluster` is a sentence about API servers: it must hold for a real one too, so it makes its own objects in
its own namespace and waits with `becomes` for what a server does in its own time."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Protocol

import pytest

from extender.api.meta import NAMESPACE, NODE, Key
from extender.cluster.clock import VirtualClock
from extender.cluster.kubernetes import KubernetesCluster
from extender.cluster.memory import MemoryCluster
from extender.cluster.port import Cluster
from tests.controlplane.fixtures import namespaces
from tests.controlplane.plane import NOT_PLAYED
from tests.controlplane.waiting import wait_until

START = 1_736_121_600.0  # 2025-01-06T00:00:00Z
NODES = ("n1", "n2")
_NUMBERS = itertools.count()


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(START)


@pytest.fixture
def memory(clock: VirtualClock) -> MemoryCluster:
    """The embedded cluster itself, for tests of what only it has."""
    return MemoryCluster(clock)


@pytest.fixture(scope="module")
def server(kubernetes: KubernetesCluster) -> Iterator[KubernetesCluster]:
    """A real API server with nodes on which nobody plays the kubelet."""
    for name in NODES:
        kubernetes.create(NODE, {"metadata": {"name": name, "labels": {NOT_PLAYED: "true"}}})
    yield kubernetes
    for name in NODES:
        kubernetes.delete(NODE, Key("", name))


@pytest.fixture(scope="module")
def namespace_on_server(server: KubernetesCluster) -> Iterator[Callable[[], str]]:
    """Namespaces go together when the last test of a module is over."""
    with namespaces(server) as make:
        yield make


@pytest.fixture(params=["memory", pytest.param("server", marks=pytest.mark.controlplane, id="kubernetes")])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    adapter: Cluster = request.getfixturevalue(request.param)
    return adapter


@pytest.fixture
def ns(cluster: Cluster, request: pytest.FixtureRequest) -> str:
    """The name of a namespace that is empty."""
    if not isinstance(cluster, MemoryCluster):
        name: str = request.getfixturevalue("namespace_on_server")()
        return name
    name = f"t-{next(_NUMBERS)}"
    cluster.create(NAMESPACE, {"metadata": {"name": name}})
    return name


class Becomes(Protocol):
    def __call__(self, seen: Callable[[], object], wanted: object) -> None: ...


@pytest.fixture
def becomes(cluster: Cluster) -> Becomes:
    """`becomes(lambda: what_is_there, wanted)`: what the cluster does by itself leads there."""

    def becomes(seen: Callable[[], object], wanted: object) -> None:
        if isinstance(cluster, MemoryCluster):
            cluster.settle()
        else:
            wait_until(lambda: seen() == wanted, f"it to become {wanted}")
        assert seen() == wanted

    return becomes
