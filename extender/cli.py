"""vc-scheduler: loop, extender or both as a daemon; its flags are in options.py.

`assemble` puts the parts together on any cluster; `main` gives it the one that the flags name."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus

import orjson
from prometheus_client import CollectorRegistry

from extender.api.errors import ConfError, PumiceError
from extender.api.meta import LEASE, POD, Key, Kind
from extender.api.operations import Emit
from extender.cluster.clock import Clock, SystemClock
from extender.cluster.daemon import Daemon, clients, elect, end
from extender.cluster.endpoints import serve, stacks
from extender.cluster.events import EventRecorder
from extender.cluster.flags import parse_or_exit, refuse, rows
from extender.cluster.health import Health
from extender.cluster.lease import Election
from extender.cluster.logs import about, configure
from extender.cluster.metrics import LEADER, new_registry
from extender.cluster.port import Cluster
from extender.cluster.serving import Answer, HttpServer, Page, Request
from extender.cluster.side_by_side import SideBySide
from extender.core.conf import Conf
from extender.explain import explain_page
from extender.extending import NO_LEADER, NO_SESSION, Extending, after, beside
from extender.loop import Loop
from extender.metrics.scheduler import SchedulerMetrics
from extender.metrics.timed import Timed
from extender.node_shards import NodeShards
from extender.options import PROGRAM, Options, share_of, unused, with_lease
from extender.reload import ConfFile, Reloads, tell
from extender.service import Service
from extender.standalone import Pace, Standalone
from extender.vocabulary import vocabulary

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Scheduler:
    """What `assemble` made."""

    daemon: Daemon
    standalone: Standalone
    servers: Sequence[HttpServer]
    extending: Extending | None = None  # beside the loop


@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """What loop and extender need either way."""

    file: ConfFile
    conf: Conf
    registry: CollectorRegistry
    metrics: SchedulerMetrics
    reloads: Reloads
    election: Election | None
    health: Health = field(default_factory=Health)

    def leads(self) -> bool:
        return self.election is None or self.election.holds()


def _parts(options: Options, cluster: Cluster, environ: Mapping[str, str], for_lease: Cluster | None, clock: Clock) -> _Parts:
    """Raises ConfError, UsageError."""
    file, registry = conf_file(options), new_registry()
    conf = file.load()
    metrics = SchedulerMetrics(registry, per_job=options.enable_per_job_metrics)
    reloads = Reloads(file, metrics, clock, reporter(options, cluster, environ, clock))
    return _Parts(file, conf, registry, metrics, reloads, elect(options.leader, options.lease, for_lease or cluster))


def shards(options: Options, cluster: Cluster, clock: Clock) -> NodeShards | None:
    mode = options.scheduler_sharding_mode
    return NodeShards(cluster, clock, mode, options.scheduler_sharding_name) if mode != "none" else None


def assemble(options: Options, cluster: Cluster, environ: Mapping[str, str], *, for_lease: Cluster | None = None,
             clock: Clock | None = None) -> Scheduler:  # fmt: skip
    """Everything but the signals. Serves already; works when the daemon runs. Raises ConfError, UsageError.

    `for_lease`: a way to the cluster of its own for renewals, so that they never wait for other requests."""
    clock = clock or SystemClock()
    parts = _parts(options, cluster, environ, for_lease, clock)
    conf, metrics, health, holds = parts.conf, parts.metrics, parts.health, parts.leads

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
    standalone = Standalone(loop, parts.reloads, metrics, clock, holds=holds, dump_folder=options.cache_dump_dir,
                            pace=Pace(options.schedule_period, options.resource_sync_timeout),
                            also=service.use if service else lambda _: None,
                            shards=shards(options, cluster, clock))  # fmt: skip
    pages = {"/explain": explain_page(loop)} if options.serving.enable_metrics else {}
    servers = serve(options.serving, health, parts.registry, {**debug_pages(options), **pages})
    dumps: dict[int, Callable[[], None]] = {}
    if options.cache_dumper:
        dumps = {signal.SIGUSR1: standalone.ask_for_dump, signal.SIGUSR2: standalone.ask_for_dump}

    extending = None
    if service is not None:
        service.hindrance = lambda: NO_LEADER if not holds() else NO_SESSION if loop.last is None else ""
        extending = Extending(options.extender, service, parts.registry, health, clock)

    def work(stop: threading.Event) -> None:
        with beside(extending, stop):
            standalone.run(stop)
        writes.close()

    daemon = Daemon(work, parts.election, servers, dumps)
    health.alive["loop"], health.ready["informer-sync"] = standalone.alive, standalone.ready
    daemon.show(health, metrics[LEADER])
    tell(parts.file, conf)
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
    parts = _parts(options, cluster, environ, for_lease, clock)
    service = Service(cluster, parts.conf, clock, options.extender.settings(options.default_queue),
                      ours=share_of(options, environ), hindrance=lambda: "" if parts.leads() else NO_LEADER)  # fmt: skip
    extending = Extending(options.extender, service, parts.registry, parts.health, clock, parts.reloads.look)
    servers = serve(options.serving, parts.health, parts.registry, debug_pages(options))
    daemon = Daemon(extending.run, parts.election, servers)
    daemon.show(parts.health, parts.metrics[LEADER])
    tell(parts.file, parts.conf)
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
    """None without --enable-pprof."""
    if not options.enable_pprof:
        return {}

    def flags(_: Request) -> Answer:
        shown = {f"--{row.name}": row.flag.kind.show(row.default) for row in rows(options)}
        return Answer(HTTPStatus.OK, orjson.dumps(shown, option=orjson.OPT_INDENT_2), "application/json")

    return {"/debug/stacks": stacks, "/debug/flags": flags}


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
