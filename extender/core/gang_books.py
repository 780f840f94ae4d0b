"""Nodes that are kept for gangs whose members come one by one: who has which, since when, and who has asked to be bound.

    hold       a gang's nodes are kept until a time; whoever comes for one of them makes it last longer
    ask        a member asks to be bound; the gang starts once enough of them have asked
    settled    a member has its node, or is gone: nothing is kept for it any more
    release    all that is still kept for the gang is given back

A book knows names and times only. That kept nodes count as used is the mirror's business, which assumes the bindings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from extender.api.meta import Key, Time
from extender.api.operations import Bind

TTL = 30.0  # seconds that a node is kept without anybody coming for it


@dataclass(slots=True)
class Seat:
    """A node for one member. `passed_over`: it was left out once where only the pod's nominated node was asked about."""

    bind: Bind
    asked: bool = False
    passed_over: bool = False


@dataclass(slots=True)
class Hold:
    """What is kept for one gang, by pod uid. `started`: enough have asked, from now on nobody waits for anybody."""

    gang: Key
    until: Time
    since: Time
    seats: dict[str, Seat] = field(default_factory=dict)
    started: bool = False

    @property
    def unasked(self) -> list[Seat]:
        return [seat for seat in self.seats.values() if not seat.asked]


class GangBooks:
    """All holds. `turned` are gangs that have started or lost what was kept for them since somebody last looked."""

    def __init__(self, ttl: float = TTL) -> None:
        self.ttl = ttl
        self.turned: set[Key] = set()
        self._holds: dict[Key, Hold] = {}
        self._gang_of: dict[str, Key] = {}  # pod uid -> gang

    def __iter__(self) -> Iterator[Hold]:
        return iter(self._holds.values())

    def __len__(self) -> int:
        return len(self._holds)

    def of(self, gang: Key) -> Hold | None:
        return self._holds.get(gang)

    def find(self, uid: str) -> tuple[Hold, Seat] | None:
        """The hold and seat of a pod."""
        gang = self._gang_of.get(uid)
        return (self._holds[gang], self._holds[gang].seats[uid]) if gang is not None else None

    def hold(self, gang: Key, binds: Iterable[Bind], now: Time) -> Hold:
        """Keep the nodes of these bindings, beside what is kept for the gang already."""
        held = self._holds.setdefault(gang, Hold(gang, now + self.ttl, now))
        held.until = now + self.ttl
        for bind in binds:
            held.seats[bind.uid] = Seat(bind)
            self._gang_of[bind.uid] = gang
        return held

    def come_for(self, held: Hold, now: Time) -> None:
        """A member shows that the gang is on its way."""
        held.until = max(held.until, now + self.ttl)

    def ask(self, uid: str, now: Time) -> None:
        found = self.find(uid)
        if found is not None:
            found[1].asked = True
            self.come_for(found[0], now)

    def start(self, held: Hold) -> None:
        if not held.started:
            held.started = True
            self.turned.add(held.gang)

    def settled(self, uid: str) -> Seat | None:
        """The pod has its node, or wants none any more."""
        gang = self._gang_of.pop(uid, None)
        if gang is None:
            return None
        held = self._holds[gang]
        seat = held.seats.pop(uid)
        if not held.seats:
            del self._holds[gang]
        return seat

    def release(self, gang: Key, *, only_unasked: bool = False) -> list[Bind]:
        """Nothing is kept for the gang any more, or only for members that have asked. The bindings to forget."""
        held = self._holds.get(gang)
        if held is None:
            return []
        self.turned.add(gang)
        seats = held.unasked if only_unasked else list(held.seats.values())
        for seat in seats:
            self.settled(seat.bind.uid)
        return [seat.bind for seat in seats]

    def expired(self, now: Time) -> list[Key]:
        return [held.gang for held in self._holds.values() if held.until <= now]

    def on_node(self, name: str) -> list[Key]:
        """Gangs for which room is kept on the node."""
        return [held.gang for held in self._holds.values() if any(seat.bind.node == name for seat in held.seats.values())]

    @property
    def not_started(self) -> int:
        """Members of gangs that have not started: so many binds may come to wait."""
        return sum(len(held.seats) for held in self._holds.values() if not held.started)
