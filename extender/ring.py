"""Several schedulers that divide nodes and PodGroups among them by a hash of names (MULTI_SCHEDULER_ENABLE).

The members are the pods of a StatefulSet, <base>-0 to <base>-(n-1). A node belongs to whom its name leads to; a PodGroup to whom
the name of its first owner leads to, else its own. Who is dead keeps its share: nobody takes it over.

Source: volcano ed72c7c, pkg/scheduler/cache/util.go, and stathat.com/c/consistent v1.0.0, so that both may work side by side.
Differences: pods follow their PodGroup (there they are hashed by their own owner, so that a gang whose PodGroup is nobody's
or somebody else's is torn apart); a name or a number that makes no sense is an error, not a panic or a single member."""

from __future__ import annotations

import bisect
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from extender.api.errors import UsageError
from extender.api.meta import Json

ENABLED, OURSELVES, NUMBER = "MULTI_SCHEDULER_ENABLE", "SCHEDULER_POD_NAME", "SCHEDULER_NUM"
_POINTS = 20  # of each member


class Ring:
    """Consistent hashing: a key belongs to the member whose point on the ring comes next."""

    def __init__(self, members: Iterable[str]) -> None:
        at = {_hash(f"{number}{member}"): member for member in members for number in range(_POINTS)}
        self._points = sorted(at)
        self._members = [at[point] for point in self._points]

    def __getitem__(self, key: str) -> str:
        return self._members[bisect.bisect_right(self._points, _hash(key)) % len(self._points)]


def _hash(key: str) -> int:
    return zlib.crc32(key.encode())


@dataclass(frozen=True, slots=True)
class Share:
    """What of the cluster is ours."""

    member: str
    ring: Ring

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Share | None:
        """None where there is one scheduler for all. Raises UsageError."""
        if environ.get(ENABLED, "").lower() != "true":
            return None
        member = environ.get(OURSELVES, "")
        base, dash, index = member.rpartition("-")
        if not (base and dash and index.isdigit()):
            raise UsageError(f"{OURSELVES}: '{member}' is no name of a StatefulSet's pod, such as volcano-scheduler-0")
        number = environ.get(NUMBER, "1")
        if not number.isdigit() or int(number) <= int(index):
            raise UsageError(f"{NUMBER}: '{number}' must be the number of schedulers, of which {member} is one")
        return cls(member, Ring(f"{base}-{i}" for i in range(int(number))))

    def has_node(self, node: Json) -> bool:
        return self.ring[node["metadata"]["name"]] == self.member

    def has_group(self, group: Json) -> bool:
        owners = group["metadata"].get("ownerReferences") or ()
        return self.ring[owners[0]["name"] if owners else group["metadata"]["name"]] == self.member
