"""The report of a run for people: jobs, why the waiting ones wait, nodes, queues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from extender.api.quantity import for_people
from extender.core.reasons import Reason
from extender.ctl.lines import Amounts, JobLine, NodeLine
from extender.ctl.report import GIVEN_UP, Report

_JOBS, _NODES, _WAITS = 40, 16, 20  # rows; -o json has them all
_VERBS = {str(Reason.NEVER_FITS): "can never fit", GIVEN_UP: "was given up"}
_BAR = 10  # characters
_BLOCKS, _ASCII_BAR = ("█", "░"), ("#", ".")  # full and empty; the second where the encoding has no others
_WIDEST = 1000  # characters; no table is wider
_WRAPPED = ("NODES", "DESERVED", "CAPABILITY")  # columns that give way where the terminal is narrow
_WRAP = 11  # characters that they keep
_EXTENDED = 2  # columns for resources beside cpu and memory
_COLOURS = {"Running": "green", "Completed": "blue", "Succeeded": "blue", "Failed": "red", "Aborted": "red", "Terminated": "red"}


class Output(Console):
    """Standard output. A pipe that nobody reads is told to who prints (rich would end the process with status 1)."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(highlight=False, markup=False, **settings)

    @property
    def bar(self) -> tuple[str, str]:
        """A character of a bar that is full, and one that is empty."""
        return _ASCII_BAR if self.options.ascii_only else _BLOCKS

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError

    def table(self, table: Table) -> None:
        """With every number whole: where the terminal is too narrow its lines are longer than it."""
        whole = Measurement.get(self, self.options.update(max_width=_WIDEST), table).maximum
        wrapped = (column for column in table.columns if not column.no_wrap)
        longest = (max(cell_len(str(cell)) for cell in (column.header, *column.cells)) for column in wrapped)
        least = whole - sum(max(length - _WRAP, 0) for length in longest)
        there, self.width = self.width, max(self.width, least)
        self.print(table)
        self.width = there


def show(report: Report, console: Output) -> None:
    """Print it all."""
    if report.job_lines:
        console.table(_jobs(report))
    _waits(report, console)
    _failures(report, console)
    if report.node_lines:
        console.table(_nodes(report.node_lines, console.bar))
    console.table(_queues(report))
    console.print(Text(_last_line(report)), soft_wrap=True)


def _table(*columns: str, right: Iterable[str] = ()) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold", no_wrap=column not in _WRAPPED)
    return table


# --- jobs -------------------------------------------------------------------------------------------------------------


def _jobs(report: Report) -> Table:
    some_evicted = any(line.evicted for line in report.job_lines)
    columns = ["JOB", "PHASE", "RUNNING/MIN", "QUEUE", "NODES", "WAITED", *(["EVICTED"] if some_evicted else [])]
    table = _table(*columns, right=("RUNNING/MIN", "WAITED", "EVICTED"))
    waiting = {wait.job for wait in report.waiting}
    alone = len({_namespace(line.name) for line in report.job_lines}) == 1
    lines = sorted(report.job_lines, key=lambda line: line.name not in waiting) if len(report.job_lines) > _JOBS else None
    for line in (lines or report.job_lines)[:_JOBS]:
        table.add_row(
            Text(_called(line.name, alone)), _phase(line, line.name in waiting), f"{line.running}/{line.minimum}",
            Text(line.queue), Text(_spread(line.nodes)), _span(line.waited),
            *([str(line.evicted or "-")] if some_evicted else []),
        )  # fmt: skip
    rest = Counter(line.phase for line in (lines or ())[_JOBS:])
    if rest:
        counts = ", ".join(f"{count} {phase}" for phase, count in rest.most_common())
        table.add_row(f"... and {rest.total()} more", counts)
    return table


def _namespace(name: str) -> str:
    return name.rpartition(" ")[2].partition("/")[0]


def _called(name: str, alone: bool) -> str:
    """`Deployment web`: without the namespace where there is but one."""
    return name.replace(f"{_namespace(name)}/", "", 1) if alone else name


def _phase(line: JobLine, waits: bool) -> Text:
    colour = "yellow" if waits else _COLOURS.get(line.phase, "")
    return Text(line.phase, style=colour)


def _spread(nodes: Mapping[str, int]) -> str:
    """`n1 x4, n2 x2`, or how many nodes and how many pods on each where they are many."""
    if len(nodes) > 3:
        least, most = min(nodes.values()), max(nodes.values())
        return f"{len(nodes)} nodes, {least if least == most else f'{least} to {most}'} each"
    return ", ".join(f"{node} x{count}" if count > 1 else node for node, count in sorted(nodes.items())) or "-"


def _waits(report: Report, console: Console) -> None:
    for wait in report.waiting[:_WAITS]:
        verb = _VERBS.get(wait.reason, "waits")
        text = Text.assemble((wait.job, "bold"), f" {verb}: ", wait.message, f" [{wait.reason}]")
        console.print(text, soft_wrap=True)
    rest = Counter(str(wait.reason) for wait in report.waiting[_WAITS:])
    if rest:
        counts = ", ".join(f"{count} {reason}" for reason, count in rest.most_common())
        console.print(Text(f"... and {rest.total()} more jobs wait: {counts}"), soft_wrap=True)


def _failures(report: Report, console: Console) -> None:
    for each in report.failed[:_WAITS]:
        console.print(Text.assemble((each.job, "bold"), " has failed: ", each.message), soft_wrap=True)
    if len(report.failed) > _WAITS:
        console.print(f"... and {len(report.failed) - _WAITS} more have failed", soft_wrap=True)


# --- nodes and queues -------------------------------------------------------------------------------------------------


def _nodes(nodes: Sequence[NodeLine], bar: tuple[str, str]) -> Table:
    resources = _columns(nodes)
    table = _table("NODE", "PODS", *(_short(name).upper() for name in resources), right=("PODS",))
    shown = nodes if len(nodes) <= _NODES else sorted(nodes, key=_fullness, reverse=True)[:_NODES]
    for line in shown:
        table.add_row(Text(line.name), str(line.pods), *(_share(line.used, line.allocatable, name, bar) for name in resources))
    if len(nodes) > 1:
        more = f"all {len(nodes)}" if len(shown) == len(nodes) else f"all {len(nodes)}, {len(nodes) - len(shown)} not shown"
        used, room = _total(line.used for line in nodes), _total(line.allocatable for line in nodes)
        pods = sum(line.pods for line in nodes)
        table.add_row(more, str(pods), *(_share(used, room, name, bar) for name in resources), style="bold")
    return table


def _columns(nodes: Sequence[NodeLine]) -> list[str]:
    """cpu, memory and the extended resources that most nodes have."""
    extended = Counter(name for line in nodes for name, amount in line.allocatable.items() if "/" in name and amount)
    return ["cpu", "memory", *(name for name, _ in extended.most_common(_EXTENDED))]


def _fullness(line: NodeLine) -> float:
    return max((line.used.get(name, 0) / room for name, room in line.allocatable.items() if room), default=0.0)


def _share(used: Amounts, room: Amounts, name: str, bar: tuple[str, str]) -> Text:
    """`#####.....  16/32`; `-` where the node has nothing of it."""
    total, taken = room.get(name, 0), used.get(name, 0)
    if not total:
        return Text("-" if not taken else for_people(name, taken))
    share = taken / total
    full = min(round(share * _BAR), _BAR)
    colour = "red" if share > 1 else "yellow" if share > 0.9 else "green"
    figures = f" {for_people(name, taken)}/{for_people(name, total)}"
    return Text.assemble((bar[0] * full, colour), (bar[1] * (_BAR - full), "dim"), figures)


def _queues(report: Report) -> Table:
    """Columns that nobody has anything in are left out."""
    lines = [line for line in report.queue_lines if line.name != "root" or line.deserved or line.capability]
    resources = _columns(report.node_lines)
    limits = [name for name in ("deserved", "capability") if any(getattr(line, name) for line in lines)]
    headings = [f"{_short(name).upper()} NOW/PEAK" for name in resources]
    table = _table("QUEUE", "WEIGHT", *(name.upper() for name in limits), *headings, right=("WEIGHT", *headings))
    for line in lines:
        state = "" if line.state in ("Open", "") else f" ({line.state})"
        table.add_row(
            Text(f"{line.name}{state}"), str(line.weight), *(_list(getattr(line, name)) for name in limits),
            *(f"{for_people(name, line.used.get(name, 0))}/{for_people(name, line.peak.get(name, 0))}" for name in resources),
        )  # fmt: skip
    return table


def _list(amounts: Amounts) -> Text:
    return Text(", ".join(f"{_short(name)} {for_people(name, each)}" for name, each in amounts.items()) or "-")


def _total(amounts: Iterable[Amounts]) -> Amounts:
    total: Counter[str] = Counter()
    for each in amounts:
        total.update(each)
    return total


def _short(name: str) -> str:
    return name.rsplit("/", 1)[-1]


# --- times ------------------------------------------------------------------------------------------------------------


def _last_line(report: Report) -> str:
    pods = Counter(pod["phase"] for pod in report.pods.values())
    counts = ", ".join(f"{count} {phase.lower()}" for phase, count in pods.most_common()) or "none"
    cycles = "cycle" if report.cycles == 1 else "cycles"
    ended = {
        "settled": "nothing changes any more",
        "until": "as long as asked for",
        "limit": "and it would go on: it never settles",
    }.get(report.ended, report.ended)
    return f"{_span(report.clock)} of time, {report.cycles} scheduling {cycles}; pods: {counts}; {ended}"


def _span(seconds: float) -> str:
    """`45s`, `12m30s`, `2h5m`, `3d4h`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    for size, unit, below, small in ((60, "m", 1, "s"), (3600, "h", 60, "m"), (86400, "d", 3600, "h")):
        if whole < size * (60 if unit == "m" else 24 if unit == "h" else 10**9):
            rest = whole % size // below
            return f"{whole // size}{unit}" + (f"{rest}{small}" if rest else "")
    return f"{whole}s"
