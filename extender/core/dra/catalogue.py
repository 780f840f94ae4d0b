"""Catalogue: the pools that each node can reach, and what selectors say of their devices.

It follows from ResourceSlices and nodes alone, so it is kept from one session to the next for as long as these are the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from extender.api.device import ResourceSlice
from extender.api.node import Node
from extender.core.dra.matching import Matching
from extender.core.dra.pools import Pool, PoolId, Slices


class Catalogue:
    """Rows are those of the node table."""

    def __init__(self) -> None:
        self._slices: list[ResourceSlice] = []
        self._start_anew()

    def _start_anew(self) -> None:
        self._all = Slices(self._slices)
        self._pools: dict[int, tuple[Node, list[Pool]]] = {}
        self.matching = Matching()
        self.reach: dict[PoolId, set[int]] = defaultdict(set)  # rows of the nodes that were found to reach a pool

    def refresh(self, slices: Iterable[ResourceSlice]) -> Catalogue:
        """The catalogue of these slices."""
        listed = list(slices)
        if len(listed) != len(self._slices) or any(a is not b for a, b in zip(listed, self._slices, strict=True)):
            self._slices = listed
            self._start_anew()
        return self

    def pools(self, row: int, node: Node) -> list[Pool]:
        known = self._pools.get(row)
        if known is None or known[0] is not node:
            pools = self._all.pools(node)
            known = self._pools[row] = node, pools
            for pool in pools:
                self.reach[pool.id].add(row)
        return known[1]
