"""pumice up: all of Pumice in one process against a cluster, for a trial (down.py removes what that needs)."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace

import click

from controller import cli as controllers
from extender import cli as scheduler
from extender.api.errors import PumiceError
from extender.api.labels import SCHEDULERS, SYSTEM_NAMESPACE
from extender.api.meta import DEPLOYMENT, NAMESPACE, Key, Kind, key_of
from extender.cluster.clock import SystemClock
from extender.cluster.daemon import Daemon
from extender.cluster.kubernetes import KubernetesCluster, connect
from extender.cluster.logs import configure
from extender.cluster.options import LeaderOptions
from extender.cluster.port import Cluster
from extender.ctl import installing, named, permitted
from extender.ctl.admitting import Admission, Reached, reached
from extender.ctl.installing import Installed
from extender.ctl.telling import Telling
from extender.options import PROGRAM as SCHEDULER
from extender.options import Options
from webhook.settings import Settings

OWNER = "pumice-up"
_NAMES = (OWNER, f"{OWNER}/leader-election", SCHEDULER, controllers.PROGRAM)  # of the ways to the cluster
RATE = 1000.0  # requests a second of each component
_LOOK = 0.25
_APPS = ("volcano-scheduler", "volcano-controller")  # label `app` of Volcano's Deployments, and of ours
_NAMED = 3  # objects of a kind that are named; of more it is said how many
_SAME = 1.0  # seconds within which signals are one
_WHERE = (
    named.kubeconfig(f"File that says where the cluster is.  {named.WHERE_FROM}"),
    click.option("--context", default="", help="Context of the kubeconfig."),
    named.namespace("Namespace of the leases."),
)


class Failed(PumiceError):
    """A component ended that should not have."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What `pumice up` is asked for. `admission`: where the API server reaches us; None: off."""

    namespace: str = SYSTEM_NAMESPACE
    conf: str = ""
    scheduler_names: tuple[str, ...] = SCHEDULERS
    admission: Reached | None = None
    plugins_dir: str = ""
    without_webhooks: bool = False  # nobody wants to hear that admission is off

    def scheduler_options(self) -> Options:
        return replace(
            Options(), scheduler_conf=self.conf, plugins_dir=self.plugins_dir, scheduler_name=self.scheduler_names,
            leader=self._leader(""),
        )  # fmt: skip

    def controller_options(self) -> controllers.Options:
        return replace(controllers.Options(), scheduler_name=self.scheduler_names, leader=self._leader(controllers.PROGRAM))

    def leases(self) -> tuple[Key, Key]:
        return self.scheduler_options().lease, Key(self.namespace, controllers.PROGRAM)

    def _leader(self, name: str) -> LeaderOptions:
        """The leases of the daemons: they and we never work at the same time."""
        return LeaderOptions(leader_elect_resource_name=name, leader_elect_resource_namespace=self.namespace)


Connect = Callable[[str], KubernetesCluster]  # by the name under which the API server knows us
Say = Callable[[str], None]


def where(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_WHERE):
        command = option(command)
    return command


@click.command("up")
@where
@named.followed_conf("scheduler.conf; read again when it changes.")
@named.plugins_dir()
@click.option("--scheduler-name", "names", multiple=True, default=SCHEDULERS, show_default=True,
              help="Pods with this schedulerName are ours. May be repeated.")  # fmt: skip
@click.option(
    "--webhook-url", default="", metavar="HOST:PORT", help="Where the API server reaches this machine; admission is served there."
)
@click.option("--without-webhooks", is_flag=True, help="Say nothing about admission being off.")
def up(kubeconfig: str, context: str, namespace: str, conf: str, plugins_dir: str, names: Sequence[str],
       webhook_url: str, without_webhooks: bool) -> None:  # fmt: skip
    """Run Pumice against a cluster until Ctrl-C.

    That is scheduler, controllers and admission. CRDs and the queues root and default are made where they are missing, and
    stay: `pumice down` removes them.
    """
    admission = reached(webhook_url) if webhook_url and not without_webhooks else None
    plan = Plan(namespace, conf, tuple(names), admission, plugins_dir, without_webhooks)
    configure()
    logging.getLogger().setLevel(logging.WARNING)  # what goes well is told in words of its own
    stop = threading.Event()
    with _until_interrupted(stop):
        run(plan, lambda name: connect(kubeconfig, context, rate=RATE, burst=int(RATE), user_agent=name), click.echo, stop)


def run(plan: Plan, connected: Connect, say: Say, stop: threading.Event) -> None:
    """Until `stop` is set; what was begun is finished. Raises Failed where a component ends before.

    Nothing is made before it is known that the configuration can be used and that all of it is allowed."""
    with ExitStack() as ways:
        work, for_lease, deciding, controlling = (ways.enter_context(closing(connected(name))) for name in _NAMES)
        assembled = scheduler.assemble(plan.scheduler_options(), deciding, os.environ, for_lease=for_lease)
        assembled.standalone.loop.observers.append(Telling(say))
        rest = controllers.assemble(plan.controller_options(), controlling, os.environ, for_lease=for_lease)
        permitted.check(work, permitted.wanted(plan.namespace, webhooks=plan.admission is not None))
        for line in (*told(install(work, plan)), *neighbours(work)):
            say(line)
        with admission_of(plan, work, say, stop):
            _run_all((assembled.daemon, rest.daemon), plan, say, stop)
    say("ended; CRDs and queues stay: pumice down removes them")


def install(cluster: KubernetesCluster, plan: Plan) -> list[Installed]:
    """The namespace first: its name is the only thing here that can be wrong."""
    namespace = installing.install(cluster, NAMESPACE, {"metadata": {"name": plan.namespace}}, OWNER)
    return [namespace, *installing.install_crds(cluster, OWNER), *installing.install_queues(cluster, OWNER)]


def told(installed: Sequence[Installed]) -> list[str]:
    """One line for each kind and what became of it."""
    lines: dict[tuple[str, Kind], list[Key]] = {}
    for each in installed:
        lines.setdefault((each.how, each.kind), []).append(each.key)
    return [
        f"{how} {kind.name} {', '.join(map(str, keys))}" if len(keys) <= _NAMED else f"{how} {len(keys)} {kind.name}s"
        for (how, kind), keys in lines.items()
    ]


def neighbours(cluster: Cluster) -> list[str]:
    """A warning for each installed scheduler or controller manager: Volcano's chart runs them without a lease."""
    found = cluster.list(DEPLOYMENT, label_selector=f"app in ({','.join(_APPS)})").objects
    return [f"Deployment {key_of(each)} is here too: without our lease it works on the same objects; scale it to 0 for a trial"
            for each in found if (each.get("spec") or {}).get("replicas", 1)]  # fmt: skip


@contextmanager
def admission_of(plan: Plan, cluster: Cluster, say: Say, stop: threading.Event) -> Iterator[None]:
    """Served within, if it is asked for."""
    if plan.admission is None:
        if not plan.without_webhooks:
            say("admission is off: the API server must reach this machine for it, say how with --webhook-url HOST:PORT")
        yield
        return
    settings = Settings(scheduler_names=plan.scheduler_names)
    admission = Admission(cluster, plan.admission, settings, OWNER, SystemClock().now())
    try:
        admission.publish(lambda: not stop.is_set())
        say(f"admission is at {plan.admission.url}")
        yield
    finally:
        admission.withdraw()
        admission.close()


def _run_all(daemons: Sequence[Daemon], plan: Plan, say: Say, stop: threading.Event) -> None:
    status: dict[int, int] = {}

    def run_one(number: int) -> None:
        status[number] = daemons[number].run()

    threads = [threading.Thread(target=run_one, args=(i,), name=f"daemon-{i}") for i in range(len(daemons))]
    for thread in threads:
        thread.start()
    lines = _beginning(daemons, plan)
    while not stop.wait(_LOOK) and all(thread.is_alive() for thread in threads):
        for line in next(lines, ()):
            say(line)
    for daemon in daemons:
        daemon.ask_to_stop()
    for thread in threads:
        thread.join()
    if any(status.values()):
        raise Failed("a component ended; the lines above say why")


def _beginning(daemons: Sequence[Daemon], plan: Plan) -> Iterator[list[str]]:
    """What there is to say at each look until all of them work; often nothing, and nothing twice."""
    said: set[str] = set()
    while not all(daemon.works() for daemon in daemons):
        waits = [f"{daemon.waits_for()}: waiting until it is free" for daemon in daemons if daemon.waits_for()]
        yield [line for line in waits if line not in said]
        said.update(waits)
    yield [f"pods with schedulerName {', '.join(plan.scheduler_names)} are ours; Ctrl-C ends it"]


@contextmanager
def _until_interrupted(stop: threading.Event) -> Iterator[None]:
    """Ctrl-C and SIGTERM ask for an end; who asks again later does not want to wait for it. A terminal and a program that
    passes signals on may bring the same one twice."""
    asked: list[float] = []

    def end(*_: object) -> None:
        asked.append(time.monotonic())
        if asked[-1] - asked[0] > _SAME:
            os._exit(1)
        stop.set()

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
