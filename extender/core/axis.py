"""The resource axis: resource name <-> column, one unit per column.

cpu in thousandths, memory in bytes, pods in pods; every other resource in thousandths, as Volcano keeps scalars.
Names that Kubernetes does not regard as schedulable (`count/...`, bare unknown words) have no column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from extender.api import quantity
from extender.api.errors import InvalidObject

IntR = NDArray[np.int64]  # (R,) amounts
IntNR = NDArray[np.int64]  # (N, R)
IntN = NDArray[np.int64]  # (N,) or (K,)
FloatR = NDArray[np.float64]
FloatN = NDArray[np.float64]
BoolN = NDArray[np.bool_]
BoolR = NDArray[np.bool_]
Rows = NDArray[np.intp]  # (K,) row numbers of a table

CPU, MEMORY, PODS = 0, 1, 2
_BLOCK = 1 << 20  # bytes
_MILLI, _UNIT = 10**6, 10**9  # nano-units in a column's unit
_NATIVE = {"cpu": _MILLI, "memory": _UNIT, "pods": _UNIT, "ephemeral-storage": _MILLI}


class Amounts(NamedTuple):
    """A resource list on the axis: `values` (R,) float64, and `named` (R,) which of them the list names at all."""

    values: FloatR
    named: BoolR


def keep_freed_arrays() -> None:
    """Have the allocator keep 2 MiB of what arrays leave, for those that come.

    glibc gives free room at the end of its heap back to the system from twice the largest block on that was ever freed
    (mallopt(3), M_MMAP_THRESHOLD), and taking it anew costs a page fault for each 4 KiB: a fifth of a heterogeneous session."""
    np.empty(_BLOCK, np.uint8)


def unit_of(name: str) -> int:
    """Nano-units in one unit of the resource's column; 0 where the resource is not scheduled on."""
    if name in _NATIVE:
        return _NATIVE[name]
    if name.startswith(("count/", "requests.", "limits.")):
        return 0
    if name.startswith("attachable-volumes-"):
        return _UNIT
    return _MILLI if "/" in name or name.startswith("hugepages-") else 0


class Axis:
    """Grows as new names are met; columns never move. Columns 0, 1 and 2 are cpu, memory and pods."""

    def __init__(self, names: Iterable[str] = ("cpu", "memory", "pods")) -> None:
        self.names: list[str] = list(names)
        self.column: dict[str, int] = {name: i for i, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    def add(self, names: Iterable[str]) -> bool:
        """Give each schedulable name a column. True where the axis grew."""
        before = len(self.names)
        for name in names:
            if name not in self.column and unit_of(name):
                self.column[name] = len(self.names)
                self.names.append(name)
        return len(self.names) > before

    def vector(self, nanos: Mapping[str, int]) -> IntR:
        """Resource name -> nano-units, to (R,) int64 in column units, rounded up. Unknown names are left out."""
        row = np.zeros(len(self.names), dtype=np.int64)
        for name, amount in nanos.items():
            i = self.column.get(name)
            if i is not None:
                row[i] = min(-(-amount // unit_of(name)), quantity.MAX)
        return row

    def quantities(self, listed: Mapping[str, str | int | float] | None, path: str = "") -> IntR:
        """A Kubernetes resource list -> (R,) int64. Raises InvalidObject naming the resource under `path`."""
        return self.vector(read_quantities(listed, path))

    def amounts(self, listed: Mapping[str, str | int | float] | None) -> Amounts:
        """A Kubernetes resource list, remembering which resources it names."""
        nanos = read_quantities(listed, "")
        named = np.zeros(len(self.names), dtype=bool)
        for name in nanos:
            if name in self.column:
                named[self.column[name]] = True
        return Amounts(self.vector(nanos).astype(np.float64), named)

    def weights(self, by_name: Mapping[str, float]) -> FloatR:
        """Resource name -> weight, to (R,) float64; 0 where a resource has none."""
        row = np.zeros(len(self.names))
        for name, weight in by_name.items():
            if name in self.column:
                row[self.column[name]] = weight
        return row

    def text(self, column: int, amount: float) -> str:
        """The amount as an API server writes it: column cpu and 1500 -> "1500m"."""
        name = self.names[column]
        return quantity.format_nanos(round(amount) * unit_of(name), binary=quantity.in_bytes(name))

    def said(self, column: int, amount: float) -> str:
        """The amount as people say it: column cpu and 1500 -> "1.5". The largest stands for all that are larger."""
        told = quantity.for_people(self.names[column], round(amount) * unit_of(self.names[column]))
        return f"{told} or more" if amount >= quantity.MAX else told


def read_quantities(listed: Mapping[str, str | int | float] | None, path: str) -> dict[str, int]:
    """A Kubernetes resource list -> name -> nano-units. Raises InvalidObject naming the resource."""
    read = {}
    for name, text in (listed or {}).items():
        try:
            read[name] = quantity.nanos(text)
        except InvalidObject as error:
            raise InvalidObject(str(error), path=f"{path}[{name}]" if path else name) from None
    return read
