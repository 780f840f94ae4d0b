"""An unmodified kube-scheduler with our extender, on a real API server."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from extender.actions import ACTIONS
from extender.api import labels
from extender.api.meta import DEPLOYMENT, NODE, POD, POD_GROUP, QUEUE, Json, Key, annotations_of, key_of
from extender.cluster.clock import SteadyClock
from extender.cluster.following import Follower
from extender.cluster.kubernetes import KubernetesCluster, connect
from extender.core import conf
from extender.plugins import PLUGINS
from extender.server import Listen, Server, running
from extender.service import Service
from extender.testing.builders import node, podgroup, task
from tests.controlplane.plane import SCHEDULER, Plane
from tests.controlplane.waiting import wait_until

CONFIGURATION = Path(__file__).resolve().parents[2] / "manifests" / "kube-scheduler" / "configuration.yaml"
GANGS, SIZE, ROOM = 40, 8, 15
PATIENCE = 120.0
AT_ONCE = 3.0  # seconds within which the bindings of a gang are written; room that a part waited for would take longer


@contextmanager
def extended(plane: Plane) -> Iterator[Server]:
    """An extender and a kube-scheduler that asks it, by the configuration that we ship."""
    cluster = connect(str(plane.kubeconfig))
    service = Service(cluster, conf.load(conf.DEFAULT, PLUGINS, ACTIONS), SteadyClock())
    with running(service, Listen(("127.0.0.1", 0), threads=512), CollectorRegistry()) as server:
        configuration = yaml.safe_load(CONFIGURATION.read_text())
        configuration["extenders"][0]["urlPrefix"] = f"http://127.0.0.1:{server.port}/extender/v1"
        wait_until(lambda: not service.lagging(), "the extender's lists")
        plane.start_scheduler(configuration | {"leaderElection": {"leaderElect": False}})
        try:
            yield server
        finally:
            plane.processes.end(SCHEDULER)
    cluster.close()


class Bindings:
    """A watch that remembers where each pod was seen, and when the members of each gang got their nodes."""

    def __init__(self, cluster: KubernetesCluster, namespace: str) -> None:
        self._follower = Follower(cluster, POD)
        self._namespace = namespace
        self._stop = threading.Event()
        self.nodes: dict[str, list[str]] = {}  # pod uid -> nodes it was seen on
        self.times: dict[str, list[float]] = {}  # gang -> when each of its bindings was seen
        self.plain: set[str] = set()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            for event in self._follower.poll(0.2):
                pod = event.object
                on = (pod.get("spec") or {}).get("nodeName")
                if key_of(pod).namespace != self._namespace or not on:
                    continue
                uid, gang = pod["metadata"]["uid"], annotations_of(pod).get(labels.GROUP_NAME)
                seen = self.nodes.setdefault(uid, [])
                if on not in seen:
                    seen.append(on)
                    if gang is None:
                        self.plain.add(uid)
                    else:
                        self.times.setdefault(gang, []).append(time.monotonic())
        self._follower.close()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def members(self) -> int:
        return sum(len(times) for times in self.times.values())


def _deployment(namespace: str, replicas: int) -> Json:
    resources = {"requests": {"cpu": "1"}}
    template = {"metadata": {"labels": {"app": "plain"}}, "spec": {"containers": [{"name": "main", "image": "example.test/app:1",
                                                                                "resources": resources}]}}  # fmt: skip
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "plain", "namespace": namespace},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "plain"}}, "template": template}}  # fmt: skip


def _bare(obj: Any, namespace: str) -> Json:
    """As a person would write it."""
    metadata = {name: value for name, value in obj["metadata"].items() if name != "uid"}
    return {**{name: value for name, value in obj.items() if name != "status"}, "metadata": metadata | {"namespace": namespace}}


def _pods(namespace: str, gangs: int, seconds: str) -> Iterator[Json]:
    """Members of all gangs, mixed."""
    for i in range(SIZE):
        for g in range(gangs):
            pod = task(f"g{g}-{i}", f"g{g}").scheduler(labels.DEFAULT_SCHEDULER).cpu(1).annotate(labels.RUN_SECONDS, seconds)
            yield _bare(pod, namespace)


@pytest.mark.timeout(300)
def test_gangs_start_whole_through_kube_scheduler(
    plane: Plane, kubernetes: KubernetesCluster, new_namespace: Callable[[], str]
) -> None:
    """40 gangs and a Deployment compete for room for 15 gangs: all run in the end, none is ever started in part."""
    namespace = new_namespace()
    for i in range(ROOM):
        kubernetes.create(NODE, node(f"x{i}").cpu(SIZE).memory("64Gi"))
    bindings = Bindings(kubernetes, namespace)
    try:
        with extended(plane):
            kubernetes.patch(QUEUE, Key("", "default"), {"status": {"state": "Open"}}, subresource="status")
            for g in range(GANGS):
                kubernetes.create(POD_GROUP, _bare(podgroup(f"g{g}").members(SIZE), namespace))
            for pod in _pods(namespace, GANGS, "1"):
                kubernetes.create(POD, pod)
            kubernetes.create(DEPLOYMENT, _deployment(namespace, 2 * SIZE))
            wait_until(lambda: bindings.members == GANGS * SIZE, "all gangs to be bound", PATIENCE)
            wait_until(lambda: len(bindings.plain) >= 2 * SIZE, "the Deployment to be bound", PATIENCE)
    finally:
        bindings.close()
        for i in range(ROOM):
            kubernetes.delete(NODE, Key("", f"x{i}"))
    assert {len(times) for times in bindings.times.values()} == {SIZE}
    assert all(len(nodes) == 1 for nodes in bindings.nodes.values())
    assert max(max(times) - min(times) for times in bindings.times.values()) < AT_ONCE
