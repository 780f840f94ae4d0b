"""NodeUnschedulable: cordoned nodes take only pods that tolerate it. Source: k8s.io/kubernetes v1.36.1, nodeunschedulable."""

from __future__ import annotations

import numpy as np

from extender.api.pod import PodSpec
from extender.api.selectors import Taint
from extender.core.axis import BoolN
from extender.core.snapshot import Nodes

REASON = "node(s) were unschedulable"
_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


def refused(spec: PodSpec, nodes: Nodes) -> BoolN | None:
    """(N,) nodes that the pod may not go to; None: no node refuses it."""
    rows = nodes.traits.unschedulable
    if not rows or any(toleration.tolerates(_TAINT) for toleration in spec.tolerations or ()):
        return None
    mask = np.zeros(len(nodes), dtype=bool)
    mask[list(rows)] = True
    return mask
