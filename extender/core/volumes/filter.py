"""VolumeFilter: volumes in one session: which nodes are refused, which volume is promised to whom, what a binding writes.

A claim that waits for its pod is promised a volume, or a node for which one is to be made, when the first task that mounts it
takes a node; it is taken back with the last. Until then other claims do not get the volume, and other tasks that mount the
claim are pinned to where it can be used.

Source: kube-scheduler v1.36.1, volumebinding/binder.go."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import numpy as np

from extender.api import labels as names
from extender.api import meta
from extender.api.meta import Json, Key
from extender.api.operations import ClaimsBound, Patch
from extender.api.pod import PodSpec
from extender.api.volume import PersistentVolume, PersistentVolumeClaim
from extender.core.axis import BoolN, IntN
from extender.core.kube.neighbours import DomainCounts, Neighbours
from extender.core.plugin import Change, TaskClass
from extender.core.snapshot import Snapshot
from extender.core.volumes import attached, bound, matching, restrictions
from extender.core.volumes.attached import Attached, VolumeId
from extender.core.volumes.matching import Places, places
from extender.core.volumes.needed import ALL, BINDING, LIMITS, RESTRICTIONS, ZONE, Needed, Problem, needed
from extender.core.volumes.stock import Stock

_NOTHING = Needed()


class Objection(NamedTuple):
    """Nodes (N,) or (K,) that a plugin of kube-scheduler refuses. `unresolvable`: no eviction from the node cures it."""

    plugin: str
    reason: str
    mask: BoolN
    unresolvable: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class _Gift:
    """A volume, or the name of the node for which one is to be made."""

    claim: PersistentVolumeClaim
    given: PersistentVolume | str


@dataclass(slots=True, eq=False)
class _Class:
    """What was worked out for one class of tasks."""

    waiting: tuple[PersistentVolumeClaim, ...]
    users: DomainCounts | None
    rivals: DomainCounts | None
    places: Places | None = None
    version: int = -1  # of the stock, when `places` was worked out
    limited: dict[VolumeId, bool] | None = None  # of its volumes those that some node has a limit for


class VolumeFilter:
    """`plugins`: those of kube-scheduler that are switched on."""

    def __init__(self, snapshot: Snapshot, neighbours: Neighbours, plugins: frozenset[str] = ALL) -> None:
        self._snapshot, self._neighbours, self._plugins = snapshot, neighbours, plugins
        self._stock = Stock(snapshot)
        self._attached: Attached | None = None
        self._needed: dict[int, Needed] = {}
        self._classes: dict[int, _Class] = {}
        self._gifts: dict[Key, _Gift] = {}
        self._users: dict[Key, set[int]] = defaultdict(set)  # tasks that took their nodes in this session
        self._written: set[Key] = set()  # claims for which this session writes already

    def concerns(self, spec: PodSpec) -> bool:
        return spec.volumes is not None and any(v.claimed or v.disk is not None for v in spec.volumes) and bool(self._plugins)

    def _of(self, task: int) -> Needed:
        known = self._needed.get(task)
        if known is None:
            pod = self._snapshot.tasks.pod[task]
            known = self._needed[task] = needed(pod, self._stock, self._plugins) if pod is not None else _NOTHING
        return known

    def _spec(self, task: int) -> PodSpec:
        shape = self._snapshot.shapes[self._snapshot.tasks.shape[task]]
        spec: PodSpec = shape.spec if shape is not None else PodSpec()
        return spec

    def _class(self, cls: TaskClass) -> _Class:
        known = self._classes.get(cls.id)
        if known is None:
            found, restricted = self._of(cls.task), RESTRICTIONS in self._plugins
            known = self._classes[cls.id] = _Class(
                tuple(self._like(claim, found) for claim in found.waiting),
                restrictions.users(found.exclusive, self._neighbours) if restricted else None,
                restrictions.rivals(cls.spec, self._neighbours) if restricted else None,
            )
        return known

    # --- who is alike -----------------------------------------------------------------------------------------------------

    def distinguish(self, task: int) -> Hashable:
        """Tasks with claims of their own are alike while these ask the same and nothing is given for them."""
        spec = self._spec(task)
        if spec.volumes is None or not any(volume.ephemeral is not None for volume in spec.volumes):
            return None
        found = self._of(task)
        return found.problem or tuple(self._code(claim) for claim in (*found.bound, *found.waiting))

    def _code(self, claim: PersistentVolumeClaim) -> Hashable:
        return msgspec.json.encode(claim.spec) if self._is_like_others(claim) else claim.metadata.key

    def _is_like_others(self, claim: PersistentVolumeClaim) -> bool:
        return not (claim.bound or self._stock.node_of(claim) or self._stock.meant_for(claim))

    def _like(self, claim: PersistentVolumeClaim, of: Needed) -> PersistentVolumeClaim:
        """The claim as it stands for those of all tasks alike: without a name, so that what one of them got counts for none."""
        if claim.metadata.key not in of.own or not self._is_like_others(claim):
            return claim
        return msgspec.structs.replace(claim, metadata=msgspec.structs.replace(claim.metadata, name="", uid=""))

    # --- which nodes ------------------------------------------------------------------------------------------------------

    def problem(self, cls: TaskClass) -> Problem | None:
        """Why no node at all will do."""
        return self._of(cls.task).problem if self.concerns(cls.spec) else None

    def lasting(self, cls: TaskClass) -> list[Objection]:
        """(N,) what stands for the whole session: where the volumes that claims have can be used."""
        if not self.concerns(cls.spec):
            return []
        found, nodes = self._of(cls.task), self._snapshot.nodes
        objections = []
        if BINDING in self._plugins and found.bound:
            kept_off, lost = bound.out_of_reach(found.bound, self._stock, len(nodes))
            objections += [Objection(BINDING, bound.NOT_HERE, kept_off), Objection(BINDING, bound.NO_SUCH_VOLUME, lost)]
        if ZONE in self._plugins and found.zoned:
            elsewhere = bound.in_other_zones(found.zoned, self._stock, nodes)
            objections += [Objection(ZONE, bound.OTHER_ZONE, elsewhere)] if elsewhere is not None else []
        return [each for each in objections if each.mask.any()]

    def changes(self, cls: TaskClass) -> bool:
        """Does `passing` concern the class?"""
        if not self.concerns(cls.spec):
            return False
        known = self._class(cls)
        return bool(known.waiting or known.users or known.rivals)

    def passing(self, cls: TaskClass) -> Iterator[Objection]:
        """(N,) what changes with each placement: volumes that are left, claims and disks that somebody uses."""
        known = self._class(cls)
        disk = known.rivals.counts[1:] > 0 if known.rivals is not None else None
        if disk is not None:
            yield Objection(RESTRICTIONS, restrictions.DISK_TAKEN, disk, unresolvable=False)
        if known.users is not None and known.users.counts[1:].any():
            others = ~disk if disk is not None else np.ones(len(self._snapshot.nodes), dtype=bool)
            yield Objection(RESTRICTIONS, restrictions.IN_USE, others, unresolvable=False)
        elif known.waiting:  # where its user got the claim's volume is of no account while it has it
            found = self._places(known)
            yield Objection(BINDING, matching.NO_VOLUME, found.without)
            yield Objection(BINDING, matching.NO_ROOM, found.crowded)

    def _places(self, known: _Class) -> Places:
        if known.places is None or known.version != self._stock.version:
            known.places = places(known.waiting, self._stock, self._snapshot.nodes)
            known.version = self._stock.version
        return known.places

    def crowded(self, cls: TaskClass, rows: IntN, extra: IntN) -> Objection | None:
        """(K,) rows that cannot have the class's volumes attached as well; `extra`: tasks alike that are assumed there."""
        if LIMITS not in self._plugins or not self.concerns(cls.spec) or not self._snapshot.facts[meta.CSI_NODE]:
            return None
        if self._attached is None:
            self._attached = Attached(self._neighbours, self._stock)
        known = self._class(cls)
        if known.limited is None:
            known.limited = self._attached.limited(attached.volumes_of(cls.pod, self._stock))
        if not known.limited:
            return None
        mask = self._attached.refused(known.limited, rows, extra)
        return Objection(LIMITS, attached.TOO_MANY, mask, unresolvable=False)

    # --- giving and taking back -------------------------------------------------------------------------------------------

    def take(self, change: Change) -> None:
        """Tasks took their nodes: their claims are promised volumes. One that had its node before is not asked."""
        if self.concerns(self._spec(change.tasks[0])):
            for task, row in zip(change.tasks, change.nodes, strict=True):
                if self._snapshot.tasks.node[task] < 0:
                    self._give(task, row)

    def give_back(self, change: Change) -> None:
        if self.concerns(self._spec(change.tasks[0])):
            for task in change.tasks:
                for claim in self._of(task).waiting:
                    self._leave(claim, task)

    def _give(self, task: int, row: int) -> None:
        claims, node = self._of(task).waiting, self._snapshot.nodes.name[row]
        open_ = [claim for claim in claims if claim.metadata.key not in self._gifts]
        found = places(open_, self._stock, self._snapshot.nodes, only=row) if open_ else None
        if found is not None and (found.without[row] or found.crowded[row]):
            return  # whoever placed it did not ask whether it could have its volumes
        for choice in found.choices if found is not None else ():
            volume = choice.on(row)
            gift = self._gifts[choice.claim.metadata.key] = _Gift(choice.claim, node if volume is None else volume)
            self._stock.promise(gift.claim, gift.given)
        for claim in claims:
            self._users[claim.metadata.key].add(task)

    def _leave(self, claim: PersistentVolumeClaim, task: int) -> None:
        key = claim.metadata.key
        self._users[key].discard(task)
        if not self._users[key] and key in self._gifts:
            gift = self._gifts.pop(key)
            self._stock.take_back(gift.claim, gift.given)

    # --- what is written --------------------------------------------------------------------------------------------------

    def before_bind(self, task: int, patience: float) -> list[Patch | ClaimsBound]:
        """Whose the task's volumes are, or where they are to be made; then somebody else has to bind the claims."""
        if not self.concerns(self._spec(task)):
            return []
        waiting = [claim for claim in self._of(task).waiting if task in self._users[claim.metadata.key]]
        if not waiting:
            return []
        fresh = [claim for claim in waiting if claim.metadata.key not in self._written]
        self._written.update(claim.metadata.key for claim in fresh)
        keys = tuple(claim.metadata.key for claim in waiting)
        return [*_writes(self._gifts[claim.metadata.key] for claim in fresh), ClaimsBound(keys, patience)]


def _writes(gifts: Iterable[_Gift]) -> Iterator[Patch]:
    """Each holds only if nobody else wrote the object meanwhile."""
    for gift in gifts:
        claim = gift.claim
        if isinstance(gift.given, str):
            if claim.selected_node != gift.given:
                note: Json = {"metadata": {"annotations": {names.SELECTED_NODE: gift.given}}}
                yield Patch(meta.PVC, claim.metadata.key, note, claim.metadata.uid, claim.metadata.resource_version)
            continue
        volume, whose = gift.given, gift.given.spec.claim_ref
        if whose is None or whose.uid != claim.metadata.uid:
            reference = {"apiVersion": meta.PVC.api_version, "kind": meta.PVC.name, "namespace": claim.metadata.namespace,
                         "name": claim.metadata.name, "uid": claim.metadata.uid}  # fmt: skip
            patch: Json = {"spec": {"claimRef": reference}}
            if whose is None:
                patch["metadata"] = {"annotations": {names.BOUND_BY_CONTROLLER: "yes"}}
            yield Patch(meta.PV, volume.metadata.key, patch, volume.metadata.uid, volume.metadata.resource_version)
