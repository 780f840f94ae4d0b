"""What one pod at a time may use: claims of the mode ReadWriteOncePod, and disks that pods name themselves.

Source: kube-scheduler v1.36.1, volumerestrictions/volume_restrictions.go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from extender.api.meta import Key
from extender.api.pod import AmazonDisk, GoogleDisk, IscsiDisk, PodSpec, RadosDisk, Volume
from extender.core.kube.neighbours import DomainCounts, Neighbours, Weights

IN_USE = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
DISK_TAKEN = "node(s) had no available disk"


def users(claims: Iterable[Key], neighbours: Neighbours) -> DomainCounts | None:
    """Pods on nodes that mount one of the claims, all counted in domain 1. None: there are no claims."""
    wanted = frozenset(claims)
    if not wanted:
        return None
    tasks, shapes = neighbours.tasks, neighbours.snapshot.shapes
    mounting = np.zeros(len(tasks), dtype=bool)
    for namespace in {key.namespace for key in wanted}:
        names = {key.name for key in wanted if key.namespace == namespace}
        alike = [number for number, shape in enumerate(shapes) if shape is not None and names & _claims(shape.spec)]
        inside = tasks.namespace == tasks.namespaces.get(namespace, -1)
        mounting |= inside & np.isin(tasks.shape, alike)
    everywhere = np.ones(len(neighbours.nodes), dtype=np.int32)
    return DomainCounts(neighbours, everywhere, [Weights(mounting, np.array([0, 1]))])


def _claims(spec: PodSpec) -> set[str]:
    mounted = (volume.persistent_volume_claim for volume in spec.volumes or ())
    return {claim.claim_name for claim in mounted if claim is not None}


def rivals(wanted: PodSpec, neighbours: Neighbours) -> DomainCounts | None:
    """Per node the pods that hold a disk which the pod wants. None: it wants none."""
    disks = [volume for volume in wanted.volumes or () if volume.disk is not None]
    if not disks:
        return None
    shapes = neighbours.snapshot.shapes
    table = np.zeros(len(shapes), dtype=np.int64)
    for number, shape in enumerate(shapes):
        held = [volume for volume in shape.spec.volumes or () if volume.disk is not None] if shape is not None else []
        table[number] = _any_conflict(disks, held)
    return DomainCounts(neighbours, neighbours.each_node(), [Weights(neighbours.tasks.shape, table)])


def _any_conflict(wanted: Sequence[Volume], held: Sequence[Volume]) -> bool:
    return any(_conflict(one.disk, other.disk) for one in wanted for other in held)


def _conflict(one: object, other: object) -> bool:
    """Is it the same disk, and not only read by both?"""
    match one, other:
        case GoogleDisk(), GoogleDisk():
            return one.pd_name == other.pd_name and not (one.read_only and other.read_only)
        case AmazonDisk(), AmazonDisk():
            return one.volume_id == other.volume_id
        case IscsiDisk(), IscsiDisk():
            return one.iqn == other.iqn and not (one.read_only and other.read_only)
        case RadosDisk(), RadosDisk():
            same = one.pool == other.pool and one.image == other.image and bool({*one.monitors} & {*other.monitors})
            return same and not (one.read_only and other.read_only)
    return False
