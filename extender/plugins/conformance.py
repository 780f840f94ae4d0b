"""conformance -- pods that the cluster itself needs are never victims.

These are pods of the priority classes that Kubernetes reserves and all of kube-system. Source: volcano ed72c7c,
plugins/conformance."""

from __future__ import annotations

from collections.abc import Sequence

from extender.core.hyper_nodes import Eviction
from extender.core.plugin import NoArgs, Plugin
from extender.core.session import Session

CRITICAL = ("system-cluster-critical", "system-node-critical")
SYSTEM_NAMESPACE = "kube-system"


class Conformance(Plugin[NoArgs]):
    name = "conformance"
    keeps = "they are critical to the cluster"

    def preemptable(self, ssn: Session, task: int, candidates: Sequence[int]) -> list[int]:
        del task
        return [victim for victim in candidates if not _is_critical(ssn, victim)]

    reclaimable = preemptable

    def unified_evictable(self, ssn: Session, eviction: Eviction, candidates: Sequence[int]) -> list[int]:
        del eviction
        return [victim for victim in candidates if not _is_critical(ssn, victim)]


def _is_critical(ssn: Session, task: int) -> bool:
    pod = ssn.tasks.pod[task]
    return pod is not None and (pod.spec.priority_class_name in CRITICAL or pod.metadata.namespace == SYSTEM_NAMESPACE)
