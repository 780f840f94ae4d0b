"""The timeline of a run as a picture: a Gantt chart of pods per node, coloured by job, above what each queue held.

A node is a band, its pods are bars stacked in lanes within it; the paler head of a bar is the time until the pod ran. Below are
the queues' shares: of the resource of which a queue has most, the part of the whole cluster."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from extender.api.errors import InvalidObject, UsageError
from extender.api.meta import NODE, key_of
from extender.api.node import Node
from extender.api.quantity import nanos
from extender.api.views import view
from extender.cluster.pod_history import PodSpan
from extender.core.axis import unit_of
from extender.ctl.group_names import GroupNames
from extender.local import Outcome

SUFFIXES = (".png", ".svg")
_NAMED_JOBS = 12  # jobs with a colour and a line in the legend; all others share the last grey
_LABELLED_NODES = 40  # above that every n-th node is named
# Twelve colours that stay apart for most eyes and in grey, after Paul Tol's "muted" and "bright" schemes.
_COLOURS = (
    "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377",
    "#ee8866", "#44bb99", "#882255", "#999933", "#332288", "#ddaa99",
)  # fmt: skip
_QUEUE_COLOURS = ("#332288", "#cc6677", "#117733", "#ddcc77", "#88ccee", "#aa4499", "#44aa99", "#999933", "#882255", "#6699cc")
_OTHERS, _GRID, _INK, _BAND = "#b8b8b8", "#e4e4e4", "#333333", "#f5f6f8"
_WIDTH = 11.0  # inches
_TALLEST, _LOWEST = 12.0, 1.6  # inches for all nodes
_LANE = 0.05  # inches that a pod should get
_SOLID, _SOLID_OF_MANY = 0.72, 0.9  # of a node's band
_THIN = 4.0  # points; lower lanes of one gang are drawn as one bar
_LONGEST_NAME = 34  # characters of a job in the legend


@dataclass(frozen=True, slots=True)
class Bar:
    """One pod on one node. Times are seconds since the start; `lane` of `lanes` within the node's band."""

    job: str
    start: float
    ran: float
    end: float
    lane: int
    evicted: bool


def check(path: str) -> None:
    """Raises UsageError where the picture could not be made, before a long run and not after it."""
    if not path.endswith(SUFFIXES):
        raise UsageError(f"--timeline {path}: write a name that ends in {' or '.join(SUFFIXES)}")
    if not Path(path).parent.is_dir():
        raise UsageError(f"--timeline {path}: there is no folder {Path(path).parent}")
    _pyplot()


def draw(outcome: Outcome, path: Path) -> None:
    """Write the picture. Raises UsageError where the file cannot be written."""
    end = max(outcome.now - outcome.started, 1.0)
    names = GroupNames(outcome.objects)
    bars = _bars(outcome, names, end)
    nodes = [key_of(obj).name for obj in outcome.objects.get(NODE, ())]
    nodes = sorted({*nodes, *bars}, key=_natural)
    colours = _colours(bars)
    lanes = max((bar.lane + 1 for here in bars.values() for bar in here), default=1)
    height = min(max(0.55, _LANE * lanes) * len(nodes), _TALLEST)
    height = max(height, _LOWEST)
    plt = _pyplot()
    with plt.rc_context({"font.family": "sans-serif", "font.size": 9, "svg.fonttype": "none", "svg.hashsalt": "pumice",
                         "axes.edgecolor": _GRID, "text.color": _INK, "axes.labelcolor": _INK, "xtick.color": _INK,
                         "ytick.color": _INK}):  # fmt: skip
        figure, (above, below) = plt.subplots(
            2, 1, sharex=True, figsize=(_WIDTH, height + 3.2), height_ratios=(height, 1.7), layout="constrained"
        )
        _draw_nodes(above, nodes, bars, colours, band=72 * height / max(len(nodes), 1))
        _draw_queues(below, outcome, end)
        _draw_time(below, end)
        above.set_title(_title(outcome, bars, nodes), loc="left", fontsize=11, fontweight="bold", pad=10)
        try:
            figure.savefig(path, dpi=130, metadata={"Date": None} if path.suffix == ".svg" else {"Software": None})
        except OSError as error:
            raise UsageError(f"--timeline {path}: {error.strerror or error}") from None
        finally:
            plt.close(figure)


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise UsageError("--timeline needs matplotlib, which is not installed: pip install 'pumice[plot]'") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


# --- what there is to draw --------------------------------------------------------------------------------------------


def _bars(outcome: Outcome, names: GroupNames, end: float) -> dict[str, list[Bar]]:
    """Node -> its pods, each in the first lane that is free when it comes."""
    evicted = {each.uid for each in outcome.evictions}
    spans: dict[str, list[PodSpan]] = defaultdict(list)
    for span in outcome.pods:
        if span.node and span.bound is not None:
            spans[span.node].append(span)
    bars: dict[str, list[Bar]] = {}
    for node, here in spans.items():
        free: list[float] = []  # by lane: from when on
        bars[node] = []
        for span in sorted(here, key=lambda span: (span.bound, names.of_span(span))):
            start = max((span.bound or 0.0) - outcome.started, 0.0)
            stop = end if span.ended is None else span.ended - outcome.started
            ran = min(max((span.started or stop + outcome.started) - outcome.started, start), stop)
            lane = next((i for i, since in enumerate(free) if since <= start), len(free))
            free[lane : lane + 1] = [stop]
            bars[node].append(Bar(names.of_span(span), start, ran, stop, lane, span.uid in evicted))
    return bars


def _colours(bars: Mapping[str, Sequence[Bar]]) -> dict[str, str]:
    """The jobs that held most for longest have colours of their own, in the order in which they began."""
    held: Counter[str] = Counter()
    first: dict[str, float] = {}
    for bar in (bar for here in bars.values() for bar in here):
        held[bar.job] += max(round((bar.end - bar.start) * 1000), 1)
        first[bar.job] = min(bar.start, first.get(bar.job, bar.start))
    named = {job for job, _ in held.most_common(_NAMED_JOBS)}
    in_order = sorted(named, key=lambda job: (first[job], job))
    return dict(zip(in_order, _COLOURS, strict=False))


def _title(outcome: Outcome, bars: Mapping[str, Sequence[Bar]], nodes: Sequence[str]) -> str:
    pods = sum(len(here) for here in bars.values())
    jobs = len({bar.job for here in bars.values() for bar in here})
    waiting = len({each.job for each in outcome.waiting})
    text = f"{_many(pods, 'pod')} of {_many(jobs, 'job')} on {_many(len(nodes), 'node')}"
    return text + (f", {_many(waiting, 'job')} waiting at the end" if waiting else "")


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def _natural(name: str) -> list[tuple[int, int | str]]:
    """node-2 before node-10."""
    parts: list[tuple[int, int | str]] = []
    word = ""
    for letter in f"{name}\0":
        if letter.isdigit() == word.isdigit() and word and letter != "\0":
            word += letter
            continue
        if word:
            parts.append((0, int(word)) if word.isdigit() and word.isascii() else (1, word))
        word = letter
    return parts


# --- drawing ----------------------------------------------------------------------------------------------------------


def _draw_nodes(
    axes: Any, nodes: Sequence[str], bars: Mapping[str, Sequence[Bar]], colours: Mapping[str, str], band: float
) -> None:
    """`band`: points that a node has."""
    from matplotlib.collections import PolyCollection

    boxes: dict[tuple[str, float, float], list[tuple[float, float, float, float]]] = defaultdict(list)
    solid = _SOLID if len(nodes) <= _LABELLED_NODES else _SOLID_OF_MANY
    for row, node in enumerate(nodes):
        if row % 2 == 0:
            axes.axhspan(row - 0.5, row + 0.5, color=_BAND, linewidth=0, zorder=0)
        here = bars.get(node, ())
        thick = solid / max(max((bar.lane for bar in here), default=0) + 1, 2)
        edge = round(min(0.6, 0.12 * thick * band), 2)
        for bar, count in _blocks(here) if thick * band < _THIN else ((bar, 1) for bar in here):
            low, high = row - solid / 2 + bar.lane * thick, count * thick
            colour = colours.get(bar.job, _OTHERS)
            boxes[colour, 0.4, edge].append((bar.start, bar.ran, low, high))
            boxes[colour, 1.0, edge].append((bar.ran, bar.end, low, high))
            if bar.evicted:
                axes.plot(bar.end, low + high / 2, marker="x", color=_INK, markersize=3.5, markeredgewidth=0.9, zorder=4)
    for (colour, alpha, edge), found in boxes.items():
        corners = [[(x0, y), (x1, y), (x1, y + h), (x0, y + h)] for x0, x1, y, h in found if x1 > x0]
        axes.add_collection(
            PolyCollection(corners, facecolors=colour, alpha=alpha, edgecolors="white", linewidths=edge, zorder=2)
        )
    axes.set_ylim(len(nodes) - 0.5, -0.5)
    step = -(-len(nodes) // _LABELLED_NODES)
    axes.set_yticks(range(0, len(nodes), step), [nodes[i] for i in range(0, len(nodes), step)])
    _legend(axes, bars, colours)
    _tidy(axes)


def _blocks(bars: Sequence[Bar]) -> Iterator[tuple[Bar, int]]:
    """Equal bars in lanes side by side as one, with how many they are."""
    rest = sorted(bars, key=lambda bar: (bar.job, bar.start, bar.ran, bar.end, bar.evicted, bar.lane))
    while rest:
        first, count = rest[0], 1
        while count < len(rest) and rest[count] == replace(first, lane=first.lane + count):
            count += 1
        yield first, count
        del rest[:count]


def _legend(axes: Any, bars: Mapping[str, Sequence[Bar]], colours: Mapping[str, str]) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [Patch(color=colour, label=_cut(job)) for job, colour in colours.items()]
    everything = [bar for here in bars.values() for bar in here]
    others = len({bar.job for bar in everything} - colours.keys())
    if others:
        handles.append(Patch(color=_OTHERS, label=f"{_many(others, 'other job')}"))
    if any(bar.evicted for bar in everything):
        handles.append(Line2D([], [], color=_INK, marker="x", linestyle="", markersize=4, label="evicted"))
    if handles:
        _place_legend(axes, handles)


def _draw_queues(axes: Any, outcome: Outcome, end: float) -> None:
    shares = _shares(outcome)
    for (name, points), colour in zip(shares.items(), _QUEUE_COLOURS, strict=False):
        times = [at for at, _ in points] + [end]
        heights = [share for _, share in points] + [points[-1][1]]
        axes.step(times, heights, where="post", color=colour, linewidth=1.6, label=name, zorder=3)
        axes.fill_between(times, heights, step="post", color=colour, alpha=0.12, linewidth=0, zorder=2)
    top = max((share for points in shares.values() for _, share in points), default=0.0)
    axes.set_ylim(0, max(top * 1.12, 10))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0f}%")
    axes.set_ylabel("share of the cluster")
    if shares:
        _place_legend(axes, axes.get_legend_handles_labels()[0])
    _tidy(axes)


def _shares(outcome: Outcome) -> dict[str, list[tuple[float, float]]]:
    """Queue -> (time, dominant share of the cluster in percent); queues that never held anything are left out."""
    total: Counter[str] = Counter()
    for obj in outcome.objects.get(NODE, ()):
        total.update(_allocatable(obj))
    shares: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for at in outcome.queue_use:
        for name, use in at.use.items():
            if name != "root":
                of = (amount * unit_of(resource) / total[resource] for resource, amount in use.items() if total[resource])
                shares[name].append((at.at - outcome.started, 100 * max(of, default=0.0)))
    used = {name: points for name, points in shares.items() if any(share for _, share in points)}
    most = sorted(used, key=lambda name: max(share for _, share in used[name]), reverse=True)[: len(_QUEUE_COLOURS)]
    return {name: used[name] for name in sorted(most, key=_natural)}


def _allocatable(obj: Any) -> dict[str, int]:
    try:
        listed = view(Node, obj).status.allocatable or {}
        return {name: nanos(amount) for name, amount in listed.items() if name != "pods"}
    except InvalidObject:
        return {}


def _draw_time(axes: Any, end: float) -> None:
    from matplotlib.ticker import MaxNLocator

    unit, size = next(((unit, size) for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)) if end >= 3 * size),
                      ("seconds", 1))  # fmt: skip
    axes.set_xlim(0, end)
    locator = MaxNLocator(nbins=10, steps=[1, 2, 2.5, 5, 10]).tick_values(0, end / size)
    ticks = [tick for tick in locator if 0 <= tick <= end / size]
    axes.set_xticks([tick * size for tick in ticks], [f"{tick:g}" for tick in ticks])
    axes.set_xlabel(f"{unit} since the start")


def _place_legend(axes: Any, handles: Iterable[Any]) -> None:
    axes.legend(handles=list(handles), loc="upper left", bbox_to_anchor=(1.005, 1.0), frameon=False, fontsize=8,
                handlelength=1.2, borderaxespad=0.0, labelspacing=0.45)  # fmt: skip


def _tidy(axes: Any) -> None:
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(length=0)
    axes.grid(axis="x", color=_GRID, linewidth=0.7, zorder=1)
    axes.set_axisbelow(True)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 3]}..."
