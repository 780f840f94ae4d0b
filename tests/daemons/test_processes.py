"""The real processes on a real control plane: a job runs, signals are obeyed, a killed leader is followed."""

from __future__ import annotations

import contextlib
import json
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import urllib3

from extender.api.meta import JOB, LEASE, NODE, POD, POD_GROUP, QUEUE, Json, Key, key_of, parse_time, uid_of
from extender.cluster.following import Follower
from extender.cluster.kubernetes import KubernetesCluster
from extender.testing.builders import Built, node, podgroup, task
from tests.controlplane.daemons import CONTROLLERS, LEASES, SCHEDULER, SYSTEM, Daemons, make_system_namespace
from tests.controlplane.plane import API_SERVER, Plane
from tests.controlplane.processes import free_ports
from tests.controlplane.waiting import wait_until

BOTH = (SCHEDULER, CONTROLLERS)
LEASE_SECONDS = 12.0
QUICK = (f"--leader-elect-lease-duration={LEASE_SECONDS}s", "--leader-elect-renew-deadline=10s",
         "--leader-elect-retry-period=500ms")  # fmt: skip
BURST, CREATING, ROOM = 2000, 8, 500  # pods, at once, on one node


@pytest.fixture
def daemons(plane: Plane, kubernetes: KubernetesCluster) -> Iterator[Daemons]:
    make_system_namespace(kubernetes)
    kubernetes.create(NODE, node("big").cpu(64).memory("64Gi").pods(ROOM))
    daemons = Daemons(plane, kubernetes)
    yield daemons
    daemons.forget_all()
    kubernetes.delete(NODE, Key("", "big"))
    for lease in kubernetes.list(LEASE, SYSTEM).objects:
        kubernetes.delete(LEASE, Key(SYSTEM, lease["metadata"]["name"]))


@pytest.fixture
def wide(kubernetes: KubernetesCluster) -> Iterator[None]:
    """Beside the one node, four more: room for the burst and a quarter more."""
    names = [f"wide-{i}" for i in range(4)]
    for name in names:
        kubernetes.create(NODE, node(name).cpu(64).memory("64Gi").pods(ROOM))
    yield
    for name in names:
        kubernetes.delete(NODE, Key("", name))


def gang(ns: str) -> Json:
    resources = {"requests": {"cpu": "100m", "memory": "64Mi"}}
    containers = [{"name": "main", "image": "example.test/app:1", "resources": resources}]
    tasks = [{"name": "worker", "replicas": 3, "template": {"spec": {"containers": containers, "restartPolicy": "Never"}}}]
    return Built(JOB, "gang", ns) | {"spec": {"schedulerName": "volcano", "queue": "default", "minAvailable": 3, "tasks": tasks}}


def phase_of(cluster: KubernetesCluster, ns: str) -> str:
    status = cluster.get(JOB, Key(ns, "gang")).get("status") or {}
    return str((status.get("state") or {}).get("phase", ""))


def page(port: int, path: str) -> str:
    """Empty where nobody answers yet."""
    try:
        return urllib3.PoolManager(retries=False).request("GET", f"http://127.0.0.1:{port}{path}", timeout=5.0).data.decode()
    except urllib3.exceptions.HTTPError:
        return ""


def test_a_job_runs_and_signals_are_obeyed(
    daemons: Daemons, kubernetes: KubernetesCluster, new_namespace: Callable[[], str], tmp_path: Path
) -> None:
    """From the job to running pods by the two processes alone; a dump on request; a clean end that lets go of the leases."""
    health, metrics = free_ports(2)
    daemons.start(SCHEDULER, "--schedule-period=100ms", "--enable-healthz", "--enable-metrics", f"--cache-dump-dir={tmp_path}",
                   f"--healthz-address=127.0.0.1:{health}", f"--listen-address=127.0.0.1:{metrics}", "2>&1")  # fmt: skip
    daemons.start(CONTROLLERS)
    wait_until(lambda: kubernetes.list(QUEUE).objects, "the default queue")
    ns = new_namespace()
    kubernetes.create(JOB, gang(ns))
    wait_until(lambda: phase_of(kubernetes, ns) == "Running", "the job to run")
    wait_until(lambda: page(health, "/readyz") == "ok", "it to say that it is ready")
    scheduled = 'volcano_schedule_attempts_total{result="scheduled"} 3.0'
    wait_until(lambda: scheduled in page(metrics, "/metrics"), "the metrics of three pods")
    daemons.send(SCHEDULER, signal.SIGUSR2)
    wait_until(lambda: any(tmp_path.glob("snapshot-*.json")), "the dump")
    dumped = json.loads(next(tmp_path.glob("snapshot-*.json")).read_text())
    assert {each["node"] for each in dumped["tasks"].values() if each["job"].startswith(f"{ns}/")} == {"big"}
    held = [bool(daemons.holder(program)) for program in BOTH]
    ended = [daemons.end(program, signal.SIGTERM) for program in BOTH]
    assert (held, ended, [daemons.holder(program) for program in BOTH]) == ([True, True], [0, 0], ["", ""])


def test_an_api_server_that_comes_back_finds_them_at_work(
    plane: Plane, daemons: Daemons, kubernetes: KubernetesCluster, new_namespace: Callable[[], str]
) -> None:
    """kill -9 the server and start it again: the same processes go on, still leading."""
    patient = ("--leader-elect-lease-duration=80s", "--leader-elect-renew-deadline=60s", "--leader-elect-retry-period=500ms")
    for program in BOTH:
        daemons.start(program, *patient)
    wait_until(lambda: kubernetes.list(QUEUE).objects, "the default queue")
    first, second = new_namespace(), new_namespace()
    kubernetes.create(JOB, gang(first))
    wait_until(lambda: phase_of(kubernetes, first) == "Running", "the job to run")
    holders = [daemons.holder(program) for program in BOTH]
    plane.kill(API_SERVER)
    wait_until(lambda: "the lease cannot be renewed" in daemons.says(SCHEDULER), "the outage to be felt")
    plane.restart(API_SERVER)
    kubernetes.create(JOB, gang(second))
    wait_until(lambda: phase_of(kubernetes, second) == "Running", "the next job to run")
    assert [daemons.holder(program) for program in BOTH] == holders


class Seen:
    """Where a watch saw the pods of a namespace."""

    def __init__(self, cluster: KubernetesCluster, ns: str) -> None:
        self._follower, self._ns = Follower(cluster, POD), ns
        self.nodes: dict[str, set[str]] = {}  # uid -> nodes

    def bound(self) -> int:
        """How many have a node by now."""
        for event in self._follower.poll():
            on = (event.object.get("spec") or {}).get("nodeName")
            if key_of(event.object).namespace == self._ns and on:
                self.nodes.setdefault(uid_of(event.object), set()).add(on)
        return len(self.nodes)

    def close(self) -> None:
        self._follower.close()


@pytest.mark.usefixtures("wide")
def test_a_killed_leader_is_followed(daemons: Daemons, kubernetes: KubernetesCluster, new_namespace: Callable[[], str]) -> None:
    """kill -9 amid a burst of 2,000 pods: the other one leads once the lease is over, every pod is bound, none twice."""
    for name in ("one", "two"):
        daemons.start(SCHEDULER, "--schedule-period=50ms", *QUICK, name=name)
        wait_until(lambda: LEASES[SCHEDULER] in {each["metadata"]["name"] for each in kubernetes.list(LEASE, SYSTEM).objects},
                   "a leader")  # fmt: skip
    first = daemons.holder(SCHEDULER)
    ns = new_namespace()
    wait_until(lambda: kubernetes.list(QUEUE).objects, "the default queue")
    for each in kubernetes.list(QUEUE).objects:
        kubernetes.patch(QUEUE, Key("", each["metadata"]["name"]), {"status": {"state": "Open"}}, subresource="status")
    kubernetes.create(POD_GROUP, podgroup("g", ns).phase("Inqueue"))
    killed = threading.Event()

    def create(i: int) -> None:
        """The last quarter comes after the kill, so that there is work left however late we look."""
        if i >= BURST * 3 // 4:
            killed.wait()
        kubernetes.create(POD, task(f"g-{i}", "g", ns).cpu("10m"))

    with contextlib.closing(Seen(kubernetes, ns)) as seen, ThreadPoolExecutor(CREATING) as pool:
        made = pool.map(create, range(BURST))
        try:
            wait_until(lambda: seen.bound() > BURST // 4, "the first pods to be bound")
            daemons.end("one", signal.SIGKILL)
        finally:
            killed.set()
        last_renewal = parse_time(kubernetes.get(LEASE, Key(SYSTEM, LEASES[SCHEDULER]))["spec"]["renewTime"])
        wait_until(lambda: daemons.holder(SCHEDULER) not in ("", first), "the other one to lead")
        taken_over = parse_time(kubernetes.get(LEASE, Key(SYSTEM, LEASES[SCHEDULER]))["spec"]["acquireTime"])
        assert len(list(made)) == BURST
        wait_until(lambda: seen.bound() == BURST, "every pod to be bound")
    assert [on for on in seen.nodes.values() if len(on) != 1] == []
    assert max(Counter(on for each in seen.nodes.values() for on in each).values()) <= ROOM
    # Not sooner; how soon after it is told on a virtual clock (test_lease.py), for here it is the machine's pace.
    assert (taken_over or 0) - (last_renewal or 0) > LEASE_SECONDS - 1.0
