"""How raw points become 0..100, relative to the nodes that are scored. Integers; division truncates, as in Go.

Source: k8s.io/kubernetes v1.36.1, plugins/helper/normalize_score.go, {podtopologyspread,interpodaffinity}/scoring.go."""

from __future__ import annotations

import numpy as np

from extender.core.axis import BoolN, IntN

MAX = 100


def by_maximum(raw: IntN, scored: BoolN, *, reverse: bool = False) -> IntN:
    """(N,), (N,) -> (N,): the highest becomes 100; `reverse`: 0. Rows that are not scored hold rubbish."""
    highest = int(raw[scored].max(initial=0))
    if highest == 0:
        return np.full(len(raw), MAX, dtype=np.int64) if reverse else raw
    points = MAX * raw // highest
    return MAX - points if reverse else points


def by_range(raw: IntN, scored: BoolN) -> IntN:
    """(N,), (N,) -> (N,): the lowest becomes 0, the highest 100; all equal: 0."""
    seen = raw[scored]
    lowest, highest = int(seen.min(initial=2**62)), int(seen.max(initial=-(2**62)))
    if highest <= lowest:
        return np.zeros(len(raw), dtype=np.int64)
    return (MAX * ((raw - lowest) / (highest - lowest))).astype(np.int64)


def fewer_is_better(raw: IntN, scored: BoolN, ignored: BoolN) -> IntN:
    """(N,) x3 -> (N,): 100 * (max + min - raw) / max over scored rows that are not ignored; ignored rows get 0."""
    seen = raw[scored & ~ignored]
    highest, lowest = int(seen.max(initial=0)), int(seen.min(initial=2**62))
    if highest == 0:
        points = np.full(len(raw), MAX, dtype=np.int64)
    else:
        points = MAX * (highest + lowest - raw) // highest
    points[ignored] = 0
    return points
