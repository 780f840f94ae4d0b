"""binpack -- best fit: prefer the node that this task would leave fullest.

    score[n] = binpack.weight * 100 * sum_r w[r] * (used[n,r] + request[r]) / allocatable[n,r] / sum_r w[r]

over requested resources r that have a weight; 0 where one of them does not fit. Pipelined tasks do not count as used.
Source: volcano ed72c7c, plugins/binpack, BinPackingScore."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from extender.core.axis import FloatN, FloatR, IntNR, IntR
from extender.core.plugin import Arguments, At, Plugin, TaskClass
from extender.core.session import Session


@dataclass(frozen=True, slots=True)
class BinpackArgs:
    weight: int = 1
    resources: Mapping[str, int] = field(default_factory=lambda: {"cpu": 1, "memory": 1})


class Binpack(Plugin[BinpackArgs]):
    name = "binpack"

    @classmethod
    def parse(cls, arguments: Arguments) -> BinpackArgs:
        """binpack.weight, .cpu, .memory; binpack.resources: "a, b" names more, each with a weight binpack.resources.<name>."""
        weights = {name: _weight(arguments, f"binpack.{name}") for name in ("cpu", "memory")}
        for name in (part.strip() for part in arguments.text("binpack.resources", "").split(",")):
            if name:
                weights[name] = _weight(arguments, f"binpack.resources.{name}")
        return BinpackArgs(arguments.integer("binpack.weight", 1), weights)

    def open(self, ssn: Session) -> None:
        self.weights = ssn.axis.weights(self.args.resources)

    def node_order(self, ssn: Session, cls: TaskClass, at: At) -> FloatN | None:
        del ssn
        if self.args.weight == 0:
            return None
        return self.args.weight * binpack_score(cls.request, at.used, at.allocatable, self.weights)


def _weight(arguments: Arguments, key: str) -> int:
    weight = arguments.integer(key, 1)
    if weight < 0:
        arguments.wrong(key, f"must not be negative, not {weight}")
    return weight


def binpack_score(request: IntR, used: IntNR, allocatable: IntNR, weights: FloatR) -> FloatN:
    """(R,), (N, R), (N, R), (R,) -> (N,) in [0, 100]. Each column of R has its own unit (core/axis.py)."""
    fullness = np.zeros(len(used))
    fits = np.ones(len(used), dtype=bool)
    asked = np.flatnonzero((request > 0) & (weights > 0))
    for column in asked:
        after, capacity = used[:, column] + request[column], allocatable[:, column]
        fits &= (after <= capacity) | (capacity == 0)
        fullness += weights[column] * np.divide(after, capacity, out=np.zeros(len(used)), where=capacity > 0)
    if not len(asked):
        return fullness
    return np.where(fits, 100 * fullness / weights[asked].sum(), 0.0)
