"""One measurement: the load is made, somebody decides, what came of it is read, the load is removed again."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from extender.api.meta import Key
from extender.cluster.clock import SystemClock
from extender.cluster.connection import Connection
from extender.cluster.kubernetes import KubernetesCluster
from extender.ctl.measuring.bindings import Bindings
from extender.ctl.measuring.child import Child, NotMeasured
from extender.ctl.measuring.counts import BINDING, Counts, between, writes
from extender.ctl.measuring.load import Load, keep_ready, make_gangs, node_name, pods, remove_gangs, side_by_side
from extender.ctl.measuring.report import RAW, Idle, Stage
from extender.ctl.measuring.schedulers import Scheduler

QUIET = 2.0  # seconds without a write after which a scheduler is taken to be done
LONGEST_REST = 60.0  # seconds to wait for that
_LOOK = 0.5
_READY_FOR = 20.0  # seconds that a node is good for without a sign of life; a node controller waits 40 s or more


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """Where it is measured. `logs`: a folder for what schedulers say; `seconds`: the longest that one may take."""

    cluster: KubernetesCluster
    connection: Connection
    nodes: int
    logs: Path
    seconds: float

    def writes(self) -> Counts | None:
        """None where we may not read the API server's metrics."""
        answer = self.connection.exchange("GET", "/metrics")
        return writes(answer.body.decode()) if answer.status == 200 else None

    def rest(self) -> Counts | None:
        """What has been written once nothing is written any more."""
        last, since = self.writes(), time.perf_counter()
        deadline = since + LONGEST_REST
        while last is not None and time.perf_counter() - since < QUIET and time.perf_counter() < deadline:
            time.sleep(_LOOK)
            now = self.writes()
            if now != last:
                last, since = now, time.perf_counter()
        return last

    @contextlib.contextmanager
    def loaded(self, load: Load, *, running: bool = False) -> Iterator[None]:
        """With the load on the server for as long as the block lasts."""
        try:
            make_gangs(self.cluster, load, self.nodes if running else 0)
            keep_ready(self.cluster, self.nodes, SystemClock().now())
            yield
        finally:
            remove_gangs(self.cluster, load.namespace)


def raw(site: Site, load: Load) -> Stage:
    """The API server's own limit: bindings over kept-alive connections, with nothing that decides and no other write."""
    with site.loaded(load):
        bindings = Bindings(site.cluster, load.namespace)
        places = [(Key(load.namespace, pod["metadata"]["name"]), node_name(i % site.nodes)) for i, pod in enumerate(pods(load))]
        began = time.perf_counter()
        with ThreadPoolExecutor(1) as pool:
            binding = pool.submit(side_by_side, lambda place: site.cluster.bind(*place), places)
            bindings.wait(load.pods, site.seconds, lambda: not binding.done() or binding.exception() is None)
            binding.result()
        bindings.close()
        return Stage(RAW, load.pods, len(bindings.at), bindings.first_to_last, bindings.rate, max(bindings.at.values()) - began)


def scheduled(site: Site, load: Load, scheduler: Scheduler) -> Stage:
    """All pods are there before the scheduler starts. Raises NotMeasured."""
    with site.loaded(load):
        before = site.rest()
        bindings = Bindings(site.cluster, load.namespace)
        began = time.perf_counter()
        with _running(site, scheduler) as children:
            all_bound = bindings.wait(load.pods, site.seconds, lambda: _ended(children) is None)
            after = site.rest() if all_bound else None
            bindings.close()
            if not all_bound:
                raise _not_bound(scheduler, children, len(bindings.at), load.pods)
            used = [child.end() for child in children]
        made = between(before, after) if before is not None and after is not None else {}
        besides = sum(count for write, count in made.items() if write != BINDING) / load.pods if made else None
        return Stage(
            scheduler.name, load.pods, len(bindings.at), bindings.first_to_last, bindings.rate, max(bindings.at.values()) - began,
            besides, _shown(made), sum(each.cpu_seconds for each in used), sum(each.peak_mebibytes for each in used),
        )  # fmt: skip


def idle(site: Site, load: Load, scheduler: Scheduler, seconds: float) -> Idle:
    """All pods run already. Measured from when nothing is written any more. Raises NotMeasured."""
    with site.loaded(load, running=True), _running(site, scheduler) as children:
        time.sleep(QUIET)
        before = site.rest()
        used, began = sum(child.cpu_seconds() for child in children), time.perf_counter()
        while time.perf_counter() - began < seconds:
            time.sleep(min(_READY_FOR, seconds - (time.perf_counter() - began)))
            if (child := _ended(children)) is not None:
                raise NotMeasured(f"{scheduler.name} ended with {child.status()}:\n{child.says()}")
        took, used = time.perf_counter() - began, sum(child.cpu_seconds() for child in children) - used
        resident = sum(child.resident_mebibytes() for child in children)
        after = site.writes()
        made = between(before, after) if before is not None and after is not None else {}
        peak = sum(child.end().peak_mebibytes for child in children)
    return Idle(scheduler.name, load.pods, took, used / took, resident, peak, _shown(made))


@contextlib.contextmanager
def _running(site: Site, scheduler: Scheduler) -> Iterator[list[Child]]:
    """Its processes, for as long as the block lasts."""
    children: list[Child] = []
    try:
        for number, command in enumerate(scheduler.commands):
            try:
                children.append(Child(command, site.logs / f"{scheduler.name}-{number}.log"))
            except OSError as error:
                raise NotMeasured(f"{command[0]} cannot be started: {error}") from error
            if number == 0 and scheduler.ready:
                children[0].await_page(scheduler.ready)
        yield children
    finally:
        for child in reversed(children):
            child.end()


def _ended(children: Sequence[Child]) -> Child | None:
    return next((child for child in children if child.status() is not None), None)


def _shown(made: Counts) -> dict[str, int]:
    return {str(write): count for write, count in made.items()}


def _not_bound(scheduler: Scheduler, children: Sequence[Child], bound: int, wanted: int) -> NotMeasured:
    ended = _ended(children)
    how = "does not go on" if ended is None else f"ended with {ended.status()}"
    said = "\n".join(child.says() for child in ([ended] if ended else children))
    return NotMeasured(f"{scheduler.name} {how}: {bound} of {wanted} pods are bound. It said:\n{said}")
