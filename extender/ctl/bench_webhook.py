"""pumice bench webhook: how many reviews a second the webhook answers, how soon, and what one costs."""

from __future__ import annotations

import json
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import click

from extender.api.meta import Json
from extender.cluster.clock import SystemClock
from extender.cluster.connection import Connection, loader
from extender.cluster.kubernetes import KubernetesCluster
from extender.ctl import named
from extender.ctl.measuring import webhook as served
from extender.ctl.measuring.child import Child, free_ports
from extender.ctl.measuring.creations import Made, measure
from extender.ctl.measuring.load import OWNER
from extender.ctl.measuring.prepared import prepared
from extender.ctl.measuring.report import table
from extender.ctl.measuring.reviews import Sent, by_threads, by_wrk

RENEW_EVERY = 1.0  # seconds
_WARMING = 0.5  # seconds of reviews before anything is measured


@dataclass(frozen=True, slots=True)
class Stage:
    """`cpu_microseconds`: of all processes of the webhook, for each review; None where the system does not tell.

    `renewals`: how often the certificate was replaced meanwhile."""

    name: str
    sent: Sent
    cpu_microseconds: float | None
    renewals: int = 0


@click.command("webhook")
@click.option(
    "--connections", type=click.IntRange(1, 1000), default=8, show_default=True, help="Kept-alive connections over TLS."
)
@click.option("--seconds", type=click.FloatRange(1.0, 3600.0), default=10.0, show_default=True, help="For each measurement.")
@click.option(
    "--rate", type=click.FloatRange(1.0, 100_000.0), default=500.0, show_default=True, help="Reviews a second of the second one."
)
@click.option("--workers", type=click.IntRange(1, 100), default=2, show_default=True, help="Processes that answer.")
@click.option("--renew", is_flag=True, help="A third one: connections come and go, the certificate is replaced every second.")
@named.kubeconfig("Measure on that cluster what creating jobs and pods costs.")
@click.option(
    "--objects", type=click.IntRange(8, 100_000), default=500, show_default=True, help="Of each kind, with --kubeconfig."
)
@click.option("--rounds", type=click.IntRange(1, 100), default=5, show_default=True, help="With webhooks and without them.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def webhook(connections: int, seconds: float, rate: float, workers: int, renew: bool, kubeconfig: str, objects: int, rounds: int,
            output: str) -> None:  # fmt: skip
    """Time the webhook on reviews of a small vcjob.

    First as fast as it goes, by wrk where that is installed; then at a given pace. Everything runs on this machine and shares
    its cores.
    """
    if kubeconfig:
        made = _creations(kubeconfig, objects, rounds)
        _show([asdict(each) | {"share": each.share} for each in made], table([_created(each) for each in made]), output)
        return
    wrk = shutil.which("wrk")
    if wrk is None:
        _say("wrk is not on PATH: threads of this process send instead, and take more of the cores than it would")
    stages = _reviews(wrk, connections, seconds, rate, workers, renew)
    _show([asdict(stage) for stage in stages], lines(stages), output)


def _show(figures: Sequence[Json], text: Sequence[str], output: str) -> None:
    click.echo(json.dumps(figures, indent=2) if output == "json" else "\n".join(text))


def _say(text: str) -> None:
    click.echo(text, err=True)


def _creations(kubeconfig: str, objects: int, rounds: int) -> list[Made]:
    server = KubernetesCluster(Connection(loader(kubeconfig), SystemClock(), OWNER))
    with tempfile.TemporaryDirectory(prefix="pumice-bench-") as folder, prepared(server, _say) as namespace:
        return measure(server, kubeconfig, namespace, objects, rounds, free_ports(2), Path(folder), _say)


def _created(made: Made) -> dict[str, str]:
    return {"": made.what, "a second, without": f"{made.without:,.0f}", "a second, with": f"{made.with_webhooks:,.0f}",
            "share": f"{made.share:.2f}"}  # fmt: skip


def _reviews(wrk: str | None, connections: int, seconds: float, rate: float, workers: int, renew: bool) -> list[Stage]:
    with tempfile.TemporaryDirectory(prefix="pumice-bench-") as name:
        folder = Path(name)
        with served.running(folder, workers) as (child, target):

            def full_speed() -> Sent:
                if wrk is None:
                    return by_threads(target, connections, seconds)
                return by_wrk(wrk, target, connections, seconds, folder)

            def at_a_pace(*, reconnect: bool = False) -> Sent:
                return by_threads(target, connections, seconds, rate, reconnect=reconnect)

            by_threads(target, connections, _WARMING)
            stages = [
                _measured("full speed" if wrk else "full speed, no wrk", child, full_speed),
                _measured(f"{rate:g}/s", child, at_a_pace),
            ]
            if renew:
                with _renewing(folder) as renewals:
                    stages.append(_measured(f"{rate:g}/s, renewing", child, partial(at_a_pace, reconnect=True), renewals))
        return stages


def lines(stages: Sequence[Stage]) -> list[str]:
    return table([_column(stage) for stage in stages])


def _column(stage: Stage) -> dict[str, str]:
    sent, (median, slow) = stage.sent, stage.sent.milliseconds
    shown = {"": stage.name, "reviews": f"{sent.reviews:,}", "reviews a second": f"{sent.reviews / sent.seconds:,.0f}",
             "p50, ms": f"{median:.2f}", "p99, ms": f"{slow:.2f}", "failures": f"{sent.failures:,}"}  # fmt: skip
    if stage.cpu_microseconds is not None:
        shown["CPU a review, us"] = f"{stage.cpu_microseconds:,.0f}"
    if stage.renewals:
        shown["renewals"] = f"{stage.renewals}"
    return shown


def _measured(name: str, child: Child, send: Callable[[], Sent], renewals: Callable[[], int] = lambda: 0) -> Stage:
    before = _cpu_seconds(child)
    sent = send()
    used = _cpu_seconds(child) - before
    return Stage(name, sent, used / sent.reviews * 1e6 if used else None, renewals())


def _cpu_seconds(child: Child) -> float:
    return child.cpu_seconds() + child.workers_cpu_seconds()


@contextmanager
def _renewing(folder: Path) -> Iterator[Callable[[], int]]:
    """For as long as the block lasts; how often so far."""
    stop, count = threading.Event(), 0

    def work() -> None:
        nonlocal count
        while not stop.wait(RENEW_EVERY):
            served.renew(folder)
            count += 1

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield lambda: count
    finally:
        stop.set()
        thread.join()
