"""NodeName: a pod that names its node goes nowhere else. Source: k8s.io/kubernetes v1.36.1, nodename."""

from __future__ import annotations

import numpy as np

from extender.core.axis import BoolN
from extender.core.snapshot import Nodes

REASON = "node(s) didn't match the requested node name"


def refused(name: str, nodes: Nodes) -> BoolN | None:
    """(N,) all nodes but the named one; None where the pod names none."""
    if not name:
        return None
    mask = np.ones(len(nodes), dtype=bool)
    row = nodes.rows.get(name)
    if row is not None:
        mask[row] = False
    return mask
