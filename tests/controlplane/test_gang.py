"""The whole way on a real server: a Volcano job becomes a group and pods, the group is let in, the gang is bound and runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from controller.manager import Manager
from controller.reconciler import Settings
from extender.actions import ACTIONS
from extender.api.meta import JOB, NODE, POD, POD_GROUP, Json, Key
from extender.cluster.clock import SystemClock
from extender.cluster.kubernetes import KubernetesCluster
from extender.core import conf
from extender.loop import Loop
from extender.plugins import PLUGINS
from extender.testing.builders import Built, node
from tests.controlplane.waiting import wait_until

NODES = ("gang-1", "gang-2")


@pytest.fixture
def nodes(kubernetes: KubernetesCluster) -> Iterator[None]:
    """Two nodes with room for two workers each, and a rest that together would be enough for a fifth."""
    for name in NODES:
        kubernetes.create(NODE, node(name).cpu(5).memory("8Gi"))
    yield
    for name in NODES:
        kubernetes.delete(NODE, Key("", name))


@pytest.fixture
def controllers(kubernetes: KubernetesCluster) -> Iterator[Manager]:
    """At work in the background, as vc-controller-manager has them."""
    manager = Manager(kubernetes, SystemClock(), Settings())
    stop = threading.Event()
    thread = threading.Thread(target=manager.run, args=(stop,), name="controllers")
    thread.start()
    yield manager
    stop.set()
    thread.join()


@pytest.fixture
def scheduler(kubernetes: KubernetesCluster) -> Iterator[Loop]:
    loop = Loop(kubernetes, conf.load(conf.DEFAULT, PLUGINS, ACTIONS), SystemClock())
    loop.start()
    yield loop
    loop.close()


def gang(ns: str, workers: int) -> Json:
    resources = {"requests": {"cpu": "2", "memory": "1Gi"}}
    template = {"spec": {"containers": [{"name": "main", "image": "example.test/app:1", "resources": resources}],
                         "restartPolicy": "Never"}}  # fmt: skip
    tasks = [{"name": "worker", "replicas": workers, "template": template}]
    return Built(JOB, "gang", ns) | {
        "spec": {"schedulerName": "volcano", "queue": "default", "minAvailable": workers, "tasks": tasks}
    }


def phase_of(cluster: KubernetesCluster, ns: str) -> str:
    status = cluster.get(JOB, Key(ns, "gang")).get("status") or {}
    return str((status.get("state") or {}).get("phase", ""))


@pytest.mark.usefixtures("nodes", "controllers")
def test_a_gang_that_fits_runs(kubernetes: KubernetesCluster, scheduler: Loop, new_namespace: Callable[[], str]) -> None:
    ns = new_namespace()
    kubernetes.create(JOB, gang(ns, workers=4))
    wait_until(lambda: scheduler.step() is None and phase_of(kubernetes, ns) == "Running", "the job to run")
    placed = sorted(pod["spec"]["nodeName"] for pod in kubernetes.list(POD, ns).objects)
    assert placed == ["gang-1", "gang-1", "gang-2", "gang-2"]


@pytest.mark.usefixtures("nodes", "controllers")
def test_one_that_does_not_fit_has_no_pod_bound_and_says_why(
    kubernetes: KubernetesCluster, scheduler: Loop, new_namespace: Callable[[], str]
) -> None:
    ns = new_namespace()
    kubernetes.create(JOB, gang(ns, workers=5))

    def told() -> list[str]:
        scheduler.step()
        groups = kubernetes.list(POD_GROUP, ns).objects
        conditions = [each for group in groups for each in (group.get("status") or {}).get("conditions") or ()]
        return [each["message"] for each in conditions if each["type"] == "Unschedulable" and each["status"] == "True"]

    wait_until(lambda: told() and len(kubernetes.list(POD, ns).objects) == 5, "the group to say that it waits, and its pods")
    assert [pod["spec"].get("nodeName") for pod in kubernetes.list(POD, ns).objects] == [None] * 5
