"""Claims that have their volume > the nodes that cannot use it: by the volume's node affinity, and by its zone and region.

Source: kube-scheduler v1.36.1, volumebinding/binder.go, checkBoundClaims; volumezone/volume_zone.go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from extender.api import labels as names
from extender.api.volume import PersistentVolume, PersistentVolumeClaim
from extender.core.axis import BoolN
from extender.core.snapshot import Nodes
from extender.core.volumes.stock import Stock

NOT_HERE = "node(s) didn't match PersistentVolume's node affinity"
NO_SUCH_VOLUME = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
OTHER_ZONE = "node(s) had no available volume zone"
_BETA = {names.ZONE_BETA: names.ZONE, names.REGION_BETA: names.REGION}
_TOPOLOGY = (*_BETA, *_BETA.values())
_MANY_ZONES = "__"  # between the zones of a volume that is in several


def out_of_reach(claims: Sequence[PersistentVolumeClaim], stock: Stock, size: int) -> tuple[BoolN, BoolN]:
    """(N,) nodes that the affinity of a volume keeps off, and those that fail since a volume is not there: the first claim
    with which something is wrong decides."""
    kept_off, lost = np.zeros(size, dtype=bool), np.zeros(size, dtype=bool)
    for claim in claims:
        volume = stock.volume(claim.spec.volume_name)
        if volume is None:
            lost |= ~kept_off
            break
        elsewhere = np.ones(size, dtype=bool)
        elsewhere[stock.reach(volume.reach)] = False
        kept_off |= elsewhere
    return kept_off, lost


def in_other_zones(claims: Sequence[PersistentVolumeClaim], stock: Stock, nodes: Nodes) -> BoolN | None:
    """(N,) nodes in another zone or region than a volume; those with neither label pass. None: no volume says where it is."""
    volumes = (stock.volume(claim.spec.volume_name) for claim in claims)
    wanted = [place for volume in volumes if volume is not None for place in _places(volume)]
    if not wanted:
        return None
    size = len(nodes)
    placed, elsewhere = np.zeros(size, dtype=bool), np.zeros(size, dtype=bool)
    for key in _TOPOLOGY:
        placed |= nodes.labels.column(key, size) != 0
    for key, zones in wanted:
        inside = _has_one_of(key, zones, nodes)
        if key in _BETA:  # a node without the old label is judged by the new one
            unlabelled = nodes.labels.column(key, size) == 0
            inside |= unlabelled & _has_one_of(_BETA[key], zones, nodes)
        elsewhere |= ~inside
    return placed & elsewhere


def _places(volume: PersistentVolume) -> Iterator[tuple[str, list[str]]]:
    for key in _TOPOLOGY:
        value = volume.metadata.label(key)
        zones = [zone.strip() for zone in value.split(_MANY_ZONES)] if value is not None else []
        if zones and all(zones):
            yield key, zones


def _has_one_of(key: str, zones: Sequence[str], nodes: Nodes) -> BoolN:
    column = nodes.labels.column(key, len(nodes))
    return np.isin(column, [nodes.labels.code(key, zone) for zone in zones])
