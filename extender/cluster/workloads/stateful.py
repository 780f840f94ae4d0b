"""StatefulSet: numbered pods, one after the other. Source: kubernetes v1.36.1 pkg/controller/statefulset
(stateful_set_control.go)."""

from __future__ import annotations

from collections.abc import Iterable

from extender.api.meta import POD, PVC, STATEFUL_SET, Json, labels_of
from extender.api.operations import Create, Operation
from extender.cluster.pod_rules import is_ready
from extender.cluster.workloads import pods as p

REVISION_LABEL = "controller-revision-hash"
NAME_LABEL = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL = "apps.kubernetes.io/pod-index"


def stateful_set(sts: Json, pods: Iterable[Json]) -> list[Operation]:
    wanted = sts["spec"].get("replicas", 1)
    first = (sts["spec"].get("ordinals") or {}).get("start", 0)
    by_number = {_number(pod): pod for pod in pods}
    latest = f"{sts['metadata']['name']}-{p.revision(sts['spec']['template'])}"
    current = (sts.get("status") or {}).get("currentRevision") or latest
    operations: list[Operation] = []
    if not p.going(sts):
        numbers = range(first, first + wanted)
        operations, waits = _fill(sts, by_number, numbers, current, latest)
        if not operations and not waits:
            operations = _shrink(sts, by_number, numbers) or _update(sts, by_number, numbers, latest)
    return operations + p.status_patch(STATEFUL_SET, sts, _status(sts, list(by_number.values()), current, latest))


def _fill(sts: Json, by_number: dict[int, Json], numbers: range, current: str, latest: str) -> tuple[list[Operation], bool]:
    """Missing pods in order, and whether all else waits: in OrderedReady for each pod until it is ready."""
    ordered = _ordered(sts)
    operations: list[Operation] = []
    for number in numbers:
        pod = by_number.get(number)
        if pod is None:
            keeps = number < numbers.start + _partition(sts) and current != latest
            operations += _make(sts, number, current if keeps else latest)
        elif p.ended(pod) and not p.going(pod):
            operations.append(p.delete_pod(pod))
        elif is_ready(pod) and not p.going(pod):
            continue
        if ordered:
            return operations, True
    return operations, False


def _make(sts: Json, number: int, revision: str) -> list[Operation]:
    name = f"{sts['metadata']['name']}-{number}"
    labels = {REVISION_LABEL: revision, NAME_LABEL: name, INDEX_LABEL: str(number)}
    pod = p.pod_from(sts["spec"]["template"], sts, name=name, labels=labels)
    pod["spec"]["hostname"] = name
    if sts["spec"].get("serviceName"):
        pod["spec"]["subdomain"] = sts["spec"]["serviceName"]
    claims = sts["spec"].get("volumeClaimTemplates") or []
    made: list[Operation] = []
    volumes = [volume for volume in pod["spec"].get("volumes") or [] if volume["name"] not in {_name(c) for c in claims}]
    for claim in claims:
        claim_name = f"{_name(claim)}-{name}"
        meta = {**claim["metadata"], "name": claim_name, "namespace": sts["metadata"]["namespace"]}
        made.append(Create(PVC, {"metadata": meta, "spec": claim.get("spec") or {}}))
        volumes.append({"name": _name(claim), "persistentVolumeClaim": {"claimName": claim_name}})
    if volumes:
        pod["spec"]["volumes"] = volumes
    return [*made, Create(POD, pod)]


def _shrink(sts: Json, by_number: dict[int, Json], numbers: range) -> list[Operation]:
    """The highest number goes first, in OrderedReady one at a time."""
    ordered = _ordered(sts)
    surplus = sorted((number for number in by_number if number not in numbers), reverse=True)
    if ordered and any(p.going(pod) for pod in by_number.values()):
        return []
    going = [p.delete_pod(by_number[number]) for number in surplus if not p.going(by_number[number])]
    return [*going[:1]] if ordered else [*going]


def _update(sts: Json, by_number: dict[int, Json], numbers: range, latest: str) -> list[Operation]:
    """Pods of an older template are replaced from the highest number down, one at a time, while all others are ready."""
    if (sts["spec"].get("updateStrategy") or {}).get("type", "RollingUpdate") != "RollingUpdate":
        return []
    for number in reversed(numbers[_partition(sts) :]):
        pod = by_number.get(number)
        if pod is None or p.going(pod):
            return []
        if labels_of(pod).get(REVISION_LABEL) != latest:
            return [p.delete_pod(pod)]
        if not is_ready(pod):
            return []
    return []


def _status(sts: Json, pods: list[Json], current: str, latest: str) -> Json:
    there = [pod for pod in pods if not p.going(pod) and not p.ended(pod)]
    updated = [pod for pod in there if labels_of(pod).get(REVISION_LABEL) == latest]
    ready = len(p.ready(there))
    wanted = sts["spec"].get("replicas", 1)
    done = len(updated) == len(there) == wanted and ready == wanted
    return {
        "replicas": len(there),
        "readyReplicas": ready,
        "availableReplicas": ready,
        "updatedReplicas": len(updated),
        "currentReplicas": len([pod for pod in there if labels_of(pod).get(REVISION_LABEL) == current]),
        "currentRevision": latest if done else current,
        "updateRevision": latest,
        "observedGeneration": sts["metadata"].get("generation", 1),
    }


def _ordered(sts: Json) -> bool:
    return bool(sts["spec"].get("podManagementPolicy", "OrderedReady") == "OrderedReady")


def _partition(sts: Json) -> int:
    rolling = (sts["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    return int(rolling.get("partition", 0))


def _number(pod: Json) -> int:
    return int(pod["metadata"]["name"].rpartition("-")[2])


def _name(claim: Json) -> str:
    return str(claim["metadata"]["name"])
