"""pumice score: what kube-scheduler's default profile says about one pod on a given cluster, node by node.

pumice score POD.yaml CLUSTER.yaml ...     a table: which filter refuses the node and why, or every scorer's points
pumice score --jsonl < QUESTIONS           one question a line, one answer a line: docs/score.md"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import click
import msgspec
import numpy as np
import orjson

from extender.api import meta
from extender.api.errors import InvalidObject, UsageError, nearest
from extender.api.meta import Json, Kind, key_of, kind_of
from extender.api.node import Node
from extender.api.pod import PENDING, RUNNING, Pod
from extender.api.views import Metadata, View, decode, view
from extender.core.followed import ALWAYS, VOLUMES
from extender.core.kube.default_profile import WEIGHTS, Judgement, judge
from extender.core.mirror import Mirror
from extender.core.plugin import TaskClass
from extender.core.snapshot import Snapshot
from extender.ctl.found import Faults, Found, Refused
from extender.ctl.loading import load
from extender.ctl.reading import standard_input
from extender.ctl.slips import too_little
from extender.ctl.unknown_fields import unknown_fields

_OBJECTS = (meta.NAMESPACE, meta.SERVICE, *VOLUMES)  # what a question may hold besides nodes and pods
_BY_NAME = {kind.name: kind for kind in _OBJECTS}


class _Named(View, frozen=True):
    """What the mirror takes for granted of every object."""

    metadata: Metadata | None = None


class Question(View, frozen=True):
    id: str = ""
    nodes: tuple[Node, ...] | None = None
    pods: tuple[Pod, ...] | None = None
    objects: tuple[Json, ...] | None = None
    pod: Pod | None = None


class _Identified(msgspec.Struct):
    id: str = ""


# --- judging ------------------------------------------------------------------------------------------------------------------


def judge_pod(mirror: Mirror, pod: Pod) -> tuple[Snapshot, Judgement]:
    """Judge a pod on the mirror's cluster, where it must not be yet. The mirror has it as pending afterwards."""
    wanted = pod.spec.node_name
    waiting = msgspec.structs.replace(
        pod,
        spec=msgspec.structs.replace(pod.spec, node_name=""),
        status=msgspec.structs.replace(pod.status, phase=PENDING),
    )
    mirror.pod_changed(pod.metadata.key, waiting)
    snapshot = Snapshot.build(mirror)
    row = snapshot.tasks.rows[pod.metadata.key]
    shape, task = snapshot.shapes[snapshot.tasks.shape[row]], snapshot.tasks.pod[row]
    assert shape is not None
    assert task is not None
    return snapshot, judge(snapshot, TaskClass(0, row, shape, task), wanted)


def answer(question: Question) -> Json:
    """The answer to one question, in the shape of docs/score.md."""
    found: Json = {"id": question.id, "filter": {}, "score": {}, "weight": {}, "total": {}}
    try:
        if question.pod is None:
            raise InvalidObject("the question has no pod", path="pod")
        snapshot, judgement = judge_pod(_cluster_of(question, question.pod), question.pod)
    except InvalidObject as error:
        return found | {"error": str(error)}
    return found | in_words(snapshot, judgement)


def _cluster_of(question: Question, pod: Pod) -> Mirror:
    mirror = Mirror(scheduler_names=(pod.spec.scheduler_name,))
    for node in question.nodes or ():
        if node.status.allocatable is None:
            node = msgspec.structs.replace(node, status=msgspec.structs.replace(node.status, allocatable={}))
        mirror.node_changed(node.metadata.key, node)
    for other in question.pods or ():
        if other.status.phase != RUNNING:
            other = msgspec.structs.replace(other, status=msgspec.structs.replace(other.status, phase=RUNNING))
        mirror.pod_changed(other.metadata.key, other)
    for obj in question.objects or ():
        kind = _BY_NAME.get(str(obj.get("kind") or ""))
        if kind is None:
            raise InvalidObject(f'unknown kind "{obj.get("kind") or ""}"', path="objects")
        _add(mirror, kind, obj)
    return mirror


def _add(mirror: Mirror, kind: Kind, obj: Json) -> None:
    """Let the mirror have an object. Raises InvalidObject where it cannot be read."""
    view(_Named, obj)
    mirror.apply(kind, "ADDED", obj)
    error = mirror.unreadable.get((kind, key_of(obj)))
    if error is not None:
        raise error


def in_words(snapshot: Snapshot, judgement: Judgement) -> Json:
    """filter, score, weight and total by node and plugin name."""
    names = snapshot.nodes.name
    passed = np.flatnonzero(judgement.passed).tolist()
    verdicts: Json = {names[row]: {"ok": True} for row in passed}
    for row, (plugin, code, reasons) in judgement.refusals.items():
        verdicts[names[row]] = {"ok": False, "plugin": plugin, "code": code} | ({"reasons": reasons} if reasons else {})
    here = [names[row] for row in passed]
    return {
        "filter": verdicts,
        "score": {scorer: dict(zip(here, points[passed].tolist(), strict=True)) for scorer, points in judgement.points.items()},
        "weight": {scorer: WEIGHTS[scorer] for scorer in judgement.points},
        "total": dict(zip(here, judgement.total()[passed].tolist(), strict=True)) if judgement.points else {},
    }


def answer_line(line: bytes) -> Json:
    """Raises InvalidObject where it is no question."""
    if not line.strip():
        raise InvalidObject("an empty line is no question")
    question = decode(Question, line)
    for key in msgspec.json.decode(line, type=dict[str, msgspec.Raw]):
        if key not in Question.__struct_fields__:
            near = nearest(key, Question.__struct_fields__)
            raise InvalidObject(f"a question has no such field{near}", path=key)
    return answer(question)


def _id_of(line: bytes) -> str:
    """That of a question of which something else cannot be read; "" where it has none."""
    try:
        return msgspec.json.decode(line, type=_Identified).id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""


def answer_lines(lines: Iterable[bytes], write: Callable[[bytes], object]) -> None:
    """One answer for each line; what cannot be answered is answered with the error.

    Raises InvalidObject in the end where there were such lines."""
    asked = failed = 0
    for line in lines:
        asked += 1
        try:
            said = answer_line(line)
        except InvalidObject as error:
            said = {"id": _id_of(line), **dict.fromkeys(("filter", "score", "weight", "total")), "error": str(error)}
        failed += "error" in said
        write(orjson.dumps(said, option=orjson.OPT_APPEND_NEWLINE))
    if failed:
        whose = "its error says" if failed == 1 else "their errors say"
        of = "the only line" if asked == 1 else f"{failed} of {asked} lines"
        raise InvalidObject(f"{of} could not be answered; {whose} why", path="--jsonl")


def _at_once(line: bytes) -> None:
    """Who asks may wait for the answer before asking on."""
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


# --- files --------------------------------------------------------------------------------------------------------------------


def read_pod(path: str) -> tuple[Found, Pod]:
    """The one pod of a file. Raises UsageError where it cannot be read, Refused for what it holds."""
    all_found = load([path]).found
    pods = [found for found in all_found if found.manifest["kind"] == "Pod"]
    if len(pods) != 1:
        kinds = ", ".join(f"{count} {kind}" for kind, count in Counter(each.manifest["kind"] for each in all_found).items())
        raise Refused(f"{path}: must hold exactly one Pod, and holds {kinds}; the pod comes first, then the cluster")
    try:
        return pods[0], view(Pod, _in_namespace(pods[0].manifest))
    except InvalidObject as error:
        raise pods[0].refuse(error) from None


def read_cluster(paths: Sequence[str], pod: Pod) -> Mirror:
    """Nodes, pods on them and what else filters and scorers look at; other kinds are passed over, and the pod itself too."""
    mirror, faults = Mirror(scheduler_names=(pod.spec.scheduler_name,)), Faults()
    for found in load(paths, faults).found:
        kind = kind_of(found.manifest)
        obj = _in_namespace(found.manifest) if kind.namespaced else found.manifest
        if kind not in (*ALWAYS, *VOLUMES) or (kind is meta.POD and key_of(obj) == pod.metadata.key):
            continue
        try:
            _add(mirror, kind, obj)
        except InvalidObject as error:
            faults.add(found.refuse(error))
    faults.tell()
    if not mirror.nodes.exists.any():
        raise Refused(f"no Node in {', '.join(paths)}: a pod is judged on nodes")
    return mirror


def _in_namespace(obj: Json) -> Json:
    metadata = obj["metadata"]
    return obj if metadata.get("namespace") else {**obj, "metadata": {**metadata, "namespace": "default"}}


# --- words --------------------------------------------------------------------------------------------------------------------

_HEADINGS = {
    "TaintToleration": "TAINTS", "NodeAffinity": "NODE-AFFINITY", "NodeResourcesFit": "FREE-ROOM", "PodTopologySpread": "SPREAD",
    "InterPodAffinity": "POD-AFFINITY", "NodeResourcesBalancedAllocation": "BALANCE", "ImageLocality": "IMAGES",
}  # fmt: skip
_NOT_NAMED = "the pod's node affinity names other nodes"


def table(said: Mapping[str, Any]) -> list[str]:
    """Nodes that pass, best first, with every scorer's points; then those that are refused, by whom and why."""
    scorers, total = said["score"], said["total"]
    header = ["NODE", "TOTAL", *(f"{_HEADINGS[scorer]}*{said['weight'][scorer]}" for scorer in scorers), "VERDICT"]
    rows = [
        [node, str(total[node]), *(str(points[node]) for points in scorers.values()), "passes"]
        for node in sorted(total, key=lambda node: (-total[node], node))
    ]
    rows += [
        [node, "-", *("-" for _ in scorers), f"{verdict['plugin']}: {', '.join(verdict.get('reasons', [_NOT_NAMED]))}"]
        for node, verdict in sorted(said["filter"].items())
        if not verdict["ok"]
    ]
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in [header, *rows]]


@click.command()
@click.argument("pod", required=False)
@click.argument("cluster", nargs=-1)
@click.option("--jsonl", is_flag=True, help="Answer questions from standard input, one JSON object a line.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def score(pod: str | None, cluster: tuple[str, ...], jsonl: bool, output: str) -> None:
    """Judge the nodes of a cluster for one pod, as kube-scheduler does.

    For each node: which filter refuses it and why, or what each scorer gives it.

    POD is a file that holds the pod, CLUSTER files or folders with nodes, pods, services and namespaces; - is standard input."""
    if jsonl:
        if pod is not None:
            raise UsageError("--jsonl reads standard input; it takes no files")
        answer_lines(standard_input(), _at_once)
        return
    if pod is None or not cluster:
        raise UsageError("give a pod and the cluster: pumice score POD.yaml CLUSTER.yaml ...")
    found, asked = read_pod(pod)
    for line in (*unknown_fields(found), *too_little(found)):
        click.echo(f"warning: {line}", err=True)
    mirror = read_cluster(cluster, asked)
    try:
        said = in_words(*judge_pod(mirror, asked))
    except InvalidObject as error:
        raise found.refuse(error) from None
    click.echo("\n".join(table(said)) if output == "table" else orjson.dumps(said, option=orjson.OPT_INDENT_2).decode())
