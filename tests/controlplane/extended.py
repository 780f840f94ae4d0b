"""An unmodified kube-scheduler with our extender on a plane: what runs, what is created, and what a watch shows of it."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import urllib3
import yaml
from prometheus_client import CollectorRegistry

from extender.actions import ACTIONS
from extender.api import labels
from extender.api.meta import NODE, POD, POD_GROUP, PRIORITY_CLASS, QUEUE, Json, Key, annotations_of, key_of
from extender.cluster.clock import SteadyClock
from extender.cluster.following import Follower
from extender.cluster.in_process import Listen
from extender.cluster.kubernetes import KubernetesCluster, connect
from extender.core import conf
from extender.plugins import PLUGINS
from extender.server import running
from extender.service import Service
from extender.testing.builders import node, podgroup, task
from tests.controlplane.plane import SCHEDULER, Plane
from tests.controlplane.processes import free_ports
from tests.controlplane.waiting import wait_until

CONFIGURATION = Path(__file__).resolve().parents[2] / "manifests" / "kube-scheduler" / "configuration.yaml"
EXTENDER = "vc-extender"
GANGS, SIZE, ROOM = 40, 8, 15


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
    """vc-scheduler --extender-only as a process, with the rights of the ServiceAccount that we ship; or by another kubeconfig."""

    def __init__(self, plane: Plane, by: Path | None = None) -> None:
        self._plane = plane
        (self.port,) = free_ports(1)
        _install(plane)
        kubeconfig = by or plane.kubeconfig_of_service_account("volcano-system", "vc-extender")
        self._command = [sys.executable, "-c", "from extender.cli import main; main()", f"--kubeconfig={kubeconfig}",
                         "--extender-only", f"--extender-address=127.0.0.1:{self.port}", "--leader-elect-lease-duration=600s",
                         "--leader-elect-renew-deadline=300s", "--leader-elect-retry-period=500ms"]  # fmt: skip

    def start(self) -> None:
        self._plane.processes.start(EXTENDER, self._command)
        wait_until(self._ready, "the extender to be ready")

    def kill(self) -> None:
        self._plane.processes.end(EXTENDER, signal.SIGKILL)
        self._forget_lease()

    def close(self) -> None:
        with suppress(KeyError):  # not running
            self._plane.processes.end(EXTENDER)
        self._forget_lease()

    def _forget_lease(self) -> None:
        """So that it may last however long the machine stands still, and the next one need not wait for its end."""
        self._plane.request("DELETE", f"/apis/coordination.k8s.io/v1/namespaces/volcano-system/leases/{EXTENDER}")

    def _ready(self) -> bool:
        return is_ready(self.port)


def is_ready(port: int) -> bool:
    """Does the extender at this port answer?"""
    try:
        return urllib3.request("GET", f"http://127.0.0.1:{port}/readyz", retries=False, timeout=2.0).status == 200
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
    """A watch that remembers where each pod was seen, how many pods of one CPU each node had at most, and how many a cluster
    with room for `room` of them ever owed: pods that are there, and the members that a gang lacks which has begun.

    A gang that began before there was room for all of it makes `owed` more than `room`, however fast or slow the machine is."""

    def __init__(self, cluster: KubernetesCluster, namespace: str, room: int) -> None:
        self._follower = Follower(cluster, POD)
        self._namespace = namespace
        self.room = room
        self.overdrawn = 0  # the most that was owed beyond the room
        self._excused: set[str] = set()  # gangs that were hit amid their beginning
        self._lost: set[str] = set()  # nodes
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._there: dict[str, set[str]] = {}  # node -> uids of pods that have not ended
        self.nodes: dict[str, list[str]] = {}  # pod uid -> nodes it was seen on
        self.gangs: dict[str, int] = {}  # members of each that have got a node
        self.plain: set[str] = set()
        self.most = 0  # pods on one node at the same time
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            for event in self._follower.poll(0.2):
                pod = event.object
                on = (pod.get("spec") or {}).get("nodeName")
                if key_of(pod).namespace == self._namespace and on:
                    with self._lock:
                        self._count(event.type, pod, on)
        self._follower.close()

    def _count(self, event: str, pod: Json, on: str) -> None:
        uid, gang = pod["metadata"]["uid"], annotations_of(pod).get(labels.GROUP_NAME)
        there = self._there.setdefault(on, set())
        if event == "DELETED" or pod["status"].get("phase") in ("Succeeded", "Failed"):
            there.discard(uid)
        else:
            there.add(uid)
        self.most = max(self.most, len(there))
        seen = self.nodes.setdefault(uid, [])
        if on in seen:
            return
        seen.append(on)
        if gang is None:
            self.plain.add(uid)
        else:
            self.gangs[gang] = self.gangs.get(gang, 0) + 1
        self.overdrawn = max(self.overdrawn, self._owed() - self.room)

    def _owed(self) -> int:
        missing = sum(max(SIZE - count, 0) for gang, count in self.gangs.items() if gang not in self._excused)
        return missing + sum(len(pods) for node, pods in self._there.items() if node not in self._lost)

    def lose(self, node: str) -> None:
        """The node is gone, and whoever could bind anything has been killed; what was on its way then has arrived."""
        with self._lock:
            self._lost.add(node)
            self._excused |= {gang for gang, count in self.gangs.items() if count < SIZE}
            self.room -= SIZE

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def members(self) -> int:
        return sum(self.gangs.values())


def deployment(namespace: str, replicas: int, priority_class: str = "") -> Json:
    container = {"name": "main", "image": "example.test/app:1", "resources": {"requests": {"cpu": "1"}}}
    template = {"metadata": {"labels": {"app": "plain"}},
                "spec": {"containers": [container], "priorityClassName": priority_class}}  # fmt: skip
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "plain", "namespace": namespace},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "plain"}}, "template": template}}  # fmt: skip


def bare(obj: Any, namespace: str) -> Json:
    """As a person would write it."""
    metadata = {name: value for name, value in obj["metadata"].items() if name != "uid"}
    return {**{name: value for name, value in obj.items() if name != "status"}, "metadata": metadata | {"namespace": namespace}}


ENDS = {labels.RUN_SECONDS: "1"}  # annotation of pods that run for a second; without it they do not end


def member(namespace: str, g: int, i: int, scheduler: str = labels.DEFAULT_SCHEDULER, *, ends: bool = True) -> Json:
    made = task(f"g{g}-{i}", f"g{g}").scheduler(scheduler).cpu(1)
    for name, value in ENDS.items() if ends else ():
        made.annotate(name, value)
    return bare(made, namespace)


def create(kubernetes: KubernetesCluster, namespace: str, gangs: int, every: int = 1, *, ends: bool = True) -> None:
    """The groups, then the members of all gangs, mixed. No queue controller runs here.

    One gang in `every` is kube-scheduler's, the others are for our own loop."""
    kubernetes.patch(QUEUE, Key("", "default"), {"status": {"state": "Open"}}, subresource="status")
    for g in range(gangs):
        kubernetes.create(POD_GROUP, bare(podgroup(f"g{g}").members(SIZE), namespace))
    for i in range(SIZE):
        for g in range(gangs):
            kubernetes.create(POD, member(namespace, g, i, "volcano" if g % every else labels.DEFAULT_SCHEDULER, ends=ends))


@contextmanager
def priority_class(kubernetes: KubernetesCluster, name: str) -> Iterator[str]:
    """Above all others of ours."""
    kubernetes.create(PRIORITY_CLASS, {"metadata": {"name": name}, "value": 1000})
    try:
        yield name
    finally:
        kubernetes.delete(PRIORITY_CLASS, Key("", name))


@contextmanager
def nodes(kubernetes: KubernetesCluster, prefix: str, count: int) -> Iterator[list[str]]:
    """Each with room for a gang. The list may be shortened meanwhile."""
    names = [f"{prefix}{i}" for i in range(count)]
    for name in names:
        kubernetes.create(NODE, node(name).cpu(SIZE).memory("64Gi"))
    try:
        yield names
    finally:
        for name in names:
            kubernetes.delete(NODE, Key("", name))
