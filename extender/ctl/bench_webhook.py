"""pumice bench webhook: how many reviews a second the webhook answers, how soon, and what one costs."""

from __future__ import annotations

import json
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from extender.api.errors import PumiceError
from extender.ctl.measuring import webhook as served
from extender.ctl.measuring.child import Child
from extender.ctl.measuring.report import table
from extender.ctl.measuring.reviews import Sent, Target, by_threads, by_wrk

RENEW_EVERY = 1.0  # seconds
_STARTING = 60.0  # seconds
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
@click.option("--connections", type=click.IntRange(1), default=8, show_default=True, help="Kept-alive connections over TLS.")
@click.option("--seconds", type=click.FloatRange(1.0), default=10.0, show_default=True, help="For each measurement.")
@click.option("--rate", type=click.FloatRange(1.0), default=500.0, show_default=True, help="Reviews a second of the second one.")
@click.option("--workers", type=click.IntRange(1), default=2, show_default=True, help="Processes that answer.")
@click.option("--renew", is_flag=True, help="A third one: connections come and go, the certificate is replaced every second.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def webhook(connections: int, seconds: float, rate: float, workers: int, renew: bool, output: str) -> None:
    """Serve the webhook on loopback and send it reviews of a small vcjob.

    First as fast as it goes, by wrk where that is installed; then at a given pace. Everything runs on this machine and shares
    its cores.
    """
    wrk = shutil.which("wrk")
    if wrk is None:
        click.echo("wrk is not on PATH: threads of this process send instead, and take more of the cores than it would", err=True)
    with tempfile.TemporaryDirectory(prefix="pumice-bench-") as name:
        folder, port = Path(name), _free_port()
        target = Target(port, folder / "ca.crt")
        with served.running(folder, port, workers) as child:
            _await(child, target)

            def full_speed() -> Sent:
                if wrk is None:
                    return by_threads(target, connections, seconds)
                return by_wrk(wrk, target, connections, seconds, folder)

            stages = [
                _measured("full speed" if wrk else "full speed, no wrk", child, full_speed),
                _measured(f"{rate:g}/s", child, lambda: by_threads(target, connections, seconds, rate)),
            ]
            if renew:
                with _renewing(folder) as renewals:
                    stages.append(_measured(f"{rate:g}/s, renewing", child,
                                            lambda: by_threads(target, connections, seconds, rate, reconnect=True),
                                            renewals))  # fmt: skip
    click.echo(json.dumps([asdict(stage) for stage in stages], indent=2) if output == "json" else "\n".join(lines(stages)))


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


def _await(child: Child, target: Target) -> None:
    """Until it answers; then every worker is given something to get warm with. Raises PumiceError."""
    deadline = time.monotonic() + _STARTING
    while True:
        try:
            with socket.create_connection(("127.0.0.1", target.port), timeout=1.0):
                break
        except OSError:
            if child.status() is not None or time.monotonic() > deadline:
                raise PumiceError(f"the webhook does not answer. It said:\n{child.says()}") from None
            time.sleep(0.05)
    by_threads(target, 2, _WARMING)


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


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
