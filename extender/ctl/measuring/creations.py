"""What the webhooks cost whoever creates objects: jobs and pods on a real API server, in a namespace they see and in another."""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from certs import folder as certificates
from certs.stock import Stock, restock
from extender.api.errors import ClusterError, NotFound, PumiceError
from extender.api.labels import GROUP_NAME, JOB_NAME, NAMESPACE_NAME
from extender.api.meta import JOB, POD, Json, Key, Kind, key_of, kind_of
from extender.cluster.clock import SystemClock
from extender.cluster.port import Cluster
from extender.ctl.admitting import called_by_url
from extender.ctl.measuring.child import Child
from extender.ctl.measuring.load import OWNER, Load, labelled, make_namespace, pods, side_by_side
from webhook.manifests import configurations
from webhook.routes import ROUTES, Route

HOST = "127.0.0.1"
OURS = "volcano"  # schedulerName
SIZES = (10, 100)  # pods of a job
BATCH = 100  # objects
_US = (sys.executable, "-c", "from webhook.cli import main; main()")
_SEEN = 60.0  # seconds in which the API server must notice that webhooks have come
_LOOK = 0.1
_SETTLED = 1.0  # seconds until all of the API server has heard of what came or went
ROUTES_ASKED: Sequence[Route] = tuple(route for route in ROUTES if route.kind in (JOB, POD))

Thing = tuple[Kind, Json]


@dataclass(frozen=True, slots=True)
class Made:
    """One kind of objects: how many a second."""

    what: str
    without: float
    with_webhooks: float

    @property
    def share(self) -> float:
        return self.with_webhooks / self.without


def measure(cluster: Cluster, kubeconfig: str, namespace: str, count: int, rounds: int, ports: Sequence[int], folder: Path,
            say: Callable[[str], None]) -> list[Made]:  # fmt: skip
    """`count` objects of each kind in each of `rounds` rounds with the webhooks and as many without: in `namespace`, which
    they see, and in one beside it. They take turns every BATCH objects, so that what else the machine does hits both.

    Raises PumiceError."""
    beside = f"{namespace}-beside"
    make_namespace(cluster, beside)
    loads = {admitted: _loads(where, count) for admitted, where in ((True, namespace), (False, beside))}
    seconds: dict[tuple[str, bool], float] = defaultdict(float)
    with _serving(kubeconfig, ports, folder) as asked:
        own = [_only(each, namespace) for each in asked]
        try:
            _install(cluster, own, namespace)
            for number in range(rounds):
                for what in loads[True]:
                    say(f"round {number + 1} of {rounds}: {what}")
                    for admitted, things in _turns(loads[True][what], loads[False][what]):
                        seconds[what, admitted] += _create(cluster, things)
                    _remove(cluster, [*loads[True][what], *loads[False][what]])
        finally:
            _remove_configurations(cluster, own)
    made = {what: rounds * len(things) for what, things in loads[True].items()}
    return [Made(what, number / seconds[what, False], number / seconds[what, True]) for what, number in made.items()]


def _loads(namespace: str, count: int) -> dict[str, list[Thing]]:
    return {
        "jobs": _jobs(namespace, count),
        "foreign pods": [(POD, each) for each in pods(Load(namespace, OWNER, 1, count, plain=True))],
        "our pods": _members(Load(namespace, OURS, 1, count)),
        **{f"jobs of {size} pods": _jobs_of_pods(namespace, count, size) for size in SIZES},
    }


def _turns(admitted: Sequence[Thing], others: Sequence[Thing]) -> Iterator[tuple[bool, Sequence[Thing]]]:
    """Batches of both, whether they are admitted before them; each is first as often as the other."""
    for number, start in enumerate(range(0, len(admitted), BATCH)):
        both = [(True, admitted[start : start + BATCH]), (False, others[start : start + BATCH])]
        yield from both if number % 2 else reversed(both)


def _jobs(namespace: str, count: int) -> list[Thing]:
    return [(JOB, _job(namespace, f"job-{i}")) for i in range(count)]


def _members(load: Load) -> list[Thing]:
    """Pods as the job controller makes them."""
    made = list(pods(load))
    for each in made:
        each["metadata"]["labels"][JOB_NAME] = each["metadata"]["annotations"][GROUP_NAME]
    return [(POD, each) for each in made]


def _jobs_of_pods(namespace: str, count: int, size: int) -> list[Thing]:
    """Each job is followed by its pods."""
    number = max(1, count // (size + 1))
    jobs, members = _jobs(namespace, number), _members(Load(namespace, OURS, number, size))
    return [each for i, job in enumerate(jobs) for each in (job, *members[i * size : (i + 1) * size])]


def _job(namespace: str, name: str) -> Json:
    container = {"name": "main", "image": "registry.example/nothing:1", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": JOB.api_version, "kind": JOB.name, "metadata": labelled(namespace, name),
        "spec": {"queue": OWNER, "minAvailable": 2, "tasks": [{"name": "worker", "replicas": 2, "template": template}]},
    }  # fmt: skip


def _create(cluster: Cluster, things: Sequence[Thing]) -> float:
    """Seconds."""
    began = time.perf_counter()
    side_by_side(lambda thing: cluster.create(*thing), things)
    return time.perf_counter() - began


def _remove(cluster: Cluster, things: Sequence[Thing]) -> None:
    side_by_side(lambda thing: cluster.delete(thing[0], key_of(thing[1]), grace_seconds=0), things)
    time.sleep(_SETTLED)


@contextmanager
def _serving(kubeconfig: str, ports: Sequence[int], folder: Path) -> Iterator[list[Json]]:
    """vc-webhook-manager at work for as long as the block lasts; the configurations that call it."""
    certificates.save(folder, restock(Stock(), [HOST], SystemClock().now()))
    port, health = ports
    paths = ",".join(route.path for route in ROUTES_ASKED)
    child = Child((
        *_US, f"--kubeconfig={kubeconfig}", f"--listen-address={HOST}", f"--port={port}", "--webhook-url=https://127.0.0.1",
        f"--tls-cert-file={folder / certificates.SERVING}", f"--tls-private-key-file={folder / certificates.SERVING_KEY}",
        f"--enabled-admission={paths}", "--enable-healthz", f"--healthz-address={HOST}:{health}",
    ), folder / "webhook.log")  # fmt: skip
    try:
        child.await_page(f"http://{HOST}:{health}/readyz")
        bundle = (folder / certificates.TRUSTED).read_bytes()
        yield [called_by_url(each, f"https://{HOST}:{port}", bundle, OWNER) for each in configurations(routes=ROUTES_ASKED)]
    finally:
        child.end()


def _only(configuration: Json, namespace: str) -> Json:
    """Nobody else's objects are sent to us, and what a killed run leaves is found by its label."""
    here = {"key": NAMESPACE_NAME, "operator": "In", "values": [namespace]}
    webhooks = [{**each, "namespaceSelector": {"matchExpressions": [*each["namespaceSelector"]["matchExpressions"], here]}}
                for each in configuration["webhooks"]]  # fmt: skip
    meta = labelled("", configuration["metadata"]["name"])
    return {**configuration, "metadata": meta, "webhooks": webhooks}


def _install(cluster: Cluster, asked: Sequence[Json], namespace: str) -> None:
    """Returns when the API server acts upon them."""
    for each in asked:
        cluster.create(kind_of(each), each)
    deadline = time.monotonic() + _SEEN
    while not _admitted(cluster, namespace):
        if time.monotonic() > deadline:
            raise PumiceError("the API server does not call the webhooks: it must reach this machine at " + HOST)
        time.sleep(_LOOK)
    time.sleep(_SETTLED)


def _admitted(cluster: Cluster, namespace: str) -> bool:
    """Whether tasks get defaults (those of jobs are in the schema too)."""
    try:
        return bool(cluster.create(JOB, _job(namespace, "probe"), dry_run=True)["spec"]["tasks"][0].get("minAvailable"))
    except ClusterError:
        return False


def _remove_configurations(cluster: Cluster, asked: Sequence[Json]) -> None:
    for each in asked:
        with suppress(NotFound):
            cluster.delete(kind_of(each), Key("", each["metadata"]["name"]))
