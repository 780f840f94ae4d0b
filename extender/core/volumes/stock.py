"""Stock: volumes, claims, classes and drivers as one session sees them, with what it has promised meanwhile."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property

import msgspec
import numpy as np

from extender.api import meta
from extender.api.meta import Key
from extender.api.selectors import NodeSelector, NodeSelectorTerm
from extender.api.volume import CsiDriver, CsiStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass
from extender.core.axis import BoolN, IntN
from extender.core.kube import node_affinity
from extender.core.snapshot import Snapshot


class Stock:
    """`version` counts what was promised and taken back: as long as it stands, so do all answers."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._facts, self._nodes = snapshot.facts, snapshot.nodes
        self._promised: dict[Key, PersistentVolume] = {}  # by claim
        self._taken: set[str] = set()  # names of these
        self._made_for: dict[Key, str] = {}  # claim -> node for which its volume is to be made
        self._choices: dict[bytes, Sequence[PersistentVolume]] = {}
        self._reach: dict[NodeSelector, IntN] = {}
        self.version = 0

    # --- what there is ----------------------------------------------------------------------------------------------------

    def claim(self, key: Key) -> PersistentVolumeClaim | None:
        found = self._facts[meta.PVC].get(key)
        return found if isinstance(found, PersistentVolumeClaim) else None

    def volume(self, name: str) -> PersistentVolume | None:
        found = self._facts[meta.PV].get(Key("", name))
        return found if isinstance(found, PersistentVolume) else None

    def storage_class(self, name: str) -> StorageClass | None:
        found = self._facts[meta.STORAGE_CLASS].get(Key("", name))
        return found if isinstance(found, StorageClass) else None

    @cached_property
    def _volumes(self) -> list[PersistentVolume]:
        """The smallest first; of equal ones the first by name."""
        found = (each for each in self._facts[meta.PV].values() if isinstance(each, PersistentVolume))
        return sorted(found, key=lambda each: (each.size, each.metadata.name))

    @cached_property
    def _nobodys(self) -> dict[str, list[PersistentVolume]]:
        """By class those that no claim has been given yet."""
        found: dict[str, list[PersistentVolume]] = defaultdict(list)
        for volume in self._volumes:
            if volume.spec.claim_ref is None:
                found[volume.storage_class].append(volume)
        return found

    @cached_property
    def _meant(self) -> dict[Key, list[PersistentVolume]]:
        """By claim those that say that they are the claim's."""
        found: dict[Key, list[PersistentVolume]] = defaultdict(list)
        for volume in self._volumes:
            if volume.spec.claim_ref is not None:
                found[volume.spec.claim_ref.key].append(volume)
        return found

    def meant_for(self, claim: PersistentVolumeClaim) -> PersistentVolume | None:
        """The volume that is the claim's whatever others there are: it says so, or was promised."""
        for volume in self._meant.get(claim.metadata.key, ()):
            if volume.is_for(claim) and volume.storage_class == claim.storage_class and claim.takes(volume):
                return volume
        return self._promised.get(claim.metadata.key)

    def choices(self, claim: PersistentVolumeClaim) -> Sequence[PersistentVolume]:
        """Volumes that would do and were nobody's when the session began; the smallest first, of equal ones the first by name."""
        asked = msgspec.json.encode(claim.spec) + claim.storage_class.encode()
        found = self._choices.get(asked)
        if found is None:
            there = self._nobodys.get(claim.storage_class, ())
            found = self._choices[asked] = [each for each in there if claim.takes(each) and claim.may_choose(each)]
        return found

    # --- what is promised -------------------------------------------------------------------------------------------------

    def is_free(self, volume: PersistentVolume) -> bool:
        return volume.metadata.name not in self._taken

    def node_of(self, claim: PersistentVolumeClaim) -> str:
        """Where the claim's volume is to be made, "" while that is open."""
        return self._made_for.get(claim.metadata.key) or claim.selected_node

    def promise(self, claim: PersistentVolumeClaim, given: PersistentVolume | str) -> None:
        """The volume, or one that is to be made for a node, is the claim's."""
        self.version += 1
        if isinstance(given, str):
            self._made_for[claim.metadata.key] = given
        else:
            self._promised[claim.metadata.key] = given
            self._taken.add(given.metadata.name)

    def take_back(self, claim: PersistentVolumeClaim, given: PersistentVolume | str) -> None:
        self.version += 1
        if isinstance(given, str):
            del self._made_for[claim.metadata.key]
        else:
            del self._promised[claim.metadata.key]
            self._taken.discard(given.metadata.name)

    # --- from where it can be used ------------------------------------------------------------------------------------------

    def reach(self, selector: NodeSelector | None) -> IntN:
        """Rows of the nodes that the selector of a volume or class matches; None: of all."""
        if selector is None:
            return self._everywhere
        rows = self._reach.get(selector)
        if rows is None:
            mask = np.zeros(len(self._nodes), dtype=bool)
            for term in selector.node_selector_terms:
                mask |= self._matches(term)
            rows = self._reach[selector] = np.flatnonzero(mask)
        return rows

    @cached_property
    def _everywhere(self) -> IntN:
        return np.arange(len(self._nodes))

    def _matches(self, term: NodeSelectorTerm) -> BoolN:
        """kube-scheduler shows a volume's selector the labels of the node and not its name: lines about the name hold."""
        if term.match_fields and not term.match_expressions:
            return np.ones(len(self._nodes), dtype=bool)
        return node_affinity.term_matches(msgspec.structs.replace(term, match_fields=None), self._nodes)

    def has_room(self, storage: StorageClass, claim: PersistentVolumeClaim) -> BoolN | None:
        """(N,) nodes for which the class's driver has room for one more volume like this; None: it does not say."""
        driver = self._facts[meta.CSI_DRIVER].get(Key("", storage.provisioner))
        if not isinstance(driver, CsiDriver) or not driver.spec.storage_capacity or not claim.asks_for_storage:
            return None
        mask = np.zeros(len(self._nodes), dtype=bool)
        rooms = (each for each in self._facts[meta.CSI_STORAGE_CAPACITY].values() if isinstance(each, CsiStorageCapacity))
        for room in rooms:
            if room.storage_class_name == storage.metadata.name and room.holds(claim.size):
                mask |= self._nodes.labels.matches(room.node_topology, len(self._nodes))
        return mask
