"""The figures of a measurement, for people and for programs. docs/bench.md says what each of them means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from extender.api.meta import Json

RAW = "raw"


@dataclass(frozen=True, slots=True)
class Stage:
    """One scheduler on the load, or the API server alone (RAW). What could not be measured is None."""

    scheduler: str
    pods: int
    bound: int
    first_to_last_seconds: float
    binds_per_second: float | None
    start_to_last_seconds: float
    writes_per_pod_besides_bind: float | None = None
    writes: Mapping[str, int] = field(default_factory=dict)
    cpu_seconds: float | None = None
    peak_mebibytes: float | None = None


@dataclass(frozen=True, slots=True)
class Idle:
    """A scheduler with nothing to do. `cores`: CPU seconds a second."""

    scheduler: str
    pods: int
    seconds: float
    cores: float
    resident_mebibytes: float
    peak_mebibytes: float
    writes: Mapping[str, int] = field(default_factory=dict)


def as_json(nodes: int, stages: Sequence[Stage | Idle]) -> Json:
    return {"nodes": nodes, "stages": [{**asdict(stage), **_ratio(stage, stages)} for stage in stages]}


def lines(nodes: int, stages: Sequence[Stage | Idle]) -> list[str]:
    """A row for each figure, a column for each stage."""
    return table([_column(nodes, stage, stages) for stage in stages])


def table(columns: Sequence[Mapping[str, str]]) -> list[str]:
    """Columns by the names of their rows; what one of them lacks is a dash."""
    names = dict.fromkeys(name for column in columns for name in column)
    rows = [[name, *(column.get(name, "-") for column in columns)] for name in names]
    widths = [max(len(row[i]) for row in rows) for i in range(len(columns) + 1)]
    aligned = [[row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])] for row in rows]
    return ["  ".join(row).rstrip() for row in aligned]


def _column(nodes: int, stage: Stage | Idle, stages: Sequence[Stage | Idle]) -> dict[str, str]:
    shown = {"": stage.scheduler, "nodes": f"{nodes:,}", "pods": f"{stage.pods:,}"}
    if isinstance(stage, Idle):
        shown |= {"idle, cores": f"{stage.cores:.3f}", "resident, MiB": f"{stage.resident_mebibytes:,.0f}"}
    else:
        rate = "-" if stage.binds_per_second is None else f"{stage.binds_per_second:,.0f}"
        shown |= {"bound": f"{stage.bound:,}", "first to last bind, s": f"{stage.first_to_last_seconds:.2f}",
                  "binds a second": rate, "start to last bind, s": f"{stage.start_to_last_seconds:.2f}"}  # fmt: skip
        if ratio := _ratio(stage, stages):
            shown["share of raw"] = f"{ratio['share_of_raw']:.2f}"
        if stage.writes_per_pod_besides_bind is not None:
            shown["writes a pod besides the bind"] = f"{stage.writes_per_pod_besides_bind:.2f}"
        if stage.cpu_seconds is not None:
            shown["CPU, s"] = f"{stage.cpu_seconds:.2f}"
    if stage.peak_mebibytes is not None:
        shown["peak memory, MiB"] = f"{stage.peak_mebibytes:,.0f}"
    return shown


def _ratio(stage: Stage | Idle, stages: Sequence[Stage | Idle]) -> dict[str, float]:
    """How much of what the API server can take alone, where that was measured beside it."""
    raw = next((each for each in stages if isinstance(each, Stage) and each.scheduler == RAW), None)
    if raw is None or isinstance(stage, Idle) or raw.binds_per_second is None or stage.binds_per_second is None:
        return {}
    return {"share_of_raw": stage.binds_per_second / raw.binds_per_second}
