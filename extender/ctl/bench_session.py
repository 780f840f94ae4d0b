"""pumice bench session: how fast a session is and how much memory the mirror takes, measured on this machine, now.

Clusters are made up: nodes of 32 CPU, 256Gi, 110 pods, 8 GPUs; pods asking 1 CPU and 1Gi in gangs. `--heterogeneous` makes
many task classes instead, `--idle` a full cluster in which nearly nothing happens."""

from __future__ import annotations

import json
import random
import resource
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import msgspec
import orjson

from extender.api import meta
from extender.api.errors import UsageError
from extender.api.meta import Json, Kind
from extender.api.operations import Bind, PatchStatus
from extender.core import conf as configuration
from extender.core.mirror import Mirror
from extender.core.reasons import Waiting
from extender.core.scheduling import schedule
from extender.core.snapshot import Snapshot
from extender.ctl import configuring, named
from extender.vocabulary import vocabulary

BENCH_CONF = f"{configuration.DEFAULT}  - name: binpack\n"  # what upstream's chart adds
_CREATED = "2026-01-01T00:00:00Z"
_IDLE_CYCLES = 21
MOST_NODES, _MOST_PODS = 100_000, 1_000_000  # more is a slip of the pen, and would fill the memory first


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Seconds are of this one run; `bound` of `pods` found a node, `waiting` says by reason how many did not and `first_waiting`
    what is told of the first gang of them.

    None: this sort of run does not measure it. Memory is told by what the process has resident, which grows in steps: a few
    objects may seem to need none."""

    nodes: int
    pods: int
    bound: int | None = None
    waiting: dict[str, int] | None = None
    first_waiting: str | None = None
    mirror_seconds: float
    snapshot_seconds: float | None = None
    session_seconds: float | None = None
    pods_per_second: float | None = None
    peak_mebibytes: float
    mirror_bytes_per_node: float
    mirror_bytes_per_pod: float
    idle_cycle_milliseconds: dict[str, float] | None = None


def node(name: str, zone: int, labels: dict[str, str] | None = None, taints: list[Json] | None = None) -> Json:
    room = {"cpu": "32", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "8"}
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{zone}", **(labels or {})}
    return {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "uid": name, "labels": labels, "creationTimestamp": _CREATED},
        "spec": {"taints": taints} if taints else {},
        "status": {"allocatable": room, "capacity": room, "conditions": [{"type": "Ready", "status": "True"}]},
    }  # fmt: skip


def group(name: str, members: int, phase: str) -> Json:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default", "uid": name, "creationTimestamp": _CREATED},
        "spec": {"minMember": members, "queue": "default", "minResources": {"cpu": str(members), "memory": f"{members}Gi"}},
        "status": {"phase": phase},
    }  # fmt: skip


def pod(name: str, member_of: str, request: Json | None = None, on: str = "", spec: Json | None = None,
        labels: dict[str, str] | None = None) -> Json:  # fmt: skip
    asked = request or {"cpu": "1", "memory": "1Gi"}
    container = {"name": "main", "image": "registry.example/app:1", "resources": {"requests": asked}}
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "default", "uid": name, "creationTimestamp": _CREATED,
            "annotations": {"scheduling.k8s.io/group-name": member_of, "volcano.sh/task-spec": "worker"},
            "labels": {"volcano.sh/job-name": member_of, "volcano.sh/task-index": name.rsplit("-", 1)[-1], **(labels or {})},
        },
        "spec": {"schedulerName": "volcano", "containers": [container], **({"nodeName": on} if on else {}), **(spec or {})},
        "status": {"phase": "Running" if on else "Pending"},
    }  # fmt: skip


def gangs(count: int, size: int, nodes: int = 0) -> Iterator[Json]:
    """Gangs of equal pods; running ones, spread over the nodes, where `nodes` is given."""
    for g in range(count):
        name = f"gang-{g}"
        yield group(name, size, "Running" if nodes else "Pending")
        for i in range(size):
            yield pod(f"{name}-worker-{i}", name, on=f"node-{(g * size + i) % nodes}" if nodes else "")


def mixed_gangs(count: int, size: int) -> Iterator[Json]:
    """Gangs of 200 different kinds: requests, selectors, tolerations; a tenth with spread or pod anti-affinity."""
    rng = random.Random(7)
    for g in range(count):
        name, kind = f"gang-{g}", g % 200
        request = {"cpu": f"{250 + 25 * (kind % 40)}m", "memory": f"{256 + 64 * (kind % 25)}Mi"}
        if kind % 7 == 0:
            request["nvidia.com/gpu"] = "1"
        spec: Json = {}
        if kind % 3 == 0:
            spec["nodeSelector"] = {"pool": f"pool-{kind % 5}"}
        if kind % 4 == 0:
            spec["tolerations"] = [{"key": "dedicated", "operator": "Equal", "value": "batch", "effect": "NoSchedule"}]
        selector = {"matchLabels": {"volcano.sh/job-name": name}}
        if kind % 20 == 5:
            spread = {"maxSkew": 2, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
            spec["topologySpreadConstraints"] = [{**spread, "labelSelector": selector}]
        if kind % 20 == 15:
            term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        yield group(name, size, "Pending")
        for i in range(size):
            yield pod(f"{name}-worker-{i}", name, request=request, spec=spec, labels={"app": f"app-{rng.randrange(50)}"})


def cluster(nodes: int, *, mixed: bool) -> Iterator[Json]:
    for i in range(nodes):
        labels = {"pool": f"pool-{i % 5}"} if mixed else None
        taints = [{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}] if mixed and i % 10 == 0 else None
        yield node(f"node-{i}", i % 10, labels, taints)


def _queue() -> Json:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
        "metadata": {"name": "default", "uid": "default", "creationTimestamp": _CREATED},
        "spec": {"weight": 1, "reclaimable": True}, "status": {"state": "Open"},
    }  # fmt: skip


def _fill(mirror: Mirror, objects: Iterable[Json]) -> tuple[float, int]:
    """(seconds in the mirror, pods). Objects come as fresh ones do from a watch: nothing is shared between them."""
    seconds, pods = 0.0, 0
    for obj in objects:
        kind: Kind = meta.kind_of(obj)
        fresh = msgspec.json.decode(orjson.dumps(obj))
        start = time.perf_counter()
        mirror.apply(kind, "ADDED", fresh)
        seconds += time.perf_counter() - start
        pods += kind is meta.POD
    return seconds, pods


def _resident() -> float:
    """Resident bytes of this process now."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return float(line.split()[1]) * 1024
    raise UsageError("this system does not tell a process's resident memory")


def bench_session(nodes: int, objects: Iterable[Json], conf: configuration.Conf, *, mixed: bool) -> Report:
    """One session over pending gangs on an empty cluster."""
    mirror = Mirror()
    _fill(mirror, [_queue()])
    before = _resident()
    seconds, _ = _fill(mirror, cluster(nodes, mixed=mixed))
    with_nodes = _resident()
    more, pods = _fill(mirror, objects)
    with_pods = _resident()
    start = time.perf_counter()
    snapshot = Snapshot.build(mirror)
    built = time.perf_counter()
    result = schedule(snapshot, conf, now=time.time())
    done = time.perf_counter()
    bound = sum(isinstance(operation, Bind) for operation in result.operations)
    return Report(
        nodes=nodes, pods=pods, bound=bound, waiting=_waiting(result.waiting),
        first_waiting=f"{result.waiting[0].job}: {result.waiting[0].message}" if result.waiting else None,
        mirror_seconds=seconds + more, snapshot_seconds=built - start,
        session_seconds=done - built, pods_per_second=bound / (done - built),
        peak_mebibytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        mirror_bytes_per_node=(with_nodes - before) / max(nodes, 1),
        mirror_bytes_per_pod=(with_pods - with_nodes) / max(pods, 1),
    )  # fmt: skip


def _waiting(waiting: Iterable[Waiting]) -> dict[str, int]:
    """Reason -> pods without a node."""
    pods: Counter[str] = Counter()
    for each in waiting:
        pods[each.reason] += int(str(each.numbers["pending"]))
    return dict(pods)


def bench_idle(nodes: int, count: int, size: int, conf: configuration.Conf) -> Report:
    """Cycles over running gangs with nothing pending and one pod event between two cycles."""
    mirror = Mirror()
    _fill(mirror, [_queue()])
    before = _resident()
    seconds, _ = _fill(mirror, cluster(nodes, mixed=False))
    with_nodes = _resident()
    more, pods = _fill(mirror, gangs(count, size, nodes))
    with_pods = _resident()
    settle = schedule(Snapshot.build(mirror), conf, now=time.time())
    for operation in settle.operations:  # the first session writes what the cluster does not show yet
        _confirm(mirror, operation)
    times = []
    for i in range(_IDLE_CYCLES):
        event = pod(f"gang-0-worker-{i % size}", "gang-0", on=f"node-{i % size % nodes}", labels={"tick": str(i)})
        start = time.perf_counter()
        mirror.apply(meta.POD, "MODIFIED", event)
        schedule(Snapshot.build(mirror), conf, now=time.time())
        times.append((time.perf_counter() - start) * 1000)
    return Report(
        nodes=nodes, pods=pods, mirror_seconds=seconds + more,
        peak_mebibytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        mirror_bytes_per_node=(with_nodes - before) / max(nodes, 1),
        mirror_bytes_per_pod=(with_pods - with_nodes) / max(pods, 1),
        idle_cycle_milliseconds={"median": statistics.median(times), "min": min(times), "max": max(times)},
    )  # fmt: skip


def _confirm(mirror: Mirror, operation: object) -> None:
    """What the watch would show after a status write of a PodGroup or Queue."""
    if not isinstance(operation, PatchStatus):
        return
    if operation.kind is meta.POD_GROUP:
        size = int(mirror.jobs.min_available[mirror.jobs.rows[operation.key]])
        obj = group(operation.key.name, size, "Running")
    elif operation.kind is meta.QUEUE:
        obj = _queue()
    else:
        return
    obj["status"] |= operation.patch["status"]
    mirror.apply(operation.kind, "MODIFIED", obj)


def _show(report: Report, output: str) -> None:
    values = {key: value for key, value in asdict(report).items() if value is not None}
    if output == "json":
        click.echo(json.dumps(values, indent=2))
        return
    for key, value in values.items():
        if isinstance(value, dict):
            value = ", ".join(f"{name} {_figure(number)}" for name, number in value.items()) or "none"
        if not isinstance(value, str):
            value = _figure(value)
        click.echo(f"{key.replace('_', ' '):26}{value}")


def _figure(value: float) -> str:
    return f"{value:,.3f}" if isinstance(value, float) and 0 < abs(value) < 10 else f"{value:,.0f}"


def check_pods(gangs: int, size: int) -> None:
    """Raises UsageError where they would be too many."""
    if gangs * size > _MOST_PODS:
        raise UsageError(f"--gangs, --size: {gangs:,} times {size:,} are more than {_MOST_PODS:,} pods")


@click.command("session")
@click.option(
    "--nodes", type=click.IntRange(1, MOST_NODES), default=5000, show_default=True, help="Nodes of 32 CPU, 256Gi, 8 GPUs."
)
@click.option("--gangs", "count", type=click.IntRange(1), default=50, show_default=True, help="Number of gangs.")
@click.option("--size", type=click.IntRange(1), default=100, show_default=True, help="Pods in each gang (minMember too).")
@click.option("--conf", metavar="FILE", help="scheduler.conf to run with, or a ConfigMap that holds one.")
@named.plugins_dir()
@click.option("--heterogeneous", is_flag=True, help="200 kinds of gangs: requests, selectors, tolerations, spread, affinity.")
@click.option("--idle", is_flag=True, help="All gangs run; measure cycles with one pod event between two of them.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def session(
    nodes: int, count: int, size: int, conf: str | None, plugins_dir: str, heterogeneous: bool, idle: bool, output: str
) -> None:
    """Time one session over pending gangs.

    Filling the mirror, the snapshot and the session are timed apart.
    """
    check_pods(count, size)
    words = vocabulary(plugins_dir)
    loaded = words.read(BENCH_CONF, "built-in configuration") if conf is None else configuring.from_file(conf, words).conf
    for warning in loaded.warnings:
        click.echo(f"warning: {conf}: {warning}", err=True)
    if idle:
        report = bench_idle(nodes, count, size, loaded)
    else:
        make: Callable[[int, int], Iterator[Json]] = mixed_gangs if heterogeneous else gangs
        report = bench_session(nodes, make(count, size), loaded, mixed=heterogeneous)
    _show(report, output)
