"""What filters and scorers look at in a node besides its amounts and labels, interned and kept up to date per event.

Nodes have few distinct lists of taints: a class asks once per list and spreads the answer over the rows. Images are
indexed by name, so that a pod's images are found without a walk over all nodes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from extender.api.node import Node
from extender.api.selectors import Taint

Taints = tuple[Taint, ...]
_FIRST = 64


class NodeTraits:
    """Rows are those of the node table."""

    def __init__(self) -> None:
        self.unschedulable: dict[int, None] = {}  # rows with spec.unschedulable
        self.images: dict[str, dict[int, int]] = {}  # image name -> row -> bytes
        self._images_of: dict[int, tuple[str, ...]] = {}
        self._taints = np.zeros(_FIRST, dtype=np.int32)  # row -> list of taints; 0 is the empty list
        self._lists: list[Taints] = [()]
        self._users: list[int] = [0]
        self._codes: dict[Taints, int] = {(): 0}
        self._free: list[int] = []

    def set(self, row: int, node: Node | None) -> None:
        """Row `row` is now this node; None: no node any more."""
        if node is not None and node.spec.unschedulable:
            self.unschedulable[row] = None
        else:
            self.unschedulable.pop(row, None)
        self._set_taints(row, (node.spec.taints or ()) if node is not None else ())
        self._set_images(row, node)

    def _set_taints(self, row: int, taints: Taints) -> None:
        if row >= len(self._taints):
            self._taints = np.concatenate([self._taints, np.zeros(max(row, _FIRST), dtype=np.int32)])
        old = int(self._taints[row])
        if self._lists[old] == taints:
            return
        code = self._codes.get(taints)
        if code is None:
            code = self._free.pop() if self._free else len(self._lists)
            if code == len(self._lists):
                self._lists.append(taints)
                self._users.append(0)
            self._lists[code] = taints
            self._codes[taints] = code
        self._users[code] += 1
        self._taints[row] = code
        self._release(old)

    def _release(self, code: int) -> None:
        if code == 0:
            return
        self._users[code] -= 1
        if self._users[code] == 0:
            del self._codes[self._lists[code]]
            self._lists[code] = ()
            self._free.append(code)

    def _set_images(self, row: int, node: Node | None) -> None:
        images = {name: image.size_bytes for image in (node.status.images if node else None) or () for name in image.names or ()}
        for name in self._images_of.pop(row, ()):
            if name not in images:
                on = self.images[name]
                del on[row]
                if not on:
                    del self.images[name]
        if images:
            self._images_of[row] = tuple(images)
            for name, size in images.items():
                self.images.setdefault(name, {})[row] = size

    @property
    def tainted(self) -> bool:
        return len(self._codes) > 1

    def per_taints(self, answer: Callable[[Taints], int], size: int) -> NDArray[np.int64]:
        """(size,) the answer for each node's list of taints, asked once for each distinct list."""
        table = np.fromiter((answer(taints) for taints in self._lists), dtype=np.int64, count=len(self._lists))
        if size > len(self._taints):
            self._taints = np.concatenate([self._taints, np.zeros(size - len(self._taints), dtype=np.int32)])
        return table[self._taints[:size]]
