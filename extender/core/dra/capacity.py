"""Consumable capacity: how much of a device a request takes, and whether there is so much.

A request that names no amount takes the policy's default, or the whole. What it names is rounded up to what the policy
allows. Source: k8s.io/dynamic-resource-allocation v0.36.1, structured/internal/incubating/consumable_capacity.go."""

from __future__ import annotations

from collections.abc import Mapping

from extender.api import quantity
from extender.api.device import Capacity, RequestPolicy, ValidRange
from extender.api.views import Quantities
from extender.core.dra.pools import Offer

Consumed = Mapping[str, int]  # capacity -> nano-units


def consumed(offer: Offer, asked: Quantities | None) -> dict[str, int] | None:
    """What a request for these amounts takes of the device; None where it may not have them, however free the device is."""
    listed = offer.device.capacity or {}
    if any(name not in listed for name in asked or ()):
        return None
    taken = {}
    for name, capacity in listed.items():
        amount = _amount(capacity, (asked or {}).get(name))
        if amount is None or amount > offer.capacity[name]:
            return None
        taken[name] = amount
    return taken


def fits(offer: Offer, wanted: Consumed, held: Consumed) -> bool:
    """Is there room for it beside what others hold of the device?"""
    return all(held.get(name, 0) + amount <= offer.capacity[name] for name, amount in wanted.items())


def _amount(capacity: Capacity, asked: str | int | float | None) -> int | None:
    """None: the policy does not allow it."""
    policy = capacity.request_policy or RequestPolicy()
    default = None if policy.default is None else quantity.nanos(policy.default)
    if asked is None:
        return quantity.nanos(capacity.value) if default is None else default
    amount = quantity.nanos(asked)
    if policy.valid_range is not None:
        return _in_range(amount, policy.valid_range, default)
    if policy.valid_values:
        values = sorted(quantity.nanos(value) for value in policy.valid_values)
        return next((value for value in values if amount <= value), default if amount == default else None)
    return amount


def _in_range(amount: int, range_: ValidRange, default: int | None) -> int | None:
    least = quantity.nanos(range_.min) if range_.min is not None else 0
    if amount < least:
        amount = least
    elif range_.step is not None and range_.min is not None:
        step = quantity.nanos(range_.step)
        amount = least + -(-(amount - least) // step) * step if step > 0 else amount
    beyond = range_.max is not None and amount > quantity.nanos(range_.max)
    return None if beyond and amount != default else amount
