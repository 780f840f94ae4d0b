"""Our daemons as processes on a plane: started, signalled, ended; all three together as an installation has them."""

from __future__ import annotations

import os
import signal
import sys
from base64 import b64decode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from certs import folder
from certs.stock import Stock, restock
from extender.api.errors import AlreadyExists, ClusterError, Denied, NotFound
from extender.api.meta import JOB, LEASE, MUTATING_WEBHOOKS, NAMESPACE, NODE, QUEUE, VALIDATING_WEBHOOKS, Json, Key
from extender.cluster.clock import SystemClock
from extender.cluster.kubernetes import KubernetesCluster
from tests.controlplane.plane import Plane
from tests.controlplane.processes import free_ports
from tests.controlplane.waiting import wait_until
from webhook.manifests import configuration_kind, configurations
from webhook.routes import ROUTES, Route

SYSTEM = "volcano-system"
SCHEDULER, CONTROLLERS, WEBHOOKS = "vc-scheduler", "vc-controller-manager", "vc-webhook-manager"
MAIN = {SCHEDULER: "extender.cli", CONTROLLERS: "controller.cli", WEBHOOKS: "webhook.cli"}
LEASES = {SCHEDULER: "volcano", CONTROLLERS: CONTROLLERS}
_ALONE = "--leader-elect=false"
_UNHURRIED = ("--kube-api-qps=1000", "--kube-api-burst=2000")


class Daemons:
    """Ours, as processes; their logs are shown with those of the plane."""

    def __init__(self, plane: Plane, cluster: KubernetesCluster, kubeconfig: Path | None = None) -> None:
        """`kubeconfig`: who they are, and where they find the API server; without it that of the plane."""
        self._plane, self._cluster, self._kubeconfig = plane, cluster, kubeconfig or plane.kubeconfig
        self._running: set[str] = set()

    def start(self, program: str, *flags: str, name: str = "") -> None:
        name = name or program
        code = f"from {MAIN[program]} import main; main()"
        command = [sys.executable, "-c", code, f"--kubeconfig={self._kubeconfig}", "--v=3", *flags]
        self._plane.processes.start(name, command)
        self._running.add(name)

    def send(self, name: str, number: signal.Signals) -> None:
        os.kill(self._plane.processes.pid(name), number)

    def end(self, name: str, number: signal.Signals) -> int | None:
        """Its exit status."""
        self.send(name, number)
        wait_until(lambda: self.has_ended(name), f"{name} to end")
        status = self._plane.processes.exit_status(name)
        self.forget(name)
        return status

    def has_ended(self, name: str) -> bool:
        return self._plane.processes.exit_status(name) is not None

    def forget(self, name: str) -> None:
        self._plane.processes.end(name, signal.SIGKILL)
        self._running.discard(name)

    def forget_all(self) -> None:
        for name in sorted(self._running):
            self.forget(name)

    def holder(self, program: str) -> str:
        return str(self._cluster.get(LEASE, Key(SYSTEM, LEASES[program]))["spec"].get("holderIdentity") or "")

    def says(self, name: str) -> str:
        """Since it was started."""
        return self._plane.processes.said(name)


def make_system_namespace(cluster: KubernetesCluster) -> None:
    with suppress(AlreadyExists):
        cluster.create(NAMESPACE, {"metadata": {"name": SYSTEM}})


@contextmanager
def admission(plane: Plane, cluster: KubernetesCluster, where: Path, routes: Sequence[Route] = ROUTES,
              only: Json | None = None) -> Iterator[Daemons]:  # fmt: skip
    """vc-webhook-manager for these routes, known to the API server and trusted by it: it publishes its authority itself.

    `only`: a requirement to the labels of namespaces, others are not asked about."""
    folder.save(where, restock(Stock(), ["127.0.0.1"], SystemClock().now()))
    port, health = free_ports(2)
    made = [(configuration_kind(route), _aimed(configurations(routes=[route])[0], port, only)) for route in routes]
    for kind, configuration in made:
        cluster.create(kind, configuration)
    daemons = Daemons(plane, cluster)
    try:
        daemons.start(
            WEBHOOKS, "--listen-address=127.0.0.1", f"--port={port}", f"--tls-cert-file={where}/tls.crt",
            f"--tls-private-key-file={where}/tls.key", f"--ca-cert-file={where}/ca.crt", "--webhook-url=https://127.0.0.1",
            f"--enabled-admission={','.join(route.path for route in routes)}", "--enable-healthz",
            f"--healthz-address=127.0.0.1:{health}", *_UNHURRIED,
        )  # fmt: skip
        wait_until(lambda: daemons.has_ended(WEBHOOKS) or _told(cluster, routes, where), "the authority to be published")
        assert not daemons.has_ended(WEBHOOKS), daemons.says(WEBHOOKS)[-2000:]
        yield daemons
    finally:
        for kind, configuration in made:
            cluster.delete(kind, Key("", configuration["metadata"]["name"]))
        daemons.forget_all()


def _aimed(configuration: Json, port: int, only: Json | None) -> Json:
    """At loopback instead of a service."""
    for webhook in configuration["webhooks"]:
        webhook["clientConfig"] = {"url": f"https://127.0.0.1:{port}{webhook['clientConfig']['service']['path']}"}
        if only is not None:
            webhook["namespaceSelector"] = {"matchExpressions": [*webhook["namespaceSelector"]["matchExpressions"], only]}
    return configuration


def _told(cluster: KubernetesCluster, routes: Sequence[Route], where: Path) -> bool:
    bundle = (where / "ca.crt").read_bytes()
    names = {one["metadata"]["name"] for one in configurations(routes=routes)}
    found = [each for kind in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS) for each in cluster.list(kind).objects]
    ours = [webhook["clientConfig"] for each in found if each["metadata"]["name"] in names for webhook in each["webhooks"]]
    return all(b64decode(client.get("caBundle", "")) == bundle for client in ours)


def answers(cluster: KubernetesCluster, probe: Json) -> bool:
    """Whether the webhooks are asked about jobs: the API server takes a moment to see new configurations and labels, those that
    change objects and those that judge them each in its own time.

    Of tasks, whose defaults are not in the schema; and one with more members than it has pods."""
    try:
        if not cluster.create(JOB, probe, dry_run=True)["spec"]["tasks"][0].get("minAvailable"):
            return False
        cluster.create(JOB, {**probe, "spec": {**probe["spec"], "minAvailable": _TOO_MANY}}, dry_run=True)
    except ClusterError as error:
        return isinstance(error, Denied) and "minAvailable" in str(error)
    return False


@contextmanager
def installation(plane: Plane, cluster: KubernetesCluster, where: Path, nodes: Sequence[Json], conf: str = "") -> Iterator[None]:
    """Webhooks of all paths, all controllers but that of shards, the scheduler with `conf`, and nodes; all at work."""
    make_system_namespace(cluster)
    with _there(cluster, nodes), admission(plane, cluster, where) as daemons:
        daemons.start(CONTROLLERS, _ALONE, *_UNHURRIED)
        flags = []
        if conf:
            (where / "scheduler.conf").write_text(conf)
            flags.append(f"--scheduler-conf={where}/scheduler.conf")
        daemons.start(SCHEDULER, _ALONE, "--schedule-period=100ms", *_UNHURRIED, *flags)
        wait_until(lambda: _is_open(cluster, "default") and _is_open(cluster, "root"), "the first queues to open")
        wait_until(lambda: answers(cluster, _PROBE), "the webhooks to be asked")
        yield


@contextmanager
def _there(cluster: KubernetesCluster, nodes: Sequence[Json]) -> Iterator[None]:
    try:
        for node in nodes:
            cluster.create(NODE, node)
        yield
    finally:
        for node in nodes:
            with suppress(NotFound):
                cluster.delete(NODE, Key("", node["metadata"]["name"]))


def _is_open(cluster: KubernetesCluster, queue: str) -> bool:
    with suppress(NotFound):
        return (cluster.get(QUEUE, Key("", queue)).get("status") or {}).get("state") == "Open"
    return False


_TOO_MANY = 1000
_POD = {"containers": [{"name": "main", "image": "example.test/app:1"}], "restartPolicy": "Never"}
_PROBE: Json = {
    "metadata": {"name": "probe", "namespace": "default"},
    "spec": {"tasks": [{"name": "worker", "replicas": 1, "template": {"spec": _POD}}]},
}
