"""Comparing amounts: rows (R,) of resources where a missing name is zero, and Amounts where it means something else.

The reference compares by name and lets each caller say what a missing name stands for; here a limit without a name is
infinite from the start (`ceiling`), so that most comparisons are plain ones. Its tolerance of 0.1 is `<=` on whole amounts;
where fractions come in (fair shares) SLACK stands for it. Source: volcano ed72c7c, pkg/scheduler/api/resource_info.go."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from extender.core.axis import CPU, MEMORY, PODS, Amounts, BoolN, BoolR, FloatN, FloatR, IntR

Row = IntR | FloatR  # (R,), or rows of it
SLACK = 0.1


def ceiling(listed: Amounts) -> FloatR:
    """(..., R) a capability as a limit: what it does not name is unlimited, and so are cpu and memory at zero or below."""
    limit = np.where(listed.named, listed.values, np.inf)
    for column in (CPU, MEMORY):
        limit[..., column] = np.where(limit[..., column] <= 0, np.inf, limit[..., column])
    return limit


def asked_of(request: Row) -> BoolR:
    """(R,) the resources that a request is about. Pods are counted by nodes, not by queues."""
    asked: BoolR = request > 0
    asked[PODS] = False
    return asked


def beyond(amount: Row, limit: Row, request: Row) -> NDArray[np.intp]:
    """Columns of the request in which the amount is above the limit, without tolerance (LessEqualWithDimension...)."""
    return np.flatnonzero(asked_of(request) & (amount > limit))


def room(taken: Row, limit: Row, request: IntR, count: int) -> int:
    """How many of `count` equal requests fit between taken and limit, (R,) or several rows of which each must have room."""
    asked = asked_of(request)
    if not asked.any():
        return count
    fit = np.floor(((limit - taken)[..., asked] / request[asked]).min())
    return int(min(max(fit, 0), count))


def all_within(amount: Row, limit: Row) -> bool:
    """In every resource, pods too (LessEqual, a missing name is zero)."""
    return bool((amount - limit < SLACK).all())


def partly_within(amount: Row, limit: Row, request: Row) -> bool:
    """In some resource of the request; one where both are zero says nothing (LessEqualPartlyWithDimensionZeroFiltered)."""
    counts = asked_of(request) & ~((amount < SLACK) & (limit < SLACK))
    return bool((counts & (amount - limit < SLACK)).any())


def defined(listed: Amounts) -> BoolR:
    """(..., R) what a list has an opinion on: cpu and memory above zero, anything else that it names, be it zero."""
    known = listed.named.copy()
    for column in (CPU, MEMORY):
        known[..., column] = listed.values[..., column] >= SLACK
    return known


def partly_above(amount: Row, limit: Amounts, request: Row) -> bool:
    """In some resource of the request that the limit defines (GreaterPartlyWithRelevantDimensions)."""
    return bool((asked_of(request) & defined(limit) & (amount > limit.values)).any())


def overlap(a: Row, b: Row, *, pods: bool) -> bool:
    """Both have some of the same resource (Intersection); `pods` says whether those count as one."""
    both: BoolR = (a >= SLACK) & (b >= SLACK)
    if not pods:
        both[PODS] = False
    return bool(both.any())


def is_empty(amount: Row) -> BoolN:
    """(..., R) -> (...): nothing but pods (IsEmpty)."""
    counts = amount >= SLACK
    counts[..., PODS] = False
    return np.asarray(~counts.any(axis=-1))


def divisor(of: Row) -> FloatR:
    """(..., R) what shares are taken of: where there is nothing, nobody has a share."""
    by: FloatR = np.where(of >= SLACK, of, np.inf)
    return by


def largest_share(amount: Row, by: FloatR) -> FloatN:
    """(..., R), a divisor (..., R) -> (...): the dominant share."""
    shares: FloatN = (amount / by).max(axis=-1)
    return shares
