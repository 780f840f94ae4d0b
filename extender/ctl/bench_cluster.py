"""pumice bench cluster: how fast a scheduler binds gangs on a real API server, and what that costs."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from extender.api.errors import UsageError
from extender.cluster.clock import SystemClock
from extender.cluster.connection import Connection, loader
from extender.cluster.kubernetes import KubernetesCluster
from extender.ctl import named
from extender.ctl.bench_session import MOST_NODES, check_pods
from extender.ctl.measuring import stages
from extender.ctl.measuring.child import free_ports
from extender.ctl.measuring.load import OWNER, Load
from extender.ctl.measuring.prepared import prepared
from extender.ctl.measuring.report import RAW, Idle, Stage, as_json, lines
from extender.ctl.measuring.schedulers import NAME, OURS, chosen, extended


@click.command("cluster")
@named.kubeconfig(f"File that says where the cluster is.  {named.WHERE_FROM}")
@click.option(
    "--nodes", type=click.IntRange(1, MOST_NODES), default=500, show_default=True, help="Fake nodes of 32 CPU, 256Gi, 110 pods."
)
@click.option("--gangs", type=click.IntRange(1), default=10, show_default=True, help="Number of gangs.")
@click.option("--size", type=click.IntRange(1), default=100, show_default=True, help="Pods in each gang (minMember too).")
@click.option(
    "--scheduler",
    "schedulers",
    multiple=True,
    metavar="COMMAND",
    help="'pumice', a path of kube-scheduler, or any command, {kubeconfig} and {name} filled in. May be repeated.",
)
@click.option("--scheduler-name", default="", help=f"schedulerName of the pods.  [default: {NAME}; kube-scheduler's own for it]")
@click.option("--raw", is_flag=True, help="Measure the API server's own limit: 8 connections that bind, nothing that decides.")
@click.option("--extender", "extender", is_flag=True, help="Measure kube-scheduler with our extender too.")
@click.option("--kube-scheduler", default="kube-scheduler", show_default=True, help="Program for --extender.")
@click.option("--plain", is_flag=True, help="Pods without groups.")
@click.option(
    "--idle", type=click.FloatRange(1.0, 3600.0), metavar="SECONDS", help="All pods run already: what nothing to do costs."
)
@click.option(
    "--timeout", type=click.FloatRange(1.0, 86400.0), default=300.0, show_default=True, help="Seconds for one scheduler."
)
@click.option("--node-label", "labels", multiple=True, metavar="NAME=VALUE", help="Further labels of the nodes. May be repeated.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def cluster(kubeconfig: str, nodes: int, gangs: int, size: int, schedulers: Sequence[str], scheduler_name: str,
            raw: bool, extender: bool, kube_scheduler: str, plain: bool, idle: float | None, timeout: float,
            labels: Sequence[str], output: str) -> None:  # fmt: skip
    """Time how fast a scheduler binds on a real cluster.

    Fake nodes and gangs are made, the scheduler is run on them. Nothing runs on the nodes, and what was made is removed in the
    end. Ours is measured where --scheduler names none.
    """
    check_pods(gangs, size)
    if idle and raw:
        raise UsageError("--raw and --idle cannot be measured together")
    path = kubeconfig or os.environ.get("KUBECONFIG", "") or str(Path("~/.kube/config").expanduser())
    deciders = [chosen(each, scheduler_name, path) for each in schedulers or (() if raw or extender else (OURS,))]
    _check_there([("--scheduler", decider.commands[0][0]) for decider in deciders])
    _check_there([("--kube-scheduler", kube_scheduler)] if extender else [])
    more = _labels(labels)
    connection = Connection(loader(path), SystemClock(), OWNER)
    server = KubernetesCluster(connection)

    def say(text: str) -> None:
        click.echo(text, err=True)

    measured: list[Stage | Idle] = []
    with tempfile.TemporaryDirectory(prefix="pumice-bench-") as folder, prepared(server, say, nodes, more) as namespace:
        site = stages.Site(server, connection, nodes, Path(folder), timeout)
        if extender:
            deciders.append(extended(kube_scheduler, path, free_ports(1)[0], Path(folder), plain=plain))
        if raw:
            say(RAW)
            measured.append(stages.raw(site, Load(namespace, NAME, gangs, size, plain)))
        for decider in deciders:
            say(decider.name)
            load = Load(namespace, decider.scheduler_name, gangs, size, plain)
            measured.append(stages.idle(site, load, decider, idle) if idle else stages.scheduled(site, load, decider))
    click.echo(json.dumps(as_json(nodes, measured), indent=2) if output == "json" else "\n".join(lines(nodes, measured)))


def _check_there(programs: Sequence[tuple[str, str]]) -> None:
    """Raises UsageError for an option whose program cannot be run."""
    for option, program in programs:
        if shutil.which(program) is None:
            raise UsageError(f"{option}: {program}: no such program")


def _labels(words: Sequence[str]) -> dict[str, str]:
    pairs = [word.partition("=") for word in words]
    for name, equals, _ in pairs:
        if not (name and equals):
            raise UsageError(f"--node-label: '{name}' must be NAME=VALUE")
    return {name: value for name, _, value in pairs}
