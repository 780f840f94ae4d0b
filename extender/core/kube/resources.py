"""NodeResourcesFit and NodeResourcesBalancedAllocation: points by how full the pod would leave a place.

Amounts that are left with a zero allocatable do not take part. Integer division truncates.
Source: k8s.io/kubernetes v1.36.1, noderesources/{least_allocated,most_allocated,balanced_allocation,resource_allocation}.go."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

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
    return nonzero_requests(msgspec.structs.replace(cls.spec, resources=None), {})


def least_allocated(requested: IntNR, allocatable: IntNR) -> IntN:
    """(K, R), (K, R) -> (K,): mean over resources of the share that stays free; 0 for one that does not fit."""
    free = np.maximum(allocatable - requested, 0)
    return _mean_share(free, allocatable)


def most_allocated(requested: IntNR, allocatable: IntNR) -> IntN:
    """(K, R), (K, R) -> (K,): mean over resources of the share in use, at most all of it."""
    return _mean_share(np.minimum(requested, allocatable), allocatable)


def _mean_share(part: IntNR, whole: IntNR) -> IntN:
    total: IntN = np.zeros(len(part), dtype=np.int64)
    counted: IntN = np.zeros(len(part), dtype=np.int64)
    for column in range(part.shape[1]):
        there = whole[:, column]
        total += np.where(there > 0, MAX * part[:, column] // np.maximum(there, 1), 0)
        counted += there > 0
    return total // np.maximum(counted, 1)


def balanced_allocation(before: IntNR, request: IntN, allocatable: IntNR) -> IntN:
    """(K, R), (R,), (K, R) -> (K,): 75 where the pod leaves the balance of the resources as it was, more where it mends it."""
    with_pod = _balance(before + request, allocatable)
    return MAX // 2 + (MAX // 2 + with_pod - _balance(before, allocatable)) // 2


def _balance(used: IntNR, allocatable: IntNR) -> IntN:
    """(K, R), (K, R) -> (K,): 100 * (1 - standard deviation of the fractions in use), truncated."""
    there = allocatable != 0
    fraction = np.minimum(used / np.where(there, allocatable, 1), 1.0)
    if fraction.shape[1] == 2:
        spread = np.abs(fraction[:, 0] - fraction[:, 1]) / 2
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
