"""Scheduler and controllers at work among faults: in the end all is done, and they know what the API server knows."""

from __future__ import annotations

import itertools
import json
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from extender.api.meta import JOB, NODE, POD, POD_GROUP, QUEUE, SERVICE, Json, Key, annotations_of
from extender.cluster.kubernetes import KubernetesCluster
from extender.testing.builders import Built, node
from tests.controlplane.daemons import CONTROLLERS, SCHEDULER, Daemons
from tests.controlplane.plane import API_SERVER, Plane
from tests.controlplane.proxy import FaultProxy, Refusal, Request
from tests.controlplane.waiting import wait_until

WRITES = {"POST", "PUT", "PATCH", "DELETE"}
FAULTS = (Refusal(429, retry_after=1), Refusal(500), Refusal(500, reached=True))  # the last: done, but nobody is told
JOBS, SIZE, ENDING = 12, 5, 4  # ENDING of the jobs come to their end
NODES = ("faults-1", "faults-2", "faults-3")
ROOM = JOBS * SIZE // len(NODES)  # CPUs of a node: all jobs together fill them


def a_tenth_of_the_writes() -> Callable[[Request], Refusal | None]:
    writes, faults = itertools.count(1), itertools.cycle(FAULTS)
    return lambda request: next(faults) if request.method in WRITES and next(writes) % 10 == 0 else None


@pytest.fixture
def proxy(plane: Plane) -> Iterator[FaultProxy]:
    with FaultProxy(plane) as running:
        running.refuse = a_tenth_of_the_writes()
        yield running


@pytest.fixture
def daemons(plane: Plane, kubernetes: KubernetesCluster, proxy: FaultProxy, tmp_path: Path) -> Iterator[Daemons]:
    """They reach the API server through the proxy only."""
    for name in NODES:
        kubernetes.create(NODE, node(name).cpu(ROOM).memory("64Gi").pods(100))
    running = Daemons(plane, kubernetes, proxy.kubeconfig)
    running.start(CONTROLLERS, "--leader-elect=false")
    running.start(SCHEDULER, "--leader-elect=false", "--schedule-period=100ms", f"--cache-dump-dir={tmp_path}")
    yield running
    running.forget_all()
    for name in NODES:
        kubernetes.delete(NODE, Key("", name))


def job(ns: str, number: int) -> Json:
    ends = {"pumice.io/run-seconds": "1"} if number < ENDING else {}
    containers = [{"name": "main", "image": "example.test/app:1", "resources": {"requests": {"cpu": "1"}}}]
    template = {"metadata": {"annotations": ends}, "spec": {"containers": containers, "restartPolicy": "Never"}}
    tasks = [{"name": "worker", "replicas": SIZE, "template": template}]
    spec = {"schedulerName": "volcano", "queue": "default", "minAvailable": SIZE, "tasks": tasks, "plugins": {"svc": []}}
    return Built(JOB, f"job-{number}", ns) | {"spec": spec}


def phases(cluster: KubernetesCluster, ns: str) -> Counter[str]:
    return Counter(((job.get("status") or {}).get("state") or {}).get("phase", "") for job in cluster.list(JOB, ns).objects)


def test_everything_settles(
    plane: Plane, kubernetes: KubernetesCluster, proxy: FaultProxy, daemons: Daemons, new_namespace: Callable[[], str],
    tmp_path: Path,
) -> None:  # fmt: skip
    """429 and 500 on a tenth of the writes, watches cut again and again, the API server killed and started anew."""
    ns = new_namespace()
    wait_until(lambda: kubernetes.list(QUEUE, field_selector="metadata.name=default").objects, "the default queue")
    for number in range(JOBS):
        kubernetes.create(JOB, job(ns, number))
        if number % 4 == 3:
            wait_until(proxy.cut_watches, "watches to cut")
        if number == JOBS // 2:
            wait_until(lambda: phases(kubernetes, ns)["Running"], "the first jobs to run")
            plane.kill(API_SERVER)
            plane.restart(API_SERVER)
    wanted = {"Running": JOBS - ENDING, "Completed": ENDING}
    wait_until(lambda: phases(kubernetes, ns) == wanted, "all jobs to run or to end")
    proxy.cut_watches()

    def settled() -> list[str]:
        return [*wrong_pods(kubernetes, ns), *wrong_statuses(kubernetes, ns), *wrong_books(kubernetes, ns, daemons, tmp_path)]

    wait_until(lambda: not settled(), "the books to be right")
    assert proxy.refused > 10
    for name in (CONTROLLERS, SCHEDULER):
        assert "Traceback" not in daemons.says(name)


def wrong_pods(cluster: KubernetesCluster, ns: str) -> list[str]:
    """Of each job as many as it wants, by the names it gives them, each on a node, no node too full."""
    pods = cluster.list(POD, ns).objects
    found = {pod["metadata"]["name"] for pod in pods}
    wanted = {f"job-{number}-worker-{i}" for number in range(JOBS) for i in range(SIZE)}
    wrong = [f"{name}: {'missing' if name in wanted else 'too many'}" for name in wanted ^ found]
    wrong += [f"{pod['metadata']['name']}: no node" for pod in pods if not pod["spec"].get("nodeName")]
    used = Counter(pod["spec"].get("nodeName") for pod in pods if pod["status"]["phase"] == "Running")
    return wrong + [f"{name}: {count} pods" for name, count in used.items() if count > ROOM]


def wrong_statuses(cluster: KubernetesCluster, ns: str) -> list[str]:
    """What our objects say about pods, against the pods."""
    wrong = []
    running, ended = Counter[str](), Counter[str]()
    for pod in cluster.list(POD, ns).objects:
        counted = {"Running": running, "Succeeded": ended}.get(pod["status"]["phase"])
        if counted is not None:
            counted[annotations_of(pod)["volcano.sh/job-name"]] += 1
    for each in cluster.list(JOB, ns).objects:
        name, status = each["metadata"]["name"], each["status"]
        told, true = (status.get("running", 0), status.get("succeeded", 0)), (running[name], ended[name])
        wrong += [f"{name}: says {told}, is {true}"] if told != true else []
    wrong += [f"PodGroup {each['metadata']['name']}" for each in cluster.list(POD_GROUP, ns).objects
              if (each.get("status") or {}).get("phase") not in ("Running", "Completed")]  # fmt: skip
    services = {each["metadata"]["name"] for each in cluster.list(SERVICE, ns).objects}
    return wrong + [f"no Service {name}" for name in running if name not in services]


def wrong_books(cluster: KubernetesCluster, ns: str, daemons: Daemons, dumps: Path) -> list[str]:
    """Where the scheduler, asked for a dump, takes pods to be elsewhere than they are."""
    for old in dumps.glob("snapshot-*.json"):
        old.unlink()
    daemons.send(SCHEDULER, signal.SIGUSR2)
    wait_until(lambda: any(dumps.glob("snapshot-*.json")), "the dump")
    tasks = json.loads(next(dumps.glob("snapshot-*.json")).read_text())["tasks"]
    ours = {name: task["node"] for name, task in tasks.items() if name.startswith(f"{ns}/") and task["node"]}
    theirs = {f"{ns}/{pod['metadata']['name']}": pod["spec"]["nodeName"] for pod in cluster.list(POD, ns).objects
              if pod["status"]["phase"] == "Running" and pod["spec"].get("nodeName")}  # fmt: skip
    return [f"{name}: {ours.get(name)}, is on {theirs.get(name)}" for name in ours.keys() | theirs.keys()
            if ours.get(name) != theirs.get(name)]  # fmt: skip
