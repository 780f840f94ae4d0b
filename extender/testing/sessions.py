"""One-session cases: objects and a configuration in, and what one session must have decided (see `differences`).

    python -m extender.testing.sessions FILE...      run cases and print what differs

Where several nodes are equally good the recorded decision is one of several right ones. So a case whose pods are the right
ones on other nodes is run again with ties broken by chance: it holds if some way of breaking ties gives the record."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import yaml

from extender.actions import ACTIONS
from extender.api import labels, meta, podgroup
from extender.api.errors import ConfError, PumiceError
from extender.api.meta import Json
from extender.api.operations import Bind, Evict, PatchStatus
from extender.core import status as st
from extender.core.conf import Conf, Shard, load
from extender.core.mirror import Mirror
from extender.core.scheduling import Result, schedule
from extender.core.session import Session
from extender.core.snapshot import Snapshot
from extender.plugins import PLUGINS
from extender.testing import cases

TIE_BREAKS = 64  # ways of breaking ties that are tried before a bind on another node counts as wrong
_LATER = 3600.0  # seconds between the youngest object and the session
_SCHEDULER = "volcano"


@dataclass(frozen=True, slots=True)
class Decided:
    """What a session decided, in the words of a case. Keys are namespace/name."""

    binds: dict[str, str]
    evicts: list[str]
    podgroups: dict[str, str]
    task_status: dict[str, dict[str, int]]  # group -> status -> number of its tasks
    pipelined: dict[str, dict[str, str]]  # group -> task -> node


def out_of_scope(case: Mapping[str, Any]) -> str | None:
    """What the case uses that there is nothing for yet; None where it can be run."""
    used = [part.strip() for part in case["scheduler"]["actions"].split(",")]
    missing = [name for name in used if name not in ACTIONS]
    missing += [p["name"] for tier in case["scheduler"]["tiers"] for p in tier["plugins"] if p["name"] not in PLUGINS]
    if missing:
        return f"no {', '.join(sorted(set(missing)))}"
    if case.get("hypernodes"):
        return "no HyperNodes"
    return None


def conf_of(case: Mapping[str, Any], *, random_ties: bool = False) -> Conf:
    """The case's configuration. Names that nobody registered are left out, as unknown plugins are upstream."""
    listed = case["scheduler"]
    named = {p["name"] for tier in listed["tiers"] for p in tier["plugins"]} | {a.strip() for a in listed["actions"].split(",")}
    sharding = case.get("sharding")
    return load(
        yaml.safe_dump(listed),
        PLUGINS,
        ACTIONS,
        later=sorted(named),
        source=str(case.get("id", "case")),
        switch_default=False if case.get("switches") == "off unless written" else None,
        shard=Shard(sharding["mode"], frozenset(sharding["nodes"])) if sharding else None,
        random_ties=random_ties,
    )


def mirror_of(case: Mapping[str, Any]) -> Mirror:
    """A mirror that has seen the objects. A pod of a group is ours, whatever its schedulerName leaves out."""
    mirror = Mirror((_SCHEDULER,))
    for obj in case["objects"]:
        if any(kind.name == obj["kind"] for kind in meta.KINDS):
            mirror.apply(meta.kind_of(obj), "ADDED", _filled(obj))
    return mirror


def _filled(obj: Json) -> Json:
    kind = meta.kind_of(obj)
    metadata = dict(obj["metadata"])
    if kind.namespaced:
        metadata.setdefault("namespace", "default")
    filled = {**obj, "metadata": metadata}
    if kind is meta.POD and labels.GROUP_NAME in meta.annotations_of(obj):
        filled["spec"] = {"schedulerName": _SCHEDULER, **obj["spec"]}
    return filled


def run(case: Mapping[str, Any], *, seed: int | None = None) -> Decided:
    """One session over the case; with a `seed` ties are broken by chance. No session is opened with a configuration that is
    refused, so that nothing is decided."""
    snapshot = Snapshot.build(mirror_of(case))
    now = max((_created(obj) for obj in case["objects"]), default=0.0) + _LATER
    rng = np.random.default_rng(seed or 0)
    try:
        conf = conf_of(case, random_ties=seed is not None)
    except ConfError:
        return decided(Result([], [], Session(snapshot, Conf((), ()), now, rng)))
    return decided(schedule(snapshot, conf, now, rng))


def _created(obj: Json) -> float:
    return meta.parse_time(obj["metadata"].get("creationTimestamp")) or 0.0


def decided(result: Result) -> Decided:
    """The decisions of a session, read from its operations and its last state."""
    ssn = result.session
    phases = {
        key: (group.status.phase or podgroup.PENDING)
        for key, job in ssn.jobs.rows.items()
        if (group := ssn.jobs.group[job]) is not None
    }
    binds, evicts = {}, []
    for operation in result.operations:
        match operation:
            case Bind(pod=pod, node=node):
                binds[str(pod)] = node
            case Evict(pod=pod):
                evicts.append(str(pod))
            case PatchStatus(kind=meta.POD_GROUP, key=key, patch=patch) if "phase" in patch.get("status", {}):
                phases[key] = patch["status"]["phase"]
    shown = {
        str(k): _without_verdict(ssn, ssn.jobs.rows[k]) if phase == podgroup.UNKNOWN else phase for k, phase in phases.items()
    }
    counts: dict[str, dict[str, int]] = {}
    pipelined: dict[str, dict[str, str]] = {}
    for key, row in ssn.jobs.rows.items():
        tasks = list(ssn.jobs.tasks[row])
        counts[str(key)] = dict(Counter(st.STATUS_NAMES[ssn.task_status[task]] for task in tasks))
        waiting = [task for task in tasks if ssn.task_status[task] == st.PIPELINED]
        if waiting:
            pipelined[str(key)] = {str(ssn.task_key(t)): ssn.nodes.name[ssn.task_node[t]] for t in waiting}
    return Decided(binds, sorted(evicts), shown, counts, pipelined)


def _without_verdict(ssn: Session, job: int) -> str:
    """The phase by the numbers alone. The records were taken before the gang plugin's closing hook, so that the verdict
    which turns a started group that lacks members into Unknown is in none of them."""
    counts, group = ssn.job_counts[job], ssn.jobs.group[job]
    assert group is not None
    leaving = sum(ssn.task_status[task] == st.RELEASING and ssn.task_node[task] >= 0 for task in ssn.jobs.tasks[job])
    if sum(int(counts[status]) for status in st.SCHEDULED_SET) + leaving >= group.spec.min_member:
        return podgroup.RUNNING
    return group.status.phase if group.status.phase == podgroup.INQUEUE else podgroup.PENDING


def judge(case: Mapping[str, Any]) -> list[str]:
    """What is wrong with our decisions on the case; empty where they hold, be it with ties broken another way."""
    first = run(case)
    faults = list(differences(case["expect"], first))
    only_nodes_differ = set(first.binds) == set(case["expect"].get("binds") or {})
    if faults and only_nodes_differ:
        others = (list(differences(case["expect"], run(case, seed=seed))) for seed in range(TIE_BREAKS))
        if any(not wrong for wrong in others):
            return []
    return faults


def differences(expect: Mapping[str, Any], got: Decided) -> Iterator[str]:
    """Each entry of `expect` that does not hold, in words."""
    if "binds" in expect:
        yield from _maps("binds", expect["binds"] or {}, got.binds)
    if "bindCount" in expect and len(got.binds) != expect["bindCount"]:
        yield f"bindCount: want {expect['bindCount']}, got {len(got.binds)}: {got.binds}"
    if "boundPods" in expect and set(got.binds) != set(expect["boundPods"]):
        yield f"boundPods: want {sorted(expect['boundPods'])}, got {sorted(got.binds)}"
    if "evicts" in expect and sorted(expect["evicts"]) != got.evicts:
        yield f"evicts: want {sorted(expect['evicts'])}, got {got.evicts}"
    for group, phase in (expect.get("podgroups") or {}).items():
        if got.podgroups.get(group) != phase:
            yield f"podgroups: {group}: want {phase}, got {got.podgroups.get(group)}"
    for group, counts in (expect.get("taskStatus") or {}).items():
        if got.task_status.get(group, {}) != counts:
            yield f"taskStatus: {group}: want {counts}, got {got.task_status.get(group, {})}"
    for group, nodes in (expect.get("pipelinedOn") or {}).items():
        on = got.pipelined.get(group, {})
        if not on or not set(on.values()) <= set(nodes):
            yield f"pipelinedOn: {group}: want {nodes}, got {on}"


def _maps(what: str, want: Mapping[str, str], got: Mapping[str, str]) -> Iterator[str]:
    for key in sorted({*want, *got}):
        if want.get(key) != got.get(key):
            yield f"{what}: {key}: want {want.get(key, 'none')}, got {got.get(key, 'none')}"


def _verdict(case: Mapping[str, Any]) -> tuple[str, list[str]]:
    lacking = out_of_scope(case)
    try:
        faults = judge(case)
    except PumiceError as error:
        faults = [f"{type(error).__name__}: {error}"]
    return ("differs" if faults else "holds") + (f" ({lacking})" if lacking else ""), faults


if __name__ == "__main__":
    sys.exit(cases.tell(sys.argv[1:], _verdict))
