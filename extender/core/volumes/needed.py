"""A pod > the claims that it mounts, sorted by what has to be done about them, or what keeps it from every node.

Source: kube-scheduler v1.36.1, PreFilter of volumerestrictions, volumebinding and volumezone, in this order;
k8s.io/component-helpers v0.36.1 storage/ephemeral."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from extender.api.meta import Key
from extender.api.pod import Pod
from extender.api.volume import LOST, READ_WRITE_ONCE_POD, PersistentVolumeClaim
from extender.core.volumes.stock import Stock

RESTRICTIONS, LIMITS, BINDING, ZONE = "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone"
ALL = frozenset({RESTRICTIONS, LIMITS, BINDING, ZONE})
UNBOUND = "pod has unbound immediate PersistentVolumeClaims"


class Mount(NamedTuple):
    """`own`: an ephemeral volume, whose claim is made for this pod."""

    key: Key
    own: bool


class Problem(NamedTuple):
    """Why no node at all will do, by which plugin. `detail`: what kube-scheduler leaves to be found out."""

    plugin: str
    text: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.text} ({self.detail})" if self.detail else self.text


@dataclass(frozen=True, slots=True, eq=False)
class Needed:
    """Each claim once. `bound` have their volume; `waiting` get it when the pod is placed."""

    problem: Problem | None = None
    bound: tuple[PersistentVolumeClaim, ...] = ()
    waiting: tuple[PersistentVolumeClaim, ...] = ()
    exclusive: frozenset[Key] = frozenset()  # claims that one pod alone may use
    zoned: tuple[PersistentVolumeClaim, ...] = ()  # those with a volume whose zone is looked at
    own: frozenset[Key] = frozenset()  # claims that were made for this pod


def mounts(pod: Pod) -> list[Mount]:
    """In the pod's order, each claim once."""
    namespace, found = pod.metadata.namespace, {}
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            key = Key(namespace, volume.persistent_volume_claim.claim_name)
            found[key] = Mount(key, False)
        elif volume.ephemeral is not None:
            key = Key(namespace, f"{pod.metadata.name}-{volume.name}")
            found[key] = Mount(key, True)
    return list(found.values())


def needed(pod: Pod, stock: Stock, plugins: frozenset[str]) -> Needed:
    """`plugins`: those that are switched on."""
    mounted = mounts(pod)
    problem = next((each for each in _problems(pod, mounted, stock) if each.plugin in plugins), None)
    if problem is not None:
        return Needed(problem)
    claims = {mount.key: claim for mount in mounted if (claim := stock.claim(mount.key)) is not None}
    bound = tuple(claim for claim in claims.values() if claim.bound)
    named = frozenset(mount.key for mount in mounted if not mount.own)
    return Needed(
        bound=bound,
        waiting=tuple(claim for claim in claims.values() if BINDING in plugins and _waits(claim, stock)),
        exclusive=frozenset(key for key in named if _is_exclusive(claims.get(key))),
        zoned=tuple(claim for claim in claims.values() if claim.spec.volume_name and claim.metadata.key in named),
        own=frozenset(claims) - named,
    )


def is_of(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    """Was the claim made for this pod?"""
    owner = claim.metadata.controller
    return owner is not None and owner.uid == pod.metadata.uid


def _is_exclusive(claim: PersistentVolumeClaim | None) -> bool:
    return claim is not None and READ_WRITE_ONCE_POD in (claim.spec.access_modes or ())


def _waits(claim: PersistentVolumeClaim, stock: Stock) -> bool:
    storage = stock.storage_class(claim.storage_class)
    return not claim.bound and not claim.spec.volume_name and storage is not None and storage.waits


# --- what is wrong --------------------------------------------------------------------------------------------------------


def _problems(pod: Pod, mounted: list[Mount], stock: Stock) -> Iterator[Problem]:
    named = [mount.key for mount in mounted if not mount.own]
    for key in named:
        if stock.claim(key) is None:
            yield Problem(RESTRICTIONS, _not_found("persistentvolumeclaim", key.name))
    for mount in mounted:
        yield from _binding_problems(pod, mount, stock)
    claims = [claim for mount in mounted if (claim := stock.claim(mount.key)) is not None]
    unbound = [claim for claim in claims if not claim.bound and not _waits(claim, stock)]
    if unbound:
        yield Problem(BINDING, UNBOUND, "; ".join(_why_unbound(claim, stock) for claim in unbound))
    for key in named:
        text = _zone_problem(key, stock)
        if text:
            yield Problem(ZONE, text)


def _binding_problems(pod: Pod, mount: Mount, stock: Stock) -> Iterator[Problem]:
    claim, name = stock.claim(mount.key), mount.key.name
    if claim is None:
        waits = f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        yield Problem(BINDING, waits if mount.own else _not_found("persistentvolumeclaim", name))
    elif claim.status.phase == LOST:
        volume = claim.spec.volume_name
        yield Problem(BINDING, f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"')
    elif claim.metadata.deletion_timestamp:
        yield Problem(BINDING, f'persistentvolumeclaim "{name}" is being deleted')
    elif mount.own and not is_of(claim, pod):
        yield Problem(BINDING, f"PVC {mount.key} was not created for pod {pod.metadata.key} (pod is not owner)")


def _why_unbound(claim: PersistentVolumeClaim, stock: Stock) -> str:
    name, storage = claim.metadata.name, claim.storage_class
    if claim.spec.volume_name:
        return f"{name} is not bound to its volume {claim.spec.volume_name} yet"
    if not storage:
        return f"{name} has no volume, and names no StorageClass that could make one"
    if stock.storage_class(storage) is None:
        return f"{name} has no volume, and there is no StorageClass {storage}"
    return f"{name} has no volume of StorageClass {storage} yet"


def _zone_problem(key: Key, stock: Stock) -> str:
    claim = stock.claim(key)
    if claim is None:
        return _not_found("persistentvolumeclaim", key.name)
    if claim.spec.volume_name:
        return "" if stock.volume(claim.spec.volume_name) else _not_found("persistentvolume", claim.spec.volume_name)
    if not claim.storage_class:
        return "PersistentVolumeClaim had no pv name and storageClass name"
    storage = stock.storage_class(claim.storage_class)
    if storage is None:
        return _not_found("storageclass.storage.k8s.io", claim.storage_class)
    return "" if storage.waits else "PersistentVolume had no name"


def _not_found(kind: str, name: str) -> str:
    return f'{kind} "{name}" not found'
