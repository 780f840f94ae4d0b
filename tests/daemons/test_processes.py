"""The real processes on a real control plane: a job runs, signals are obeyed, a killed leader is followed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import urllib3

from extender.api.errors import AlreadyExists
from extender.api.meta import JOB, LEASE, NAMESPACE, NODE, POD, POD_GROUP, QUEUE, Json, Key
from extender.cluster.kubernetes import KubernetesCluster
from extender.testing.builders import Built, node, podgroup, task
from tests.controlplane.plane import API_SERVER, Plane
from tests.controlplane.processes import free_ports
from tests.controlplane.waiting import wait_until

SYSTEM = "volcano-system"
SCHEDULER, CONTROLLERS = "vc-scheduler", "vc-controller-manager"
MAIN = {SCHEDULER: "extender.cli", CONTROLLERS: "controller.cli"}
LEASES = {SCHEDULER: "volcano", CONTROLLERS: CONTROLLERS}
QUICK = ("--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=500ms")


class Programs:
    """Ours, as processes; their logs are shown with those of the plane."""

    def __init__(self, plane: Plane, cluster: KubernetesCluster) -> None:
        self._plane, self._cluster = plane, cluster
        self._running: set[str] = set()

    def start(self, program: str, *flags: str, name: str = "") -> None:
        name = name or program
        code = f"from {MAIN[program]} import main; main()"
        command = [sys.executable, "-c", code, f"--kubeconfig={self._plane.kubeconfig}", "--v=3", *flags]
        self._plane.processes.start(name, command)
        self._running.add(name)

    def send(self, name: str, number: signal.Signals) -> None:
        os.kill(self._plane.processes.pid(name), number)

    def end(self, name: str, number: signal.Signals) -> int | None:
        """Its exit status."""
        self.send(name, number)
        wait_until(lambda: self._plane.processes.exit_status(name) is not None, f"{name} to end")
        status = self._plane.processes.exit_status(name)
        self.forget(name)
        return status

    def forget(self, name: str) -> None:
        self._plane.processes.end(name, signal.SIGKILL)
        self._running.discard(name)

    def forget_all(self) -> None:
        for name in sorted(self._running):
            self.forget(name)

    def holder(self, program: str) -> str:
        return str(self._cluster.get(LEASE, Key(SYSTEM, LEASES[program]))["spec"].get("holderIdentity") or "")

    def says(self, name: str) -> str:
        return self._plane.processes.log(name).read_text()


@pytest.fixture
def programs(plane: Plane, kubernetes: KubernetesCluster) -> Iterator[Programs]:
    with contextlib.suppress(AlreadyExists):
        kubernetes.create(NAMESPACE, {"metadata": {"name": SYSTEM}})
    kubernetes.create(NODE, node("big").cpu(64).memory("64Gi").pods(500))
    programs = Programs(plane, kubernetes)
    yield programs
    programs.forget_all()
    kubernetes.delete(NODE, Key("", "big"))
    for lease in kubernetes.list(LEASE, SYSTEM).objects:
        kubernetes.delete(LEASE, Key(SYSTEM, lease["metadata"]["name"]))


def gang(ns: str) -> Json:
    resources = {"requests": {"cpu": "100m", "memory": "64Mi"}}
    containers = [{"name": "main", "image": "example.test/app:1", "resources": resources}]
    tasks = [{"name": "worker", "replicas": 3, "template": {"spec": {"containers": containers, "restartPolicy": "Never"}}}]
    return Built(JOB, "gang", ns) | {"spec": {"schedulerName": "volcano", "queue": "default", "minAvailable": 3, "tasks": tasks}}


def phase_of(cluster: KubernetesCluster, ns: str) -> str:
    status = cluster.get(JOB, Key(ns, "gang")).get("status") or {}
    return str((status.get("state") or {}).get("phase", ""))


def page(port: int, path: str) -> str:
    """"" where nobody answers yet."""
    try:
        return urllib3.PoolManager(retries=False).request("GET", f"http://127.0.0.1:{port}{path}", timeout=5.0).data.decode()
    except urllib3.exceptions.HTTPError:
        return ""


def test_a_job_runs_and_signals_are_obeyed(
    programs: Programs, kubernetes: KubernetesCluster, new_namespace: Callable[[], str], tmp_path: Path
) -> None:
    """From the job to running pods by the two processes alone; a dump on request; a clean end that lets go of the leases."""
    health, metrics = free_ports(2)
    programs.start(SCHEDULER, "--schedule-period=100ms", "--enable-healthz", "--enable-metrics", f"--cache-dump-dir={tmp_path}",
                   f"--healthz-address=127.0.0.1:{health}", f"--listen-address=127.0.0.1:{metrics}", "2>&1")  # fmt: skip
    programs.start(CONTROLLERS)
    wait_until(lambda: kubernetes.list(QUEUE).objects, "the default queue")
    ns = new_namespace()
    kubernetes.create(JOB, gang(ns))
    wait_until(lambda: phase_of(kubernetes, ns) == "Running", "the job to run")
    assert page(health, "/readyz") == "ok"
    scheduled = 'volcano_schedule_attempts_total{result="scheduled"} 3.0'
    wait_until(lambda: scheduled in page(metrics, "/metrics"), "the metrics of three pods")
    programs.send(SCHEDULER, signal.SIGUSR2)
    wait_until(lambda: any(file.stat().st_size for file in tmp_path.glob("snapshot-*.json")), "the dump")
    dumped = json.loads(next(tmp_path.glob("snapshot-*.json")).read_text())
    assert {each["node"] for each in dumped["tasks"].values() if each["job"].startswith(f"{ns}/")} == {"big"}
    held = [bool(programs.holder(program)) for program in MAIN]
    ended = [programs.end(program, signal.SIGTERM) for program in MAIN]
    assert (held, ended, [programs.holder(program) for program in MAIN]) == ([True, True], [0, 0], ["", ""])


def test_an_api_server_that_comes_back_finds_them_at_work(
    plane: Plane, programs: Programs, kubernetes: KubernetesCluster, new_namespace: Callable[[], str]
) -> None:
    """kill -9 the server and start it again: the same processes go on, still leading."""
    patient = ("--leader-elect-lease-duration=80s", "--leader-elect-renew-deadline=60s", "--leader-elect-retry-period=500ms")
    for program in MAIN:
        programs.start(program, *patient)
    wait_until(lambda: kubernetes.list(QUEUE).objects, "the default queue")
    first, second = new_namespace(), new_namespace()
    kubernetes.create(JOB, gang(first))
    wait_until(lambda: phase_of(kubernetes, first) == "Running", "the job to run")
    holders = [programs.holder(program) for program in MAIN]
    plane.kill(API_SERVER)
    wait_until(lambda: "the lease cannot be renewed" in programs.says(SCHEDULER), "the outage to be felt")
    plane.restart(API_SERVER)
    kubernetes.create(JOB, gang(second))
    wait_until(lambda: phase_of(kubernetes, second) == "Running", "the next job to run")
    assert [programs.holder(program) for program in MAIN] == holders


def test_a_killed_leader_is_followed(programs: Programs, kubernetes: KubernetesCluster, new_namespace: Callable[[], str]) -> None:
    """kill -9 in the middle of a burst: the other one goes on within the time of the lease, and every pod is bound."""
    for name in ("one", "two"):
        programs.start(SCHEDULER, "--schedule-period=50ms", *QUICK, name=name)
        wait_until(lambda: LEASES[SCHEDULER] in {each["metadata"]["name"] for each in kubernetes.list(LEASE, SYSTEM).objects},
                   "a leader")  # fmt: skip
    first = programs.holder(SCHEDULER)
    ns = new_namespace()
    wait_until(lambda: kubernetes.list(QUEUE).objects, "the default queue")
    for each in kubernetes.list(QUEUE).objects:
        kubernetes.patch(QUEUE, Key("", each["metadata"]["name"]), {"status": {"state": "Open"}}, subresource="status")
    kubernetes.create(POD_GROUP, podgroup("g", ns).phase("Inqueue"))

    def bound() -> int:
        return sum(bool(pod["spec"].get("nodeName")) for pod in kubernetes.list(POD, ns).objects)

    for i in range(100):
        kubernetes.create(POD, task(f"g-{i}", "g", ns).cpu("10m"))
        if i == 50:
            wait_until(bound, "the first pods to be bound")
            programs.end("one", signal.SIGKILL)
    wait_until(lambda: programs.holder(SCHEDULER) not in ("", first), "the other one to lead", patience=3 + 2 * 1.1 + 5)
    wait_until(lambda: bound() == 100, "every pod to be bound")
    assert "leading" in programs.says("two")
