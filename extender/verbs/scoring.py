"""What the last filter of a pod found its nodes to be worth, kept for the prioritize that follows it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from extender.api.meta import Time
from extender.core.axis import FloatN, Rows
from extender.verbs.wire import MAX_SCORE

_KEPT = 64  # pods
_FRESH = 10.0  # seconds


class Evaluations:
    """The newest few, by pod uid."""

    def __init__(self) -> None:
        self._scores: OrderedDict[str, tuple[Time, FloatN]] = OrderedDict()

    def note(self, uid: str, scores: FloatN, now: Time) -> None:
        self._scores[uid] = (now, scores)
        self._scores.move_to_end(uid)
        while len(self._scores) > _KEPT:
            self._scores.popitem(last=False)

    def ranks(self, uid: str, names: Sequence[str], rows: Rows, best: str, now: Time) -> list[int]:
        """`best` has 10; the others 0 to 9 by their rank among equals and betters."""
        at, scores = self._scores.get(uid, (0.0, np.zeros(0)))
        if now - at > _FRESH or not len(scores):
            return [MAX_SCORE if name == best else 0 for name in names]
        known = (rows >= 0) & (rows < len(scores))
        worth = np.where(known, scores[np.where(known, rows, 0)], -np.inf)
        levels = np.unique(worth, return_inverse=True)[1]
        ranks = levels * (MAX_SCORE - 1) // max(int(levels.max(initial=0)), 1)
        return [MAX_SCORE if name == best else int(rank) for name, rank in zip(names, ranks, strict=True)]
