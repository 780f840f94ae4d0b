"""TaintToleration: taints that the pod does not tolerate refuse it, or count against the node.

Source: k8s.io/kubernetes v1.36.1, tainttoleration."""

from __future__ import annotations

from extender.api.pod import PodSpec
from extender.core.axis import BoolN, IntN
from extender.core.snapshot import Nodes
from extender.core.traits import Taints

REASON = "node(s) had untolerated taint(s)"


def refused(spec: PodSpec, nodes: Nodes) -> BoolN | None:
    """(N,) nodes with a NoSchedule or NoExecute taint that the pod does not tolerate; None: there are none."""
    tolerations = spec.tolerations or ()

    def untolerated(taints: Taints) -> int:
        return any(
            taint.effect in ("NoSchedule", "NoExecute") and not any(t.tolerates(taint) for t in tolerations) for taint in taints
        )

    if not nodes.traits.tainted:
        return None
    mask = nodes.traits.per_taints(untolerated, len(nodes)).astype(bool)
    return mask if mask.any() else None


def prefer_not(spec: PodSpec, nodes: Nodes) -> IntN | None:
    """(N,) number of PreferNoSchedule taints that the pod does not tolerate; None: none anywhere. The fewer the better."""
    tolerations = [t for t in spec.tolerations or () if t.effect in ("", "PreferNoSchedule")]

    def untolerated(taints: Taints) -> int:
        return sum(taint.effect == "PreferNoSchedule" and not any(t.tolerates(taint) for t in tolerations) for taint in taints)

    if not nodes.traits.tainted:
        return None
    counts = nodes.traits.per_taints(untolerated, len(nodes))
    return counts if counts.any() else None
