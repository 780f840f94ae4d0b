"""How many pods the manifests make, before they are made: a slip in `replicas` must not take hours and all memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from extender.api import meta
from extender.api.meta import Json, kind_of, uid_of
from extender.ctl.arranging import JOB_SPECS
from extender.ctl.found import Found

MOST_PODS = 100_000  # in one run; at some 10 kB each they need about a gigabyte
_LARGEST = 2**31 - 1  # what is no int32 the API server refuses
_REPLICATED = (meta.DEPLOYMENT, meta.REPLICA_SET, meta.STATEFUL_SET, meta.REPLICATION_CONTROLLER)


def check_size(found: Sequence[Found]) -> None:
    """Raises Refused for the first manifest with which there would be more than MOST_PODS pods."""
    nodes = sum(kind_of(each.manifest) == meta.NODE for each in found)
    uids = {uid for each in found if (uid := uid_of(each.manifest))}
    total = 0
    for each in (each for each in found if not _is_owned(each.manifest, uids)):
        for path, count in _counts(each.manifest, nodes):
            total += count
            if total > MOST_PODS:
                before = f" after {total - count:,} of what comes before" if total > count else ""
                raise each.refuse(f"{each.subject}: {path}: {count:,} pods{before}: a run takes at most {MOST_PODS:,}")


def _is_owned(manifest: Json, uids: set[str]) -> bool:
    """Its owner is among the manifests, as in what a cluster has written, and is counted already."""
    owners = manifest["metadata"].get("ownerReferences")
    named = [owner.get("uid") for owner in owners if isinstance(owner, dict)] if isinstance(owners, list) else []
    return any(isinstance(uid, str) and uid in uids for uid in named)


def _counts(manifest: Json, nodes: int) -> Iterator[tuple[str, int]]:
    """(field path, number of pods that come of it)."""
    kind, spec = kind_of(manifest), manifest.get("spec") or {}
    if kind == meta.POD:
        yield "spec", 1
    elif kind == meta.DAEMON_SET:
        yield "spec", nodes
    elif kind in _REPLICATED:
        yield "spec.replicas", _count(spec.get("replicas"))
    elif kind == meta.BATCH_JOB:
        field = "parallelism" if spec.get("completions") is None else "completions"
        yield f"spec.{field}", _count(spec.get(field))
    elif kind in JOB_SPECS:
        for i, task in enumerate(_tasks(spec, JOB_SPECS[kind][1:])):
            if isinstance(task, dict):
                yield f"{'.'.join(JOB_SPECS[kind])}.tasks[{i}].replicas", _count(task.get("replicas"))


def _tasks(spec: Any, path: tuple[str, ...]) -> Iterable[Any]:
    for part in path:
        spec = spec.get(part) if isinstance(spec, dict) else None
    tasks = spec.get("tasks") if isinstance(spec, dict) else None
    return tasks if isinstance(tasks, list) else ()


def _count(written: object) -> int:
    """One where nothing is written; what cannot be meant is left for the API server to refuse."""
    if written is None:
        return 1
    return written if isinstance(written, int) and 0 <= written <= _LARGEST else 0
