"""vc-controller-manager: the controllers as a daemon, with the flags of the reference (volcano ed72c7c, cmd/controller-manager).

`assemble` puts the parts together on any cluster; `main` gives it the one that the flags name."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily

from controller.manager import COMPONENT, Manager
from controller.metrics import JOB_TO_POD, ON_REQUEST, WAITING_REQUESTS, samples
from controller.reconciler import MAX_REQUEUE, Settings
from controller.selection import DEFAULT, chosen
from controller.sharding import DEFAULT_FLAGS, ShardFlags
from controller.writing import Apply, harmless
from extender.api.errors import ClusterError, PumiceError, UsageError
from extender.api.labels import SCHEDULERS, SYSTEM_NAMESPACE
from extender.api.meta import JOB, POD, Json, Key, Time, controller_of, parse_time, uid_of
from extender.api.operations import Create, Operation
from extender.cluster.apply import apply
from extender.cluster.clock import Clock, SystemClock
from extender.cluster.daemon import Daemon, clients, elect, end
from extender.cluster.endpoints import serve
from extender.cluster.events import EventRecorder
from extender.cluster.flags import ARRAY, DURATION, LIST, flag, group, parse_or_exit, refuse
from extender.cluster.health import Health
from extender.cluster.logs import about, configure
from extender.cluster.metrics import LEADER, WRITE_FAILURES, OnRequest, new_registry
from extender.cluster.options import (
    ClientOptions,
    GateOptions,
    LeaderOptions,
    LogOptions,
    ServingOptions,
)
from extender.cluster.port import Cluster
from extender.cluster.serving import HttpServer

PROGRAM = COMPONENT
BACKOFF = 5.0  # seconds to wait where the API server does not answer at the start
_POOL = "workers of all controllers; the largest of the --worker-threads flags counts"
_CRON = "cronjob-controller"
_LEADER, _SERVING = LeaderOptions(leader_elect_resource_name=PROGRAM), ServingOptions(listen_address=":8081")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Options:
    controllers: tuple[str, ...] = flag(DEFAULT, "'*' all, 'name' or '+name' this one, '-name' not this one; of words "
                                        "about the same controller the first decides", kind=LIST)  # fmt: skip
    scheduler_name: tuple[str, ...] = flag(SCHEDULERS, "pods with this spec.schedulerName get PodGroups; may be repeated",
                                           kind=ARRAY)  # fmt: skip
    worker_threads: int = flag(3, _POOL)
    worker_threads_for_cronjob: int = flag(3, _POOL)
    worker_threads_for_podgroup: int = flag(5, _POOL)
    worker_threads_for_queue: int = flag(5, _POOL)
    worker_threads_for_gc: int = flag(1, _POOL)
    max_requeue_num: int = flag(MAX_REQUEUE, "times that a request is tried again before it is given up; negative: for ever")
    inherit_owner_annotations: bool = flag(True, "PodGroups of plain workloads take over the annotations of the owner")
    enable_per_job_metrics: bool = flag(False, "show metrics with the names of jobs, which grow with them")
    sharding_configmap: str = flag("volcano-sharding-configmap", "ConfigMap with the configuration of node shards")
    sharding_configmap_namespace: str = flag(SYSTEM_NAMESPACE, "its namespace")
    scheduler_configs: tuple[str, ...] = flag(DEFAULT_FLAGS, "shards where there is no ConfigMap: name:type:minUtil:maxUtil:"
                                              "preferWarmup:minNodes:maxNodes, parted by commas", kind=LIST)  # fmt: skip
    shard_sync_period: float = flag(60.0, "pause between two assignments of shards where there is no ConfigMap", kind=DURATION)
    enable_node_event_trigger: bool = flag(True, "assign when nodes come, go or fill, too, where there is no ConfigMap")
    client: ClientOptions = field(default=ClientOptions(), metadata=group("API server"))
    leader: LeaderOptions = field(default=_LEADER, metadata=group("leader election"))
    serving: ServingOptions = field(default=_SERVING, metadata=group("health and metrics"))
    gates: GateOptions = field(default=GateOptions(), metadata=group("feature gates"))
    logs: LogOptions = field(default=LogOptions(), metadata=group("logs"))

    @property
    def words(self) -> Sequence[str]:
        """--controllers, without what the feature gates leave out."""
        if self.gates.enabled("CronVolcanoJobSupport"):
            return self.controllers
        return (f"-{_CRON}", *(word for word in self.controllers if word.lstrip("+-") != _CRON))

    def check(self) -> None:
        """Raises UsageError or ConfError."""
        self.leader.check()
        self.serving.check()
        chosen(self.words)
        self.shard_flags.conf()
        if self.workers < 1:
            raise UsageError("--worker-threads: there must be at least one worker")

    @property
    def shard_flags(self) -> ShardFlags:
        return ShardFlags(self.scheduler_configs, self.shard_sync_period, self.enable_node_event_trigger)

    @property
    def workers(self) -> int:
        return max(self.worker_threads, self.worker_threads_for_cronjob, self.worker_threads_for_podgroup,
                   self.worker_threads_for_queue, self.worker_threads_for_gc)  # fmt: skip

    def settings(self, environ: Mapping[str, str]) -> Settings:
        namespace = environ.get("KUBE_POD_NAMESPACE", SYSTEM_NAMESPACE)
        release = environ.get("HELM_RELEASE_NAME", "volcano")
        return Settings(
            scheduler_names=self.scheduler_name,
            max_requeue=self.max_requeue_num,
            inherit_owner_annotations=self.inherit_owner_annotations,
            workload_support=self.gates.enabled("WorkLoadSupport"),
            configuration=Key(namespace, f"{release}-controller-configmap"),
            sharding=Key(self.sharding_configmap_namespace, self.sharding_configmap),
            shard_flags=self.shard_flags,
            workers=self.workers,
        )


class Controllers:
    """The manager, started until it starts: an API server that does not answer is asked again, from the beginning."""

    def __init__(self, make: Callable[[], Manager], names: Sequence[str]) -> None:
        self._make, self.names = make, names
        self.manager: Manager | None = None

    def run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            manager = self.manager = self._make()
            try:
                manager.start()
            except ClusterError as error:
                manager.close()
                log.warning("the API server does not answer as it should", extra=about(error=str(error)))
                stop.wait(BACKOFF)
                continue
            log.info("every list has come", extra=about(controllers=self.names))
            manager.run(stop)

    def ready(self) -> str | None:
        """A check for /readyz. Who only waits for the lease is ready to take over."""
        return None if self.manager is None or self.manager.started else "not every list has come"


class ControllerMetrics:
    """`per_job`: also series with the names of jobs."""

    def __init__(self, registry: CollectorRegistry, *, per_job: bool = False) -> None:
        self._per_job = per_job
        self._failures = WRITE_FAILURES.make(registry)
        self._job_to_pod = JOB_TO_POD.make(registry)
        self._controllers: Controllers | None = None
        registry.register(OnRequest(self._collect))

    def watch(self, controllers: Controllers) -> None:
        self._controllers = controllers

    def counting(self, inner: Apply) -> Apply:
        """The same, with refusals counted that matter, and how soon jobs got their pods."""

        def apply_and_count(cluster: Cluster, operations: Sequence[Operation], /, *, clock: Clock,
                            on_failure: Callable[[Operation, ClusterError], None]) -> object:  # fmt: skip
            refused: set[int] = set()

            def failed(operation: Operation, error: ClusterError) -> None:
                refused.add(id(operation))
                if not harmless(operation, error):
                    self._failures.labels(type(operation).__name__, error.reason).inc()
                on_failure(operation, error)

            report = inner(cluster, operations, clock=clock, on_failure=failed)
            for each in operations:
                if isinstance(each, Create) and each.kind == POD and id(each) not in refused:
                    self._made(each.object, clock.now())
            return report

        return apply_and_count

    def _made(self, pod: Json, now: Time) -> None:
        manager, owner = self._controllers.manager if self._controllers is not None else None, controller_of(pod)
        if manager is None or owner is None or (owner["apiVersion"], owner["kind"]) != (JOB.api_version, JOB.name):
            return
        job = manager.looking(lambda store: store.get(JOB, Key(pod["metadata"]["namespace"], owner["name"])))
        if job is not None and uid_of(job) == owner["uid"]:
            age = now - (parse_time(job["metadata"].get("creationTimestamp")) or now)
            self._job_to_pod.observe(max(age, 0.0) * 1000)

    def _collect(self) -> Iterator[GaugeMetricFamily]:
        manager = self._controllers.manager if self._controllers is not None else None
        if manager is None:
            return
        families = {metric.name: (metric, metric.family()) for metric in ON_REQUEST if self._per_job or not metric.per_job}
        for sample in manager.looking(lambda store: list(samples(store, per_job=self._per_job))):
            metric, family = families[sample.name]
            family.add_metric([sample.labels[label] for label in metric.labels], sample.value)
        yield from (family for _, family in families.values())
        length = WAITING_REQUESTS.family()
        length.add_metric((), manager.queue_length())
        yield length


@dataclass(frozen=True, slots=True, eq=False)
class Assembled:
    daemon: Daemon
    controllers: Controllers
    servers: Sequence[HttpServer]


def assemble(options: Options, cluster: Cluster, environ: Mapping[str, str], *, for_lease: Cluster | None = None,
             clock: Clock | None = None) -> Assembled:  # fmt: skip
    """Everything but the signals. Serves already; works when the daemon runs. Raises ConfError, UsageError.

    `for_lease`: a way to the cluster of its own for renewals, so that they never wait for other requests."""
    clock = clock or SystemClock()
    registry = new_registry()
    metrics = ControllerMetrics(registry, per_job=options.enable_per_job_metrics)
    carry_out = metrics.counting(partial(apply, events=EventRecorder(clock, COMPONENT)))
    settings = options.settings(environ)
    controllers = Controllers(lambda: Manager(cluster, clock, settings, chosen(options.words), carry_out),
                              [each.name for each in chosen(options.words)])  # fmt: skip
    metrics.watch(controllers)
    lease = Key(options.leader.namespace, options.leader.leader_elect_resource_name or PROGRAM)
    health = Health()
    servers = serve(options.serving, health, registry)
    daemon = Daemon(controllers.run, elect(options.leader, lease, for_lease or cluster), servers)
    health.ready["informer-sync"] = controllers.ready
    daemon.show(health, LEADER.make(registry))
    return Assembled(daemon, controllers, servers)


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point of the console script."""
    words = sys.argv[1:] if argv is None else argv
    about_it = "Runs jobs, queues, PodGroups and what belongs to them."
    given = parse_or_exit(Options(), words, os.environ, PROGRAM, about_it)
    options = given.options
    configure(options.logs.logging_format, options.logs.verbosity)
    for warning in (*given.warnings, *options.gates.warnings()):
        log.warning(warning)
    try:
        options.check()
        cluster, for_lease = clients(options.client, PROGRAM)
        assembled = assemble(options, cluster, os.environ, for_lease=for_lease)
    except PumiceError as error:
        refuse(error, PROGRAM)
    assembled.daemon.listen()
    end(assembled.daemon.run())
