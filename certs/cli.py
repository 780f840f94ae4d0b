"""vc-certs: certificates for the admission webhook.

vc-certs issue --folder DIR --host NAME    into files
vc-certs install                           into the cluster: Secrets and caBundle; again at any time, it does what is due
vc-certs keep                              the same now and then, by whoever holds the lease
vc-certs status [--folder DIR]             what there is, and when it is due; status 1 where something is wrong"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from certs import folder
from certs.install import Place, keep, load
from certs.issue import Pair, due, expires, hosts, read
from certs.keeper import Keeper
from certs.stock import Stock, authority_fault, restock, serving_fault
from extender.api.errors import PumiceError, UsageError, nearest
from extender.api.labels import SYSTEM_NAMESPACE
from extender.api.meta import Key, Time, format_time
from extender.cluster.clock import Clock, SystemClock
from extender.cluster.daemon import Daemon, clients, elect, end
from extender.cluster.endpoints import serve
from extender.cluster.flags import ARRAY, DURATION, flag, group, parse_or_exit, refuse
from extender.cluster.health import Health
from extender.cluster.logs import configure
from extender.cluster.metrics import LEADER, new_registry
from extender.cluster.options import ClientOptions, LeaderOptions, LogOptions, ServingOptions
from extender.cluster.port import Cluster
from extender.cluster.version import version_text

PROGRAM = "vc-certs"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PlaceOptions:
    webhook_namespace: str = flag(SYSTEM_NAMESPACE, "namespace of the webhook's service and Secret")
    webhook_service_name: str = flag("volcano-admission-service", "name of the service")
    secret_name: str = flag("volcano-admission-secret", "name of the Secret")

    def place(self) -> Place:
        return Place(self.webhook_namespace, self.webhook_service_name, self.secret_name)


@dataclass(frozen=True, slots=True)
class IssueOptions:
    folder: str = flag("", "where the files are kept: tls.crt, tls.key, ca.crt, ca.key")
    host: tuple[str, ...] = flag((), "name or address that the certificate is for; those of the service if none", kind=ARRAY)
    force: bool = flag(False, "make everything anew")
    webhook: PlaceOptions = field(default=PlaceOptions(), metadata=group("the webhook"))
    logs: LogOptions = field(default=LogOptions(), metadata=group("logs"))


@dataclass(frozen=True, slots=True)
class InstallOptions:
    force: bool = flag(False, "make everything anew")
    cert_manager: bool = flag(False, "cert-manager keeps the Secret: write no Secret, only the authority it names")
    webhook: PlaceOptions = field(default=PlaceOptions(), metadata=group("the webhook"))
    client: ClientOptions = field(default=ClientOptions(), metadata=group("API server"))
    logs: LogOptions = field(default=LogOptions(), metadata=group("logs"))


@dataclass(frozen=True, slots=True)
class KeepOptions:
    interval: float = flag(3600.0, "pause between two looks", kind=DURATION)
    cert_manager: bool = flag(False, "cert-manager keeps the Secret: write no Secret, only the authority it names")
    webhook: PlaceOptions = field(default=PlaceOptions(), metadata=group("the webhook"))
    client: ClientOptions = field(default=ClientOptions(), metadata=group("API server"))
    leader: LeaderOptions = field(default=LeaderOptions(leader_elect_resource_name="vc-certs"), metadata=group("leader election"))
    serving: ServingOptions = field(default=ServingOptions(), metadata=group("health and metrics"))
    logs: LogOptions = field(default=LogOptions(), metadata=group("logs"))

    def check(self) -> None:
        self.leader.check()
        self.serving.check()


@dataclass(frozen=True, slots=True)
class StatusOptions:
    folder: str = flag("", "look at files and not at a cluster")
    host: tuple[str, ...] = flag((), "names that the certificate must have; those of the service if none", kind=ARRAY)
    webhook: PlaceOptions = field(default=PlaceOptions(), metadata=group("the webhook"))
    client: ClientOptions = field(default=ClientOptions(), metadata=group("API server"))
    logs: LogOptions = field(default=LogOptions(), metadata=group("logs"))


def issue(options: IssueOptions, clock: Clock) -> int:
    if not options.folder:
        raise UsageError("--folder is needed")
    names = options.host or options.webhook.place().names
    have = folder.load(Path(options.folder))
    wanted = restock(have, names, clock.now(), force=options.force)
    if wanted == have:
        print("nothing is due")
    else:
        folder.save(Path(options.folder), wanted)
        print(f"written to {options.folder}")
    return 0


def install(options: InstallOptions, clock: Clock) -> int:
    written = keep(options.client.connect(PROGRAM), options.webhook.place(), clock.now(), force=options.force,
                   external=options.cert_manager)  # fmt: skip
    print("\n".join(f"written: {what}" for what in written) or "nothing is due")
    return 0


def keep_on(options: KeepOptions, clock: Clock) -> int:
    options.check()
    cluster, for_lease = clients(options.client, PROGRAM)
    assembled = assemble(options, cluster, for_lease, clock)
    assembled.listen()
    end(assembled.run())


def assemble(options: KeepOptions, cluster: Cluster, for_lease: Cluster, clock: Clock) -> Daemon:
    """Everything but the signals. Answers probes already; works when it runs. Raises UsageError."""
    keeper = Keeper(cluster, options.webhook.place(), clock, options.interval, external=options.cert_manager)
    lease = Key(options.leader.namespace, options.leader.leader_elect_resource_name)
    registry, health = new_registry(), Health()
    daemon = Daemon(keeper.run, elect(options.leader, lease, for_lease), serve(options.serving, health, registry))
    health.alive["loop"], health.ready["certificates"] = keeper.alive, keeper.ready
    daemon.show(health, LEADER.make(registry))
    return daemon


def status(options: StatusOptions, clock: Clock) -> int:
    place, now = options.webhook.place(), clock.now()
    stock = folder.load(Path(options.folder)) if options.folder else load(options.client.connect(PROGRAM), place)[0]
    lines, faults = report(stock, options.host or place.names, now)
    print("\n".join(lines))
    return 1 if faults else 0


def report(stock: Stock, names: Sequence[str], now: Time) -> tuple[list[str], list[str]]:
    """Lines for people, and what is wrong. A stock without its authority's key is one that others keep."""
    faults = [f"serving: {why}"] if (why := serving_fault(stock, names, now)) else []
    if stock.authority is not None and (why := authority_fault(stock, now)):
        faults.append(f"authority: {why}")
    lines = [*_described("authority", stock.authority), *_described("serving", stock.serving)]
    return [*lines, *(f"fault: {why}" for why in faults)], faults


def _described(what: str, pair: Pair | None) -> list[str]:
    try:
        certificate = read(pair.certificate)[0] if pair is not None else None
    except PumiceError:
        certificate = None
    if certificate is None:
        return [f"{what}: none"]
    named = ", ".join(sorted(hosts(certificate))) or certificate.subject.rfc4514_string()
    return [f"{what}: {named}; due {format_time(due(certificate))}, expires {format_time(expires(certificate))}"]


@dataclass(frozen=True, slots=True)
class Command:
    options: Any
    run: Callable[[Any, Clock], int]
    about: str


COMMANDS: Mapping[str, Command] = {
    "issue": Command(IssueOptions(), issue, "Keeps certificates as files."),
    "install": Command(InstallOptions(), install, "Keeps certificates in a cluster: does what is due, and ends."),
    "keep": Command(KeepOptions(), keep_on, "Keeps certificates in a cluster, for ever."),
    "status": Command(StatusOptions(), status, "Shows certificates and when they are due."),
}


def main(argv: Sequence[str] | None = None, clock: Clock | None = None) -> NoReturn:
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in ("-h", "--help", "help"):
        print(__doc__)
        sys.exit(0 if words else 2)
    if words[0] == "--version":
        print(version_text(PROGRAM))
        sys.exit(0)
    command = COMMANDS.get(words[0])
    if command is None:
        refuse(UsageError(f"no such command '{words[0]}'{nearest(words[0], COMMANDS)}"), PROGRAM)
    given = parse_or_exit(command.options, words[1:], os.environ, f"{PROGRAM} {words[0]}", command.about)
    configure(given.options.logs.logging_format, given.options.logs.verbosity)
    for warning in given.warnings:
        log.warning(warning)
    try:
        sys.exit(command.run(given.options, clock or SystemClock()))
    except (PumiceError, OSError) as error:
        refuse(error, f"{PROGRAM} {words[0]}")


if __name__ == "__main__":
    main()
