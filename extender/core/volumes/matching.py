"""Claims that wait for their pod > the volume that each gets on each node, or that one is made for it there.

Source: kube-scheduler v1.36.1, volumebinding/binder.go, FindPodVolumes; k8s.io/component-helpers v0.36.1 storage/volume,
FindMatchingVolume. Of volumes of one size the first by name is taken (there: any)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from extender.api.volume import PersistentVolume, PersistentVolumeClaim
from extender.core.axis import BoolN
from extender.core.snapshot import Nodes
from extender.core.volumes.stock import Stock

NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
NO_ROOM = "node(s) did not have enough free storage"
_NONE = -1


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """`at` (N,): the number in `volumes` of what the claim gets on each node, -1 where none of them does."""

    claim: PersistentVolumeClaim
    volumes: Sequence[PersistentVolume]
    at: NDArray[np.int32]

    def on(self, row: int) -> PersistentVolume | None:
        return self.volumes[self.at[row]] if self.at[row] != _NONE else None


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """(N,) nodes where some claim finds no volume, or its driver has no room; elsewhere `choices` say what each gets."""

    choices: Sequence[Choice]
    without: BoolN
    crowded: BoolN


def places(claims: Sequence[PersistentVolumeClaim], stock: Stock, nodes: Nodes, *, only: int | None = None) -> Places:
    """For all nodes, or for the `only` row that is asked about: the others have no answer then."""
    size = len(nodes)
    without, crowded = np.zeros(size, dtype=bool), np.zeros(size, dtype=bool)
    pinned = [claim for claim in claims if stock.node_of(claim)]
    for claim in pinned:
        elsewhere = np.ones(size, dtype=bool)
        row = nodes.rows.get(stock.node_of(claim))
        if row is not None:
            elsewhere[row] = False
        without |= elsewhere
    choices = [Choice(claim, (), np.full(size, _NONE, dtype=np.int32)) for claim in pinned]
    asked = nodes.exists if only is None else np.arange(size) == only
    for claim in sorted((claim for claim in claims if not stock.node_of(claim)), key=lambda each: each.size):
        choices.append(_choose(claim, choices, stock, asked))
    for choice in choices:
        _make_rest(choice, stock, without, crowded)
    return Places(choices, without, crowded)


def _choose(claim: PersistentVolumeClaim, earlier: Sequence[Choice], stock: Stock, asked: BoolN) -> Choice:
    """On each node the smallest volume that does, or the one that is the claim's, whatever else there is."""
    at = np.full(len(asked), _NONE, dtype=np.int32)
    meant = stock.meant_for(claim)
    if meant is not None:
        at[stock.reach(meant.reach)] = 0
        return Choice(claim, (meant,), at)
    volumes, held = stock.choices(claim), _held(earlier)
    open_ = asked.copy()
    left = np.count_nonzero(open_)
    for number, volume in enumerate(volumes):
        if not left:
            break
        if not stock.is_free(volume):
            continue
        reach = stock.reach(volume.reach)
        here = reach[open_[reach]]
        if volume.metadata.name in held:
            here = here[~held[volume.metadata.name][here]]
        at[here] = number
        open_[here] = False
        left -= len(here)
    return Choice(claim, volumes, at)


def _held(choices: Sequence[Choice]) -> dict[str, BoolN]:
    """Volume -> (N,) nodes on which a claim of the same pod gets it."""
    found: dict[str, BoolN] = {}
    for choice in choices:
        for number in np.unique(choice.at[choice.at != _NONE]).tolist():
            name = choice.volumes[number].metadata.name
            found[name] = found.get(name, np.zeros(len(choice.at), dtype=bool)) | (choice.at == number)
    return found


def _make_rest(choice: Choice, stock: Stock, without: BoolN, crowded: BoolN) -> None:
    """Where there is no volume for the claim, can its class make one? Says so in the two masks."""
    undecided = (choice.at == _NONE) & ~without & ~crowded
    storage = stock.storage_class(choice.claim.storage_class)
    if storage is None or not storage.makes_volumes:
        without |= undecided
        return
    elsewhere, room = undecided.copy(), stock.has_room(storage, choice.claim)
    elsewhere[stock.reach(storage.reach)] = False
    without |= elsewhere
    if room is not None:
        crowded |= undecided & ~elsewhere & ~room
