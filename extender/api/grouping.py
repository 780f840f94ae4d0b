"""The group of a plain pod: what it is called and what it says. Admission and the podgroup controller make the same one.

All pods of one ReplicaSet, StatefulSet, DaemonSet or Job share a group, named after their owner's uid.
Source: volcano ed72c7c, pkg/controllers/podgroup/pg_controller_handler.go."""

from __future__ import annotations

import re
from collections.abc import Sequence

from extender.api import labels as names
from extender.api.integer import parse_int
from extender.api.meta import (
    BATCH_JOB,
    DAEMON_SET,
    POD_GROUP,
    REPLICA_SET,
    STATEFUL_SET,
    Json,
    Key,
    Kind,
    annotations_of,
    controller_of,
    labels_of,
    owner_reference,
    uid_of,
)
from extender.api.podgroup import PENDING
from extender.api.usage import Amounts, add, as_quantities, pod_usage

_UID = re.compile(r"-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
PREFIX = "podgroup-"
INHERITED = "volcano.sh/"  # annotations of an owner that its group inherits begin with it
OWNERS = (REPLICA_SET, DAEMON_SET, STATEFUL_SET, BATCH_JOB)
_FROM_POD = (names.PREEMPTABLE, names.COOLDOWN_TIME, names.REVOCABLE_ZONE)
_BUDGETS = (names.JDB_MIN_AVAILABLE, names.JDB_MAX_UNAVAILABLE)
_POD_LABELS = (names.PREEMPTABLE, names.COOLDOWN_TIME)


def without_uid(group: Key) -> str:
    """What people call the group of a Volcano job: `default/train-<uid of the job>` -> `default/train`."""
    return _UID.sub("", str(group))


def group_name(pod: Json) -> str:
    owner = controller_of(pod)
    return PREFIX + (owner["uid"] if owner is not None else uid_of(pod))


def new_group(pod: Json, owners: Sequence[Json]) -> Json:
    """The group of a pod; `owners` are the workloads among the pod's owners whose annotations it inherits."""
    meta = pod["metadata"]
    controlled = controller_of(pod) is not None
    references = [dict(each) for each in meta["ownerReferences"]] if controlled else [owner_reference(pod)]
    group: Json = {
        "apiVersion": POD_GROUP.api_version,
        "kind": POD_GROUP.name,
        "metadata": {"name": group_name(pod), "namespace": meta.get("namespace") or "", "ownerReferences": references},
        "spec": _spec(pod, owners),
        "status": {"phase": PENDING},
    }
    notes = _annotations(pod, owners)
    if notes:
        group["metadata"]["annotations"] = notes
    labels = {name: labels_of(pod)[name] for name in _POD_LABELS if name in labels_of(pod)}
    if labels:
        group["metadata"]["labels"] = labels
    return group


def _spec(pod: Json, owners: Sequence[Json]) -> Json:
    member = min_member(owners)
    usage: Amounts = {}
    if member:
        add(usage, pod_usage(pod["spec"]), member)
    spec: Json = {"minMember": member, "minResources": as_quantities(usage, [pod["spec"]])}
    notes = annotations_of(pod)
    if pod["spec"].get("priorityClassName"):
        spec["priorityClassName"] = pod["spec"]["priorityClassName"]
    if notes.get(names.QUEUE_NAME_ANNOTATION):
        spec["queue"] = notes[names.QUEUE_NAME_ANNOTATION]
    topology = _topology(notes)
    if topology is not None:
        spec["networkTopology"] = topology
    return spec


def min_member(owners: Sequence[Json]) -> int:
    """What the first owner that says so says; 1 where that is no number of pods."""
    said = next((note for each in owners if (note := annotations_of(each).get(names.GROUP_MIN_MEMBER)) is not None), "1")
    number = number_of_pods(said)
    return number if number is not None else 1


def number_of_pods(note: str) -> int | None:
    """None where the annotation says none."""
    number = parse_int(note, bits=32)
    return number if number is not None and number >= 0 else None


def _topology(notes: dict[str, str]) -> Json | None:
    mode, tier = notes.get(names.NETWORK_TOPOLOGY_MODE), notes.get(names.NETWORK_TOPOLOGY_HIGHEST_TIER)
    if mode is None and tier is None:
        return None
    topology: Json = {"mode": mode.lower() if mode is not None and mode.lower() in ("hard", "soft") else "hard"}
    highest = parse_int(tier) if tier is not None else None
    if highest is not None:
        topology["highestTierAllowed"] = highest
    return topology


def _annotations(pod: Json, owners: Sequence[Json]) -> dict[str, str]:
    inherited: dict[str, str] = {}
    for owner in owners:
        for name, value in annotations_of(owner).items():
            if name.startswith(INHERITED):
                inherited.setdefault(name, value)
    notes = annotations_of(pod)
    own = {name: notes[name] for name in _FROM_POD if name in notes}
    budget = next((name for name in _BUDGETS if name in notes), None)
    if budget is not None:
        own[budget] = notes[budget]
    return {**inherited, **own}


def owner_kind(reference: Json) -> Kind | None:
    """The kind of workload that an owner reference names; None where groups inherit nothing from it."""
    named = (reference.get("apiVersion"), reference.get("kind"))
    return next((kind for kind in OWNERS if (kind.api_version, kind.name) == named), None)
