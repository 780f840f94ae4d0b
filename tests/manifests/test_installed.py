"""Installed, changed and taken away on a real API server that has nothing of ours: by helm, and by `kubectl apply -k`.

Pods are placed by kube-scheduler and played by kwok, so a rollout ends; what runs in them is not our programs."""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from extender.api.errors import Conflict, NotFound
from extender.api.meta import (
    DEPLOYMENT,
    EVENT,
    MUTATING_WEBHOOKS,
    NODE,
    POD,
    QUEUE,
    VALIDATING_WEBHOOKS,
    Json,
    Key,
    Kind,
    key_of,
)
from extender.cluster.kubernetes import KubernetesCluster, connect
from extender.ctl.installing import CRD
from extender.testing.builders import node, queue
from tests.controlplane.plane import Plane, start
from tests.controlplane.waiting import PATIENCE, wait_until
from tests.manifests.helm import AS_IN_BASE, Helm
from tests.manifests.reading import CHART, MANIFESTS

SYSTEM = "volcano-system"
PROGRAMS = {"volcano-scheduler", "volcano-controllers", "volcano-admission", "volcano-certs"}
WEBHOOKS = (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)
RELEASE = ("volcano", "--namespace", SYSTEM)
_TOUCHED = 40  # looks between two touches: two seconds
LONG = f"--timeout={PATIENCE:.0f}s"


@pytest.fixture(scope="module")
def bare(programs: Path) -> Iterator[Plane]:
    """A cluster that has never heard of us."""
    running = start(programs, crds=False, scheduler={})
    yield running
    running.stop()


@pytest.fixture(scope="module")
def cluster(bare: Plane) -> Iterator[KubernetesCluster]:
    connected = connect(str(bare.kubeconfig))
    for name in ("n1", "n2"):
        connected.create(NODE, node(name).cpu(32).memory("64Gi").pods(100))
    yield connected
    connected.close()


@pytest.fixture
def helm_there(bare: Plane, cluster: KubernetesCluster, helm_program: Path, helm_environ: dict[str, str]) -> Iterator[Helm]:
    """What a test has installed with it goes with the test, however that ends."""
    helm = Helm(helm_program, helm_environ | {"KUBECONFIG": str(bare.kubeconfig)}, lambda: plight(cluster))
    yield helm
    helm("uninstall", *RELEASE, "--ignore-not-found", "--wait", LONG)
    forget_crds(cluster)


@pytest.fixture
def kubectl(bare: Plane) -> Callable[..., str]:
    def run(*words: str) -> str:
        command = [str(bare.programs / "kubectl"), f"--kubeconfig={bare.kubeconfig}", *words]
        done = subprocess.run(command, env={"HOME": str(bare.folder), "PATH": os.environ["PATH"]},
                              capture_output=True, text=True, check=False)  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_helm_installs_upgrades_and_uninstalls(cluster: KubernetesCluster, helm_there: Helm) -> None:
    chart = (str(CHART), "--set=fullnameOverride=volcano", "--wait=watcher", LONG)
    said = helm_there("install", *RELEASE, "--create-namespace", *chart)
    assert "STATUS: deployed" in said
    assert replicas(cluster) == dict.fromkeys(PROGRAMS - {"volcano-certs"}, 2) | {"volcano-certs": 1}
    assert len(configurations(cluster)) == 11

    changed = ("--set=scheduler.replicas=3", "--set=admission.paths={/jobs/mutate,/jobs/validate}", "--set=scheduler.logLevel=4")
    helm_there("upgrade", *RELEASE, *chart, *changed)
    assert replicas(cluster)["volcano-scheduler"] == 3
    assert "-v=4" in container(cluster, "volcano-scheduler")["args"]
    assert configurations(cluster) == {f"volcano-admission-service-jobs-{verb}" for verb in ("mutate", "validate")}

    cluster.create(QUEUE, queue("kept"))
    helm_there("uninstall", *RELEASE, "--wait", LONG)
    assert configurations(cluster) == set()
    assert cluster.list(DEPLOYMENT, SYSTEM).objects == []
    assert cluster.get(QUEUE, Key("", "kept"))  # CRDs stay, and what is of them


def test_a_mistake_in_the_values_installs_nothing(cluster: KubernetesCluster, helm_there: Helm) -> None:
    done = helm_there.tried("install", "wrong", str(CHART), *AS_IN_BASE, "--create-namespace", "--set=scheduler.replica=3")
    assert done.returncode != 0
    assert "replica" in done.stderr
    assert configurations(cluster) == set()


def test_kubectl_applies_and_deletes(cluster: KubernetesCluster, kubectl: Callable[..., str]) -> None:
    """Twice, as for an upgrade, and over CRDs that have objects; in the end nothing is left, not even these."""
    kubectl("apply", "-k", str(MANIFESTS / "crds"))
    wait_until(lambda: serves(cluster, QUEUE), "the CRDs to be served")
    cluster.create(QUEUE, queue("theirs"))
    for _ in range(2):
        kubectl("apply", "-k", str(MANIFESTS))
    wait_until(lambda: ready(cluster) == replicas(cluster), "the rollout")
    assert replicas(cluster).keys() == PROGRAMS
    assert len(configurations(cluster)) == 11

    kubectl("delete", "-k", str(MANIFESTS), "--ignore-not-found", "--wait=false")
    forget_crds(cluster)
    wait_until(lambda: not cluster.list(POD, SYSTEM).objects, "the pods to go")
    assert configurations(cluster) == set()
    assert cluster.list(DEPLOYMENT, SYSTEM).objects == []


def forget_crds(cluster: KubernetesCluster) -> None:
    """And what is of them. Where the API server fails to clean one up it tries again after longer and longer pauses, but at once
    when the CRD changes: so it is touched now and then."""
    for crd in cluster.list(CRD).objects:
        cluster.delete(CRD, key_of(crd))
    looks = itertools.count(1)

    def gone() -> bool:
        left, look = cluster.list(CRD).objects, next(looks)
        for crd in left if look % _TOUCHED == 0 else ():
            with contextlib.suppress(NotFound, Conflict):
                cluster.patch(CRD, key_of(crd), {"metadata": {"annotations": {"example.test/look": str(look)}}})
        return not left

    wait_until(gone, "the CRDs to go")


def plight(cluster: KubernetesCluster) -> str:
    """What there is of ours, and what was said about it: the status of Deployments and pods, and warnings."""
    said = [f"{kind.name} {key_of(obj)}: {obj.get('status')}" for kind in (DEPLOYMENT, POD) for obj in cluster.list(kind).objects]
    said += [f"{event['involvedObject'].get('name')}: {event['reason']}: {event.get('message')}"
             for event in cluster.list(EVENT).objects if event.get("type") == "Warning"]  # fmt: skip
    return "\n".join(said)


def configurations(cluster: KubernetesCluster) -> set[str]:
    return {obj["metadata"]["name"] for kind in WEBHOOKS for obj in cluster.list(kind).objects}


def replicas(cluster: KubernetesCluster) -> dict[str, int]:
    """Deployment -> its pods that are there."""
    return {obj["metadata"]["name"]: obj["spec"]["replicas"] for obj in cluster.list(DEPLOYMENT, SYSTEM).objects}


def ready(cluster: KubernetesCluster) -> dict[str, int]:
    deployments = cluster.list(DEPLOYMENT, SYSTEM).objects
    return {obj["metadata"]["name"]: (obj.get("status") or {}).get("readyReplicas", 0) for obj in deployments}


def container(cluster: KubernetesCluster, deployment: str) -> Json:
    (only,) = cluster.get(DEPLOYMENT, Key(SYSTEM, deployment))["spec"]["template"]["spec"]["containers"]
    return dict(only)


def serves(cluster: KubernetesCluster, kind: Kind) -> bool:
    try:
        cluster.list(kind)
    except NotFound:
        return False
    return True
