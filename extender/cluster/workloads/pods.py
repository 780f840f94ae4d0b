"""What all workloads share: pods from a template, revisions, what counts as active or ready."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable

from extender.api.meta import POD, Json, Kind, Time, key_of, owner_reference, parse_time, uid_of
from extender.api.operations import Delete, Operation, PatchStatus
from extender.api.pod import ENDED
from extender.cluster.metadata import SAFE_LETTERS
from extender.cluster.pod_rules import is_ready


def pod_from(template: Json, owner: Json, *, name: str = "", labels: Json | None = None) -> Json:
    """A pod of the owner; without a name one is generated after the owner's."""
    meta = template.get("metadata") or {}
    made: Json = {
        "namespace": owner["metadata"]["namespace"],
        "labels": {**(meta.get("labels") or {}), **(labels or {})},
        "annotations": dict(meta.get("annotations") or {}),
        "ownerReferences": [owner_reference(owner)],
        **({"name": name} if name else {"generateName": f"{owner['metadata']['name']}-"}),
    }
    if meta.get("finalizers"):
        made["finalizers"] = meta["finalizers"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": made, "spec": dict(template.get("spec") or {})}


def revision(template: Json) -> str:
    """A short name of a template: the same for equal ones."""
    number = zlib.crc32(json.dumps(template, sort_keys=True).encode())
    digits = []
    while number:
        number, digit = divmod(number, len(SAFE_LETTERS))
        digits.append(SAFE_LETTERS[digit])
    return "".join(digits) or SAFE_LETTERS[0]


def delete_pod(pod: Json) -> Delete:
    return Delete(POD, key_of(pod), uid=uid_of(pod))


def going(pod: Json) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def phase(pod: Json) -> str:
    return str((pod.get("status") or {}).get("phase", ""))


def ended(pod: Json) -> bool:
    return phase(pod) in ENDED


def active(pods: Iterable[Json]) -> list[Json]:
    return [pod for pod in pods if not going(pod) and not ended(pod)]


def ready(pods: Iterable[Json]) -> list[Json]:
    return [pod for pod in pods if is_ready(pod)]


def surplus_first(pods: Iterable[Json]) -> list[Json]:
    """In the order in which a ReplicaSet gives pods up (controller_utils.go, ActivePodsWithRanks, without the ranks)."""

    def rank(pod: Json) -> tuple[bool, int, bool, Time]:
        born = parse_time(pod["metadata"].get("creationTimestamp")) or 0.0
        order = {"Pending": 0, "Unknown": 1}.get(phase(pod), 2)
        return bool(pod["spec"].get("nodeName")), order, is_ready(pod), -born

    return sorted(pods, key=rank)


def status_patch(kind: Kind, obj: Json, status: Json) -> list[Operation]:
    """The status write, where it changes anything. None removes a field."""
    before = obj.get("status") or {}
    if all(before.get(name) == value for name, value in status.items()):
        return []
    return [PatchStatus(kind, key_of(obj), {"status": status}, uid=uid_of(obj))]


def share(value: object, of: int, *, up: bool) -> int:
    """`3` or `25%` of a number (intstr.GetScaledValueFromIntOrPercent)."""
    if isinstance(value, int):
        return value
    hundredths = int(str(value).rstrip("%")) * of
    return -(-hundredths // 100) if up else hundredths // 100
