"""NodeResourcesFit and NodeResourcesBalancedAllocation: points by how full the pod would leave a place.

Amounts that are left with a zero allocatable do not take part. Integer division truncates.
Source: k8s.io/kubernetes v1.36.1, noderesources/{least_allocated,most_allocated,balanced_allocation,resource_allocation}.go."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from extender.api.pod_requests import effective_requests
from extender.core.axis import FloatN, IntN, IntNR
from extender.core.kube.normalise import MAX
from extender.core.plugin import TaskClass
from extender.core.shapes import nonzero_requests

FloatNR = NDArray[np.float64]
BoolNR = NDArray[np.bool_]


def scored_request(cls: TaskClass) -> IntN:
    """(2,) cpu and memory that the two functions below add for the pod, with defaults for containers that ask none.

    NodeResourcesFit passes over requests of the pod itself here, though its filter and the nodes' sums do count them."""
    if not cls.spec.pod_level:
        return cls.nonzero
    without = msgspec.structs.replace(cls.spec, resources=None)
    return nonzero_requests(without, effective_requests(without))


def least_allocated(requested: IntNR, allocatable: IntNR) -> IntN:
    """(K, R), (K, R) -> (K,): mean over resources of the share that stays free; 0 for one that does not fit."""
    return _mean_share(np.maximum(allocatable - requested, 0), allocatable)


def most_allocated(requested: IntNR, allocatable: IntNR) -> IntN:
    """(K, R), (K, R) -> (K,): mean over resources of the share in use, at most all of it."""
    return _mean_share(np.minimum(requested, allocatable), allocatable)


def _mean_share(part: IntNR, whole: IntNR) -> IntN:
    there = whole > 0
    number = part.shape[1]
    shares = [_share(part[:, column], whole[:, column]) for column in range(number)]
    total: IntN = sum(shares[1:], start=shares[0])
    counted: IntN = there.sum(axis=1)
    return np.floor_divide(total, number if there.all() else np.maximum(counted, 1))


def _share(part: IntN, whole: IntN) -> IntN:
    """(K,), (K,) -> (K,): 100 * part div whole, 0 where there is no whole. Floats are fast, and at most one off."""
    hundredfold, divisor = MAX * part, np.maximum(whole, 1)
    share = (hundredfold / divisor).astype(np.int64)
    rest = hundredfold - share * divisor
    share += rest >= divisor
    share -= rest < 0
    return share


def balanced_allocation(before: IntNR, request: IntN, allocatable: IntNR) -> IntN:
    """(K, R), (R,), (K, R) -> (K,): 75 where the pod leaves the balance of the resources as it was, more where it mends it."""
    there = allocatable != 0
    divisor = np.maximum(allocatable, 1).astype(np.float64)
    with_pod = _balance((before + request) / divisor, there)
    return MAX // 2 + (MAX // 2 + with_pod - _balance(before / divisor, there)) // 2


def _balance(fraction: FloatNR, there: BoolNR) -> IntN:
    """(K, R), (K, R) -> (K,): 100 * (1 - standard deviation of the fractions in use), truncated."""
    fraction = np.minimum(fraction, 1.0)
    if fraction.shape[1] == 2:
        spread = np.abs(fraction[:, 0] - fraction[:, 1]) / 2
        if not there.all():
            spread[~there.all(axis=1)] = 0.0
    else:
        spread = _deviation(fraction, there)
    points: IntN = ((1 - spread) * float(MAX)).astype(np.int64)
    return points


def _deviation(fraction: FloatNR, there: BoolNR) -> FloatN:
    """For any number of resources; sums go from left to right, so that they round as in the source."""
    size = there.sum(axis=1)
    total, squares = np.zeros(len(fraction)), np.zeros(len(fraction))
    for column in range(fraction.shape[1]):
        total += np.where(there[:, column], fraction[:, column], 0.0)
    mean = total / np.maximum(size, 1)
    for column in range(fraction.shape[1]):
        squares += np.where(there[:, column], (fraction[:, column] - mean) * (fraction[:, column] - mean), 0.0)
    highest = np.where(there, fraction, -np.inf).max(axis=1, initial=0.0)
    lowest = np.where(there, fraction, np.inf).min(axis=1, initial=1.0)
    return np.where(size > 2, np.sqrt(squares / np.maximum(size, 1)), np.where(size == 2, np.abs(highest - lowest) / 2, 0.0))
