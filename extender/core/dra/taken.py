"""Taken: the devices that somebody has, whole or a share of their capacity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from extender.api import quantity
from extender.api.claim import Allocation
from extender.core.dra.capacity import Consumed
from extender.core.dra.pools import DeviceId, Offer, Pool


class Held(NamedTuple):
    """One device of an allocation. `share`: what it consumes of a device that others may use too; None: it has all of it."""

    device: DeviceId
    share: Consumed | None = None


def held_by(allocation: Allocation) -> Iterator[Held]:
    """The devices of an allocation that nobody else may have; those for administration are not among them."""
    for result in allocation.devices.results or ():
        if result.admin_access:
            continue
        device = DeviceId(result.driver, result.pool, result.device)
        consumed = {name: quantity.nanos(amount) for name, amount in (result.consumed_capacity or {}).items()}
        yield Held(device, consumed if result.share_id else None)


class Taken:
    """Counts, so that taking and giving back mirror each other."""

    def __init__(self) -> None:
        self.whole: Counter[DeviceId] = Counter()
        self.shares: Counter[DeviceId] = Counter()  # how many share the device
        self.consumed: dict[DeviceId, Counter[str]] = {}

    def take(self, held: Held, sign: int = 1) -> None:
        """`sign` -1: give back."""
        if held.share is None:
            self.whole[held.device] += sign
            return
        self.shares[held.device] += sign
        amounts = self.consumed.setdefault(held.device, Counter())
        for name, amount in held.share.items():
            amounts[name] += sign * amount

    def has_counters(self, pool: Pool, wanted: Offer) -> bool:
        """Do the counters of its pool leave room for the device? Whoever shares a device took them when the first came."""
        if not wanted.counters or self.shares[wanted.id]:
            return True
        left = dict(pool.counters or {})
        for offer in pool.consumers:
            if self.whole[offer.id] or self.shares[offer.id]:
                for key, amount in offer.counters.items():
                    left[key] -= amount
        return all(left[key] >= amount for key, amount in wanted.counters.items())
