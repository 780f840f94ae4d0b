"""vc-scheduler: loop, extender or both as a daemon, with the flags of the reference (volcano ed72c7c, cmd/scheduler).

`assemble` puts the parts together on any cluster; `main` gives it the one that the flags name."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus

import orjson

from extender.api.errors import ConfError, PumiceError, UsageError
from extender.api.labels import SCHEDULERS
from extender.api.meta import LEASE, NODE, POD, POD_GROUP, Json, Key, Kind, labels_of
from extender.api.operations import Emit
from extender.cluster.clock import Clock, SystemClock
from extender.cluster.daemon import Daemon, clients, elect, end
from extender.cluster.endpoints import serve, stacks
from extender.cluster.events import EventRecorder
from extender.cluster.flags import ARRAY, DURATION, LIST, flag, group, parse_or_exit, refuse, rows
from extender.cluster.health import Health
from extender.cluster.logs import about, configure
from extender.cluster.metrics import LEADER, new_registry
from extender.cluster.options import ClientOptions, GateOptions, LeaderOptions, LogOptions, ServingOptions
from extender.cluster.port import Cluster
from extender.cluster.serving import Answer, HttpServer, Page, Request
from extender.cluster.side_by_side import SideBySide
from extender.explain import explain_page
from extender.extending import NO_LEADER, NO_SESSION, ExtenderOptions, Extending, after, beside
from extender.intake import Ours
from extender.loop import Loop
from extender.metrics.scheduler import SchedulerMetrics
from extender.metrics.timed import Timed
from extender.node_shards import NodeShards
from extender.reload import ConfFile, Reloads, tell
from extender.ring import ENABLED, Share
from extender.service import Service
from extender.standalone import Pace, Standalone
from extender.vocabulary import vocabulary

PROGRAM = "vc-scheduler"
EXTENDER = "vc-extender"
_ALL_NODES = "every node that fits is compared"
_WATCHED = "watched where a plugin asks for it"
# Variables of the reference that do nothing here, and why.
_UNUSED = {
    "BATCH_BIND_NUM": "bindings are written side by side, not gathered",
    "PANIC_ON_ERROR": "there are no assertions to survive",
    "DEBUG_SOCKET_DIR": "--v says how much is told",
}
_CLIENT, _LEADER = ClientOptions(kube_api_qps=2000.0, kube_api_burst=2000), LeaderOptions()

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Options:
    scheduler_name: tuple[str, ...] = flag(SCHEDULERS, "pods with this spec.schedulerName are ours; may be given again",
                                           kind=ARRAY)  # fmt: skip
    scheduler_conf: str = flag("", "path of scheduler.conf; it is read again when it changes")
    disable_default_scheduler_config: bool = flag(False, "do not start without --scheduler-conf")
    check_conf: bool = flag(False, "print what is wrong with the configuration and exit, with status 1 if it cannot be used")
    schedule_period: float = flag(1.0, "pause between two sessions", kind=DURATION)
    default_queue: str = flag("default", "queue of PodGroups that name none")
    node_selector: tuple[str, ...] = flag((), "label:value; only nodes that have one of them are ours", kind=LIST)
    resource_sync_timeout: float = flag(60.0, "after so long without the first lists it is told which are missing; no session "
                                        "begins without them", kind=DURATION)  # fmt: skip
    cache_dumper: bool = flag(True, "on SIGUSR1 and SIGUSR2 write what the scheduler believes to a file")
    cache_dump_dir: str = flag("/tmp", "folder of these files")
    enable_per_job_metrics: bool = flag(False, "show metrics with the names of jobs, which grow with them")
    enable_pprof: bool = flag(False, "serve /debug/stacks and /debug/flags at --listen-address")
    scheduler_sharding_mode: str = flag("none", "only the nodes of our NodeShard (hard), or others where none of them will do "
                                        "(soft)", choices=("none", "hard", "soft"))  # fmt: skip
    scheduler_sharding_name: str = flag("volcano", "name of our NodeShard")
    minimum_feasible_nodes: int = flag(100, "nodes to look for", unused=_ALL_NODES)
    minimum_percentage_nodes_to_find: int = flag(5, "likewise, in percent", unused=_ALL_NODES)
    percentage_nodes_to_find: int = flag(0, "likewise, in percent", unused=_ALL_NODES)
    node_worker_threads: int = flag(20, "threads for events of nodes", unused="one event costs microseconds")
    gate_removal_worker_num: int = flag(5, "threads that remove gates", unused="writes go side by side anyway")
    priority_class: bool = flag(True, "watch PriorityClasses", unused="always")
    csi_storage: bool = flag(True, "watch CSIDrivers and CSIStorageCapacities", unused=_WATCHED)
    ignored_provisioners: tuple[str, ...] = flag((), "provisioners to ignore", kind=LIST, unused=_WATCHED)
    resync_period: float = flag(0.0, "look at everything again", kind=DURATION, unused="watches lose nothing")
    plugins_dir: str = flag("", "folder of plugins and actions of your own, in Python")
    client: ClientOptions = field(default=_CLIENT, metadata=group("API server"))
    leader: LeaderOptions = field(default=_LEADER, metadata=group("leader election"))
    serving: ServingOptions = field(default=ServingOptions(), metadata=group("health and metrics"))
    gates: GateOptions = field(default=GateOptions(), metadata=group("feature gates"))
    logs: LogOptions = field(default=LogOptions(), metadata=group("logs"))
    extender: ExtenderOptions = field(default=ExtenderOptions(), metadata=group("extender of kube-scheduler"))

    @property
    def component(self) -> str:
        """What events and the lease call us."""
        if self.extender.extender_only:
            return EXTENDER
        return self.scheduler_name[0] if len(self.scheduler_name) == 1 else SCHEDULERS[0]

    @property
    def lease(self) -> Key:
        """By default of the scheduler's name: schedulers of different names do not wait for each other."""
        return Key(self.leader.namespace, self.leader.leader_elect_resource_name or self.component)

    def check(self) -> None:
        """Raises UsageError for what cannot work together."""
        self.leader.check()
        self.serving.check()
        self.extender.check()
        both = set(self.scheduler_name) & set(self.extender.extender_scheduler_name)
        if self.extender.extender_address and not self.extender.extender_only and both:
            raise UsageError(f"--scheduler-name and --extender-scheduler-name both name {', '.join(sorted(both))}: either the "
                             "loop places these pods, or kube-scheduler does")  # fmt: skip
        if self.schedule_period < 0 or not self.scheduler_name:
            raise UsageError("--schedule-period must not be negative, and --scheduler-name not be empty")
        if self.scheduler_sharding_mode != "none" and self.extender.extender_address:
            raise UsageError("--scheduler-sharding-mode: kube-scheduler knows no shards; give the extender a --node-selector")
        if self.disable_default_scheduler_config and not self.scheduler_conf:
            raise UsageError("--disable-default-scheduler-config needs --scheduler-conf")
        node_filter(self.node_selector)


@dataclass(frozen=True, slots=True, eq=False)
class Scheduler:
    """What `assemble` made."""

    daemon: Daemon
    standalone: Standalone
    servers: Sequence[HttpServer]
    extending: Extending | None = None  # beside the loop


def node_filter(selector: Sequence[str]) -> Callable[[Json], bool] | None:
    """Nodes that have at least one of the labels; None: all nodes."""
    pairs = [tuple(part.strip() for part in word.split(":", 1)) for word in selector]
    if any(len(pair) != 2 or not all(pair) for pair in pairs):
        raise UsageError(f"--node-selector: '{','.join(selector)}' must be label:value, parted by commas")
    if not pairs:
        return None
    return lambda node: any(labels_of(node).get(label) == value for label, value in pairs)


def share_of(options: Options, environ: Mapping[str, str]) -> Ours:
    """What is there for us, by --node-selector and by the hash of names. Raises UsageError."""
    selected, share = node_filter(options.node_selector), Share.of(environ)
    if share is None:
        return {NODE: selected} if selected else {}
    if options.extender.extender_address:
        raise UsageError(f"{ENABLED}: kube-scheduler has one extender; give it a --node-selector")
    return {NODE: lambda node: share.has_node(node) and (selected is None or selected(node)), POD_GROUP: share.has_group}


def with_lease(options: Options, environ: Mapping[str, str]) -> Options:
    """Where several work at once by the hash of names each has a lease of its own name. Raises UsageError."""
    share = Share.of(environ)
    if share is None or options.leader.leader_elect_resource_name:
        return options
    return replace(options, leader=replace(options.leader, leader_elect_resource_name=share.member))


def shards(options: Options, cluster: Cluster, clock: Clock) -> NodeShards | None:
    mode = options.scheduler_sharding_mode
    return NodeShards(cluster, clock, mode, options.scheduler_sharding_name) if mode != "none" else None


def assemble(options: Options, cluster: Cluster, environ: Mapping[str, str], *, for_lease: Cluster | None = None,
             clock: Clock | None = None) -> Scheduler:  # fmt: skip
    """Everything but the signals. Serves already; works when the daemon runs. Raises ConfError, UsageError.

    `for_lease`: a way to the cluster of its own for renewals, so that they never wait for other requests."""
    clock = clock or SystemClock()
    file = conf_file(options)
    conf = file.load()
    registry = new_registry()
    metrics = SchedulerMetrics(registry, per_job=options.enable_per_job_metrics)
    election = elect(options.leader, options.lease, for_lease or cluster)
    holds: Callable[[], bool] = election.holds if election else lambda: True

    def bound(seconds: float) -> None:
        metrics.bound_in(seconds)
        standalone.beat()

    writes = SideBySide(on_bind=bound)
    ours = share_of(options, environ)
    service: Service | None = None
    if options.extender.extender_address:
        service = Service(cluster, conf, clock, options.extender.settings(options.default_queue), ours=ours,
                          beside=options.scheduler_name)  # fmt: skip
    loop = Loop(cluster, conf, clock, scheduler_names=options.scheduler_name, default_queue=options.default_queue,
                decide=after(service, Timed(metrics)) if service else Timed(metrics), carry_out=writes, ours=ours,
                intake=service.intake if service else None, reservations=service.reservations if service else None)  # fmt: skip
    reloads = Reloads(file, metrics, clock, reporter(options, cluster, environ, clock))
    standalone = Standalone(loop, reloads, metrics, clock, pace=Pace(options.schedule_period, options.resource_sync_timeout),
                            holds=holds, dump_folder=options.cache_dump_dir,
                            also=service.use if service else lambda _: None,
                            shards=shards(options, cluster, clock))  # fmt: skip
    health = Health()
    pages = debug_pages(options) if options.enable_pprof else {}
    if options.serving.enable_metrics:
        pages["/explain"] = explain_page(loop)
    servers = serve(options.serving, health, registry, pages)
    dumps: dict[int, Callable[[], None]] = {}
    if options.cache_dumper:
        dumps = {signal.SIGUSR1: standalone.ask_for_dump, signal.SIGUSR2: standalone.ask_for_dump}

    extending = None
    if service is not None:
        service.hindrance = lambda: NO_LEADER if not holds() else NO_SESSION if loop.last is None else ""
        extending = Extending(options.extender, service, registry, health, clock)

    def work(stop: threading.Event) -> None:
        with beside(extending, stop):
            standalone.run(stop)
        writes.close()

    daemon = Daemon(work, election, servers, dumps)
    health.alive["loop"], health.ready["informer-sync"] = standalone.alive, standalone.ready
    daemon.show(health, metrics[LEADER])
    tell(file, conf)
    return Scheduler(daemon, standalone, servers, extending)


@dataclass(frozen=True, slots=True, eq=False)
class Extender:
    """What `assemble_extender` made."""

    daemon: Daemon
    extending: Extending
    servers: Sequence[HttpServer]


def assemble_extender(options: Options, cluster: Cluster, environ: Mapping[str, str], *, for_lease: Cluster | None = None,
                      clock: Clock | None = None) -> Extender:  # fmt: skip
    """The same for --extender-only."""
    clock = clock or SystemClock()
    file = conf_file(options)
    conf = file.load()
    registry = new_registry()
    metrics = SchedulerMetrics(registry)
    election = elect(options.leader, options.lease, for_lease or cluster)
    service = Service(cluster, conf, clock, options.extender.settings(options.default_queue),
                      ours=share_of(options, environ),
                      hindrance=lambda: "" if election is None or election.holds() else NO_LEADER)  # fmt: skip
    reloads = Reloads(file, metrics, clock, reporter(options, cluster, environ, clock))
    health = Health()
    extending = Extending(options.extender, service, registry, health, clock, reloads.look)
    servers = serve(options.serving, health, registry, debug_pages(options) if options.enable_pprof else None)
    daemon = Daemon(extending.run, election, servers)
    daemon.show(health, metrics[LEADER])
    tell(file, conf)
    return Extender(daemon, extending, servers)


def ourselves(lease: Key, environ: Mapping[str, str]) -> tuple[Kind, Key]:
    """The object that events about the scheduler itself belong to: its pod, where the environment says which; else the lease."""
    name, namespace = environ.get("POD_NAME"), environ.get("POD_NAMESPACE")
    if name and namespace:
        return POD, Key(namespace, name)
    return LEASE, lease


def reporter(options: Options, cluster: Cluster, environ: Mapping[str, str], clock: Clock) -> Callable[[str, str, str], None]:
    """Makes events about the scheduler itself; one that cannot be written is no reason to stop."""
    events, (kind, key) = EventRecorder(clock, options.component), ourselves(options.lease, environ)

    def report(type: str, reason: str, message: str) -> None:
        emit = Emit(kind, key, type, reason, message)
        try:
            events.emit(cluster, emit)
        except PumiceError as error:
            log.warning("an event could not be written", extra=about(reason=reason, error=str(error)))

    return report


def debug_pages(options: Options) -> dict[str, Page]:
    def flags(_: Request) -> Answer:
        shown = {f"--{row.name}": row.flag.kind.show(row.default) for row in rows(options)}
        return Answer(HTTPStatus.OK, orjson.dumps(shown, option=orjson.OPT_INDENT_2), "application/json")

    return {"/debug/stacks": stacks, "/debug/flags": flags}


def unused(environ: Mapping[str, str]) -> list[str]:
    """A warning for each variable that was set in vain."""
    return [f"{name} has no effect: {why}" for name, why in _UNUSED.items() if name in environ]


def conf_file(options: Options) -> ConfFile:
    """Raises ConfError where a plugin of --plugins-dir cannot be loaded."""
    return ConfFile(options.scheduler_conf, vocabulary(options.plugins_dir).read)


def check_conf(options: Options) -> int:
    """What `--check-conf` prints; the exit status."""
    try:
        file = conf_file(options)
        conf = file.load()
    except ConfError as error:
        for line in str(error).splitlines():
            print(f"error: {line}", file=sys.stderr)
        return 1
    for warning in conf.warnings:
        print(f"warning: {file.source}: {warning}", file=sys.stderr)
    print(f"{file.source}: can be used")
    return 0


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point of the console script."""
    words = sys.argv[1:] if argv is None else argv
    given = parse_or_exit(Options(), words, os.environ, PROGRAM, "Schedules pods in gangs and queues.")
    options = given.options
    configure(options.logs.logging_format, options.logs.verbosity)
    if options.check_conf:
        sys.exit(check_conf(options))
    for warning in (*given.warnings, *options.gates.warnings(), *unused(os.environ)):
        log.warning(warning)
    try:
        options.check()
        options = with_lease(options, os.environ)
        cluster, for_lease = clients(options.client, PROGRAM)
        if options.extender.extender_only:
            daemon = assemble_extender(options, cluster, os.environ, for_lease=for_lease).daemon
        else:
            daemon = assemble(options, cluster, os.environ, for_lease=for_lease).daemon
    except PumiceError as error:
        refuse(error, PROGRAM)
    daemon.listen()
    end(daemon.run())
