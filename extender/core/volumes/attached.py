"""Attached: the volumes of CSI drivers that pods hold on each node, or that are attached still, against what it can have.

A volume counts once on a node, however many pods there use it. Source: kube-scheduler v1.36.1, nodevolumelimits/csi.go, where
one that is attached and comes with a new pod counts twice."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from extender.api import meta
from extender.api.pod import Pod
from extender.api.volume import CsiNode, VolumeAttachment
from extender.core.axis import BoolN, IntN
from extender.core.kube.neighbours import Neighbours
from extender.core.volumes.needed import is_of, mounts
from extender.core.volumes.stock import Stock

TOO_MANY = "node(s) exceed max volume count"
_NO_LIMIT = np.iinfo(np.int64).max


class VolumeId(NamedTuple):
    driver: str
    handle: str


def volumes_of(pod: Pod, stock: Stock) -> dict[VolumeId, bool]:
    """Those of its claims, and whether the claim was made for the pod; a volume that is yet to be found or made goes by its
    claim, and by the provisioner of its class."""
    found: dict[VolumeId, bool] = {}
    for mount in mounts(pod):
        claim = stock.claim(mount.key)
        if claim is None or (mount.own and not is_of(claim, pod)):
            continue
        volume = stock.volume(claim.spec.volume_name) if claim.spec.volume_name else None
        if volume is not None:
            if volume.spec.csi is not None and volume.spec.csi.driver and volume.spec.csi.volume_handle:
                found[VolumeId(volume.spec.csi.driver, volume.spec.csi.volume_handle)] = mount.own
        elif claim.storage_class and (storage := stock.storage_class(claim.storage_class)) is not None and storage.provisioner:
            found[VolumeId(storage.provisioner, f"claim {mount.key}")] = mount.own
    return found


class Attached:
    """Counts begin with the snapshot and catch up with the session's moves when they are next asked for."""

    def __init__(self, neighbours: Neighbours, stock: Stock) -> None:
        self._neighbours, self._stock = neighbours, stock
        self._limits = _limits(neighbours)
        self._counts: dict[str, IntN] = {driver: np.zeros(len(neighbours.nodes), dtype=np.int64) for driver in self._limits}
        self._on: dict[VolumeId, Counter[int]] = defaultdict(Counter)  # volume -> node row -> pods, and whoever else holds it
        self._seen = 0
        self._started = False

    def limited(self, volumes: Mapping[VolumeId, bool]) -> dict[VolumeId, bool]:
        """Those of drivers that some node has a limit for."""
        return {volume: own for volume, own in volumes.items() if volume.driver in self._limits}

    def refused(self, volumes: Mapping[VolumeId, bool], rows: IntN, extra: IntN) -> BoolN:
        """(K,) node rows that cannot have these as well, with `extra` pods alike assumed there already: each has as many of
        its own, and shares the others, which are attached with the first of them."""
        self._catch_up()
        mask: BoolN = np.zeros(len(rows), dtype=bool)
        for driver in {volume.driver for volume in volumes}:
            more: IntN = np.zeros(len(rows), dtype=np.int64)
            for volume, own in volumes.items():
                if volume.driver == driver:
                    more += extra + 1 if own else (extra == 0) & ~self._has(volume)[rows]
            mask |= (more > 0) & (self._counts[driver][rows] + more > self._limits[driver][rows])
        return mask

    def _has(self, volume: VolumeId) -> BoolN:
        mask = np.zeros(len(self._neighbours.nodes), dtype=bool)
        mask[[row for row, pods in self._on[volume].items() if pods]] = True
        return mask

    # --- counting ---------------------------------------------------------------------------------------------------------

    def _catch_up(self) -> None:
        if not self._started:
            self._started = True
            shapes, tasks, here = self._neighbours.snapshot.shapes, self._neighbours.tasks, self._neighbours.here
            mounting = [
                i for i, shape in enumerate(shapes) if shape is not None and any(v.claimed for v in shape.spec.volumes or ())
            ]
            for task in here[np.isin(tasks.shape[here], mounting)].tolist():
                self._move(task, int(tasks.node[task]), +1)
            self._count_attachments()
        moves = self._neighbours.moves
        for i in range(self._seen, len(moves.tasks)):
            self._move(moves.tasks[i], moves.nodes[i], moves.signs[i])
        self._seen = len(moves.tasks)

    def _move(self, task: int, row: int, sign: int) -> None:
        pod = self._neighbours.tasks.pod[task]
        if pod is None or not pod.spec.volumes:
            return
        for volume in self.limited(volumes_of(pod, self._stock)):
            self._hold(volume, row, sign)

    def _hold(self, volume: VolumeId, row: int, sign: int) -> None:
        holders = self._on[volume]
        before = holders[row]
        holders[row] += sign
        self._counts[volume.driver][row] += (holders[row] > 0) - (before > 0)

    def _count_attachments(self) -> None:
        """Volumes are detached some time after the last pod that used them has gone."""
        nodes = self._neighbours.nodes.rows
        for each in self._neighbours.snapshot.facts[meta.VOLUME_ATTACHMENT].values():
            if isinstance(each, VolumeAttachment) and each.spec.attacher in self._limits and each.spec.node_name in nodes:
                volume = self._stock.volume(each.spec.source.persistent_volume_name or "")
                if volume is not None and volume.spec.csi is not None:
                    self._hold(VolumeId(each.spec.attacher, volume.spec.csi.volume_handle), nodes[each.spec.node_name], +1)


def _limits(neighbours: Neighbours) -> dict[str, IntN]:
    """Driver -> (N,) how many of its volumes each node can have."""
    nodes, found = neighbours.nodes, {}
    for key, on in neighbours.snapshot.facts[meta.CSI_NODE].items():
        row = nodes.rows.get(key.name)
        if row is None or not isinstance(on, CsiNode):
            continue
        for driver in on.spec.drivers or ():
            if driver.allocatable is not None and driver.allocatable.count is not None:
                if driver.name not in found:
                    found[driver.name] = np.full(len(nodes), _NO_LIMIT, dtype=np.int64)
                found[driver.name][row] = driver.allocatable.count
    return found
