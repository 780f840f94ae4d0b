"""Metrics as tables: each one is a row with name, type, labels and what it means; docs/metrics.md is made of the rows.

Names that the reference has are kept, unit and all; every other one has base units and ends in _total where it counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.core import GaugeMetricFamily

from extender.cluster.version import build

COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"
COUNT = "gauge, only counts up"  # the reference counts under a name without _total, which no counter may have here


@dataclass(frozen=True, slots=True)
class Metric:
    """`name` as it is scraped. `per_job`: one series for each job, shown only on request."""

    name: str
    type: str
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    per_job: bool = False

    def make(self, registry: CollectorRegistry) -> Any:
        """A thing to observe, increase or set."""
        if self.type == HISTOGRAM:
            return Histogram(self.name, self.help, self.labels, registry=registry, buckets=self.buckets)
        made = Counter if self.type == COUNTER else Gauge
        return made(self.name, self.help, self.labels, registry=registry)

    def family(self) -> GaugeMetricFamily:
        """For what is worked out when it is asked for."""
        return GaugeMetricFamily(self.name, self.help, labels=self.labels)


def exponential_range(first: float, last: float, count: int) -> tuple[float, ...]:
    """`count` buckets from first to last, each the same factor above the one before it."""
    return tuple(float(f"{first * (last / first) ** (i / (count - 1)):.6g}") for i in range(count))


BUILD_INFO = Metric("volcano_build_info", GAUGE, "Always 1; the labels say which build this is.", ("version", "commit", "python"))
LEADER = Metric("volcano_leader", GAUGE, "1 while this process holds the lease and works, else 0.")
WRITE_FAILURES = Metric(
    "volcano_write_failures_total", COUNTER, "Writes that the API server refused, by operation and its reason.",
    ("operation", "reason"),
)  # fmt: skip

SHARED = (BUILD_INFO, LEADER, WRITE_FAILURES)  # every daemon has them


def new_registry() -> CollectorRegistry:
    """With what is known of the process, of Python and of the build."""
    disable_created_metrics()  # type: ignore[no-untyped-call]
    registry = CollectorRegistry()
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)
    now = build()
    BUILD_INFO.make(registry).labels(now.version, now.commit, now.python).set(1)
    return registry


class OnRequest:
    """A collector of families that are worked out when a scrape comes: what nobody asks for costs nothing."""

    def __init__(self, collect: Any) -> None:
        self._collect = collect

    def collect(self) -> Iterable[GaugeMetricFamily]:
        found: Iterable[GaugeMetricFamily] = self._collect()
        return found

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Nothing: registering it must not work it out."""
        return ()


def documentation(programs: Mapping[str, Sequence[Metric]]) -> str:
    """docs/metrics.md."""
    return "\n".join(_lines(programs)) + "\n"


def _lines(programs: Mapping[str, Sequence[Metric]]) -> Iterator[str]:
    yield from (
        "# Metrics",
        "",
        "Served on `/metrics` of `--listen-address` with `--enable-metrics`, as text or OpenMetrics. Names that Volcano has are",
        "kept, so that its dashboards and alerts work, milliseconds and all; every other one has base units. No label grows with",
        "jobs, pods or nodes, but for the metrics marked *per job*, which are shown with `--enable-per-job-metrics`. The usual",
        "`process_*` and `python_*` are there as well.",
        "",
        "This page is made from the code; `pytest tests/daemons --update` writes it anew.",
    )
    for program, metrics in programs.items():
        yield from ("", f"## {program}", "", "| metric | type | labels | meaning |", "| --- | --- | --- | --- |")
        for metric in metrics:
            labels = ", ".join(f"`{label}`" for label in metric.labels)
            meaning = f"*per job*: {metric.help}" if metric.per_job else metric.help
            if metric.buckets:
                meaning += f" Buckets: {len(metric.buckets)} from {metric.buckets[0]:g} to {metric.buckets[-1]:g}."
            yield f"| `{metric.name}` | {metric.type} | {labels} | {meaning} |"
