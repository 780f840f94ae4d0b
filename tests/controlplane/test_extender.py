"""An unmodified kube-scheduler with our extender, on a real API server."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import urllib3
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
from extender.server import Listen, running
from extender.service import Service
from extender.testing.builders import node, podgroup, task
from tests.controlplane.plane import SCHEDULER, Plane
from tests.controlplane.processes import free_ports
from tests.controlplane.waiting import wait_until

CONFIGURATION = Path(__file__).resolve().parents[2] / "manifests" / "kube-scheduler" / "configuration.yaml"
EXTENDER = "vc-extender"
GANGS, SIZE, ROOM = 40, 8, 15
PATIENCE = 120.0
AT_ONCE = 3.0  # seconds within which the bindings of a gang are written; room that a part waited for would take longer


@contextmanager
def kube_scheduler(plane: Plane, port: int) -> Iterator[None]:
    """By the configuration that we ship."""
    configuration = yaml.safe_load(CONFIGURATION.read_text())
    configuration["extenders"][0]["urlPrefix"] = f"http://127.0.0.1:{port}/extender/v1"
    plane.start_scheduler(configuration | {"leaderElection": {"leaderElect": False}})
    try:
        yield
    finally:
        plane.processes.end(SCHEDULER)


@contextmanager
def extended(plane: Plane) -> Iterator[None]:
    """An extender in this process, and a kube-scheduler that asks it."""
    cluster = connect(str(plane.kubeconfig))
    service = Service(cluster, conf.load(conf.DEFAULT, PLUGINS, ACTIONS), SteadyClock())
    with running(service, Listen(("127.0.0.1", 0), threads=512), CollectorRegistry()) as server:
        wait_until(lambda: not service.lagging(), "the extender's lists")
        with kube_scheduler(plane, server.port):
            yield
    cluster.close()


class Daemon:
    """vc-scheduler --extender-only as a process, with the rights of the ServiceAccount that we ship."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        self.port, = free_ports(1)
        _install(plane)
        kubeconfig = plane.kubeconfig_of_service_account("volcano-system", "vc-extender")
        self._command = [sys.executable, "-c", "from extender.cli import main; main()", f"--kubeconfig={kubeconfig}",
                         "--extender-only", f"--extender-address=127.0.0.1:{self.port}", "--leader-elect-lease-duration=3s",
                         "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=500ms"]  # fmt: skip

    def start(self) -> None:
        self._plane.processes.start(EXTENDER, self._command)
        wait_until(self._ready, "the extender to be ready", 30.0)

    def kill(self) -> None:
        self._plane.processes.end(EXTENDER, signal.SIGKILL)

    def _ready(self) -> bool:
        try:
            return urllib3.request("GET", f"http://127.0.0.1:{self.port}/readyz", retries=False, timeout=2.0).status == 200
        except urllib3.exceptions.HTTPError:
            return False


def _install(plane: Plane) -> None:
    """The objects of extender.yaml but its Deployment and Service, which nothing here would run."""
    rbac, core = "/apis/rbac.authorization.k8s.io/v1", "/api/v1"
    inside = "/namespaces/volcano-system"
    paths = {"ServiceAccount": f"{core}{inside}/serviceaccounts", "ClusterRole": f"{rbac}/clusterroles",
             "ClusterRoleBinding": f"{rbac}/clusterrolebindings", "Role": f"{rbac}{inside}/roles",
             "RoleBinding": f"{rbac}{inside}/rolebindings"}  # fmt: skip
    plane.request("POST", f"{core}/namespaces", {"metadata": {"name": "volcano-system"}})
    for obj in yaml.safe_load_all(CONFIGURATION.with_name("extender.yaml").read_text()):
        if obj["kind"] in paths:
            status, answer = plane.request("POST", paths[obj["kind"]], obj)
            assert status in (201, 409), answer


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


def _member(namespace: str, g: int, i: int, seconds: str = "1") -> Json:
    pod = task(f"g{g}-{i}", f"g{g}").scheduler(labels.DEFAULT_SCHEDULER).cpu(1).annotate(labels.RUN_SECONDS, seconds)
    return _bare(pod, namespace)


def _create(kubernetes: KubernetesCluster, namespace: str, gangs: int) -> None:
    """The groups, then the members of all gangs, mixed. No queue controller runs here."""
    kubernetes.patch(QUEUE, Key("", "default"), {"status": {"state": "Open"}}, subresource="status")
    for g in range(gangs):
        kubernetes.create(POD_GROUP, _bare(podgroup(f"g{g}").members(SIZE), namespace))
    for i in range(SIZE):
        for g in range(gangs):
            kubernetes.create(POD, _member(namespace, g, i))


@contextmanager
def _nodes(kubernetes: KubernetesCluster, prefix: str, count: int) -> Iterator[list[str]]:
    """Each with room for a gang. The list may be shortened meanwhile."""
    names = [f"{prefix}{i}" for i in range(count)]
    for name in names:
        kubernetes.create(NODE, node(name).cpu(SIZE).memory("64Gi"))
    try:
        yield names
    finally:
        for name in names:
            kubernetes.delete(NODE, Key("", name))


@pytest.mark.timeout(300)
def test_gangs_start_whole_through_kube_scheduler(
    plane: Plane, kubernetes: KubernetesCluster, new_namespace: Callable[[], str]
) -> None:
    """40 gangs and a Deployment compete for room for 15 gangs: all run in the end, none is ever started in part."""
    namespace = new_namespace()
    bindings = Bindings(kubernetes, namespace)
    with closing(bindings), _nodes(kubernetes, "x", ROOM), extended(plane):
        _create(kubernetes, namespace, GANGS)
        kubernetes.create(DEPLOYMENT, _deployment(namespace, 2 * SIZE))
        wait_until(lambda: bindings.members == GANGS * SIZE, "all gangs to be bound", PATIENCE)
        wait_until(lambda: len(bindings.plain) >= 2 * SIZE, "the Deployment to be bound", PATIENCE)
    assert {len(times) for times in bindings.times.values()} == {SIZE}
    assert all(len(nodes) == 1 for nodes in bindings.nodes.values())
    assert max(max(times) - min(times) for times in bindings.times.values()) < AT_ONCE


@pytest.mark.timeout(300)
def test_what_breaks_in_the_middle_loses_nothing(
    plane: Plane, kubernetes: KubernetesCluster, new_namespace: Callable[[], str]
) -> None:
    """The extender is killed, a node goes, a member is deleted and made again: all gangs run, no pod has two nodes."""
    namespace, gangs = new_namespace(), 12
    bindings, daemon = Bindings(kubernetes, namespace), Daemon(plane)
    daemon.start()
    with closing(bindings), _nodes(kubernetes, "y", 4) as names, kube_scheduler(plane, daemon.port):
        _create(kubernetes, namespace, gangs)
        wait_until(lambda: bindings.members >= SIZE, "the first gang to start", PATIENCE)
        daemon.kill()
        killed = time.monotonic()
        kubernetes.delete(NODE, Key("", names.pop()))
        waiting = next(pod for pod in kubernetes.list(POD, namespace).objects if not pod["spec"].get("nodeName"))
        kubernetes.delete(POD, key_of(waiting), grace_seconds=0)
        g, i = key_of(waiting).name.removeprefix("g").split("-")
        kubernetes.create(POD, _member(namespace, int(g), int(i)))
        daemon.start()
        wait_until(lambda: bindings.members >= gangs * SIZE, "all gangs to be bound", PATIENCE)
    plane.processes.end(EXTENDER)
    assert all(len(nodes) == 1 for nodes in bindings.nodes.values())
    whole = [times for times in bindings.times.values() if not min(times) < killed < max(times)]
    assert max(max(times) - min(times) for times in whole) < AT_ONCE
