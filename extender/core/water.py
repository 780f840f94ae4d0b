"""Water-filling: divide the cluster among queues by weight, where nobody gets more than it asks or may have.

What a queue cannot use goes round again among those that want more. Source: volcano ed72c7c, plugins/proportion."""

from __future__ import annotations

import numpy as np

from extender.core.amounts import SLACK, is_empty
from extender.core.axis import FloatN, FloatR, IntNR

ROUNDED = 1e-3  # a share this close to a whole amount is that amount: what is left over is rounding


def water_fill(total: FloatR, weight: FloatN, request: IntNR, limit: FloatR, guarantee: FloatR) -> FloatR:
    """(R,), (Q,), (Q, R), (Q, R), (Q, R) -> (Q, R) deserved.

    Each round gives every queue that is not satisfied its part of what remains, at most what it asks and may have, at least
    its guarantee. A queue whose part did not change is satisfied too. Ends when nothing remains, or nobody takes more.
    A queue without weight has its guarantee, and no more."""
    deserved = np.zeros(request.shape)
    remaining = total.astype(np.float64)
    hungry = np.ones(len(weight), dtype=bool)
    most = np.minimum(request, limit)
    while weight[hungry].any():
        before = deserved[hungry]
        part = remaining * (weight[hungry] / weight[hungry].sum())[:, None]
        now = np.maximum(np.minimum(before + part, most[hungry]), guarantee[hungry])
        deserved[hungry] = now
        grown, shrunk = np.maximum(now - before, 0).sum(axis=0), np.maximum(before - now, 0).sum(axis=0)
        served = (request[hungry] - now < SLACK).all(axis=1) | (now == before).all(axis=1)
        hungry[np.flatnonzero(hungry)[served]] = False
        left = np.maximum(remaining + shrunk - grown, 0)
        if bool(is_empty(left)) or (left == remaining).all():
            break
        remaining = left
    whole = np.round(deserved)
    return np.where(np.abs(deserved - whole) < ROUNDED, whole, deserved)
