"""pumice run: play manifests on an embedded cluster and say what was placed where, and why the rest waits."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import click
import orjson
import yaml
from rich.console import Console

from extender.api import duration, labels
from extender.api.errors import InvalidObject, UsageError
from extender.api.meta import NODE, POD, kind_of
from extender.cluster.clock import Clock, SystemClock, VirtualClock
from extender.ctl import configuring, named, nodes, storage, tables, timeline
from extender.ctl.arranging import arranged, dangling, rings, unplayed, unreadable_annotations
from extender.ctl.commanding import misdirected
from extender.ctl.found import Faults, Found, Refused
from extender.ctl.loading import load
from extender.ctl.namespaces import unwritten
from extender.ctl.playing import INTERRUPTED, beginning, play
from extender.ctl.plugin_arguments import unread_arguments
from extender.ctl.progress import Progress
from extender.ctl.reading import STDIN
from extender.ctl.report import Report, report
from extender.ctl.sizing import check_size
from extender.ctl.slips import left_out, too_little
from extender.ctl.unheeded import unheeded
from extender.ctl.unknown_fields import unknown_fields, unread_notes
from extender.local import Local
from extender.vocabulary import vocabulary
from webhook.routes import ROUTES
from webhook.settings import Settings

SETTLED = "settled"
SCHEDULERS = (*labels.SCHEDULERS, labels.DEFAULT_SCHEDULER)
_INTERRUPTED = 130
_START = 1767225600.0  # 2026-01-01T00:00:00Z: where the virtual clock begins
_LIMIT = 86400.0  # seconds after which a run that never settles is ended
_WIDTH = 120  # of tables that do not go to a terminal

HELP = f"""Play manifests on a cluster that lives in this process.

It has the API server's rules, admission, controllers, scheduler and kubelets.

FILES are what one gives to `kubectl apply`: Kubernetes and Volcano manifests in any mix, YAML or JSON, several documents in a
file, Lists, folders (all files below them, by name), - for standard input. What others need is created first, otherwise the
order of the files is kept. What a cluster has written (it has a resourceVersion, as in `kubectl get -o yaml`) is taken as it
is, status and node included. Pods run for ever unless their annotation pumice.io/run-seconds says how long; pumice.io/exit-code
says how they end. An object with pumice.io/arrives-after comes that much later (30, 5m).

\b
NODES come from the files and from --nodes; without any there is a default cluster:
    {nodes.DEFAULT_SPEC}
A spec is COUNTx KEY=VALUE,... with groups parted by ';'. Keys: resources (cpu=8, memory=32Gi, nvidia.com/gpu=4; pods=110
and ephemeral-storage=100Gi where not given), name=PREFIX, zone=ZONE, label:KEY=VALUE, taint:KEY=VALUE:EFFECT.

Without a StorageClass in the files there is a default one, {storage.DEFAULT_CLASS}: a volume is made when its pod is placed.

\b
EXIT STATUS
    0  everything is placed             3  something must wait
    1  an error, what files hold is refused
    2  the command line is wrong, or a file cannot be read
    4  something can never fit
"""


class Until(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.2
    """`settled`, seconds, or a duration."""

    name = "settled|TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        if value == SETTLED:
            return SETTLED
        try:
            seconds = duration.length(value)
        except InvalidObject as error:
            self.fail(f"{error}; without it a run ends once it is {SETTLED}", param, ctx)
        if seconds <= 0:
            self.fail(f"'{value}' is not above 0", param, ctx)
        return seconds


def _names(ctx: click.Context, param: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    """Names of schedulers: one each."""
    del ctx, param
    for name in names:
        if not re.fullmatch(r"[^\s,]+", name):
            raise UsageError(f"--scheduler-name: '{name}' is no name; for several give the option again for each")
    return names


@click.command(help=HELP)
@click.argument("files", nargs=-1, required=True, metavar="FILE|DIR...")
@click.option("--nodes", "node_spec", metavar="SPEC|FILE", help="More nodes: a spec (see above) or a file of Node manifests.")
@click.option("--conf", metavar="FILE", help="scheduler.conf, or a ConfigMap that holds one. Without it a ConfigMap among FILES "
              "with a key volcano-scheduler.conf counts, otherwise the scheduler's own default.")  # fmt: skip
@named.plugins_dir()
@click.option("--until", type=Until(), default=SETTLED, show_default=True, metavar="settled|TIME",
              help="When to stop: once nothing can change any more (a day at most), or after so long (90, 5m, 2d).")  # fmt: skip
@click.option("--clock", type=click.Choice(["virtual", "real"]), default="virtual", show_default=True,
              help="virtual: hours pass at once. real: as long as it takes.")  # fmt: skip
@click.option("-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True)
@click.option("--timeline", "picture", metavar="OUT.png|.svg", help="Draw pods per node over time, with the queues' shares.")
@click.option("--scheduler-name", "schedulers", multiple=True, default=SCHEDULERS, show_default=True, callback=_names,
              help="Whose pods are ours to place, by spec.schedulerName. May be repeated.")  # fmt: skip
def run(files: tuple[str, ...], node_spec: str | None, conf: str | None, plugins_dir: str, until: float | str, clock: str,
        output: str, picture: str | None, schedulers: tuple[str, ...]) -> None:  # fmt: skip
    """See HELP."""
    if picture is not None:
        timeline.check(picture)
    _check_stdin((*files, conf, node_spec))
    notes = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    faults = Faults()
    found = _read(files, node_spec, notes, faults)
    chosen = configuring.choose(conf, found, vocabulary(plugins_dir))
    if chosen.source and conf is None:
        notes.print(f"scheduler.conf: from {chosen.source}")
    for warning in chosen.conf.warnings:
        notes.print(f"warning: {chosen.source or 'default configuration'}: {warning}")
    for line in unheeded(found, chosen.conf):
        notes.print(f"warning: {line}")
    ticks: Clock = VirtualClock(beginning(found, _START, faults)) if clock == "virtual" else SystemClock()
    admission = Settings(enabled=tuple(route.path for route in ROUTES), scheduler_names=schedulers)
    local = Local(chosen.conf, ticks, scheduler_names=schedulers, admission=admission)
    with Progress(notes, local.started, lambda: local.cluster.count(POD)) as progress:
        outcome = play(local, found, until, _LIMIT, progress, faults)
    result = report(outcome, schedulers)
    _show(result, output)
    if picture is not None:
        timeline.draw(outcome, Path(picture))
        notes.print(f"timeline: {picture}")
    sys.exit(_INTERRUPTED if outcome.ended == INTERRUPTED else result.exit_status)


def _check_stdin(given: Iterable[str | None]) -> None:
    if sum(each == STDIN for each in given) > 1:
        raise UsageError("standard input (-) can be read once only")


def _read(files: tuple[str, ...], node_spec: str | None, notes: Console, faults: Faults) -> list[Found]:
    """All objects in the order of creation, nodes included, without those at fault."""
    loaded = load(files, faults)
    found = list(loaded.found)
    if loaded.passed_over:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(loaded.passed_over.items()))
        notes.print(f"passed over, without bearing on scheduling: {kinds}")
    for line in loaded.warnings():
        notes.print(f"warning: {line}")
    if node_spec is not None:
        found += nodes.from_file(node_spec, faults) if nodes.is_file(node_spec) else nodes.from_spec(node_spec)
    if not any(kind_of(each.manifest) == NODE for each in found):
        notes.print(f"no nodes given: default cluster {nodes.DEFAULT_SPEC}")
        found += nodes.from_spec(nodes.DEFAULT_SPEC, "default cluster")
    found += storage.default_class(found)
    for each in (each for each in found if not each.as_found):
        for line in (*unknown_fields(each), *unread_notes(each), *unread_arguments(each), *too_little(each)):
            notes.print(f"warning: {line}")
    for line in (*unplayed(found), *unwritten(found), *left_out(found)):
        notes.print(f"warning: {line}")
    _judge(found, faults)
    return arranged(each for each in found if each not in faults)


def _judge(found: list[Found], faults: Faults) -> None:
    """What can be told without a cluster. Raises it where there would be more pods than a run can take."""
    for refused in chain(
        nodes.without_room(each for each in found if kind_of(each.manifest) == NODE),
        unreadable_annotations(found),
        misdirected(found),
        rings(found),
        dangling(found, faults.names),
    ):
        faults.add(refused)
    try:
        check_size(found)
    except Refused as error:
        faults.add(error)
        faults.tell()


def _show(result: Report, output: str) -> None:
    if output == "json":
        click.echo(orjson.dumps(result.as_json(), option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS, default=_plain))
    elif output == "yaml":
        plain = orjson.loads(orjson.dumps(result.as_json(), option=orjson.OPT_NON_STR_KEYS, default=_plain))
        click.echo(yaml.dump(plain, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=_WIDTH), nl=False)
    else:
        out = tables.Output()
        if not out.is_terminal and "COLUMNS" not in os.environ:
            out = tables.Output(width=_WIDTH)
        tables.show(result, out)


def _plain(value: object) -> object:
    """What orjson does not know: numbers of NumPy, mappings that are no dict."""
    if hasattr(value, "item"):
        return value.item()
    return dict(value) if isinstance(value, Mapping) else str(value)
