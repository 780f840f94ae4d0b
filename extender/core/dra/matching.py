"""Which devices a request may have: the selectors of its class and its own, tolerations, attributes that must agree.

Source: k8s.io/dynamic-resource-allocation v0.36.1, structured/internal/*/{allocator,constraint}*.go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from extender.api.claim import ALL, DeviceClass, DeviceConstraint, DeviceSelector, ExactRequest, ResourceClaim
from extender.api.errors import PumiceError
from extender.api.selectors import Taint, Toleration
from extender.core.dra.cel import CelError, Value, compiled
from extender.core.dra.pools import DeviceId, Offer

_MOST_ANSWERS = 1_000_000


class CannotAllocate(PumiceError):
    """A node cannot serve the claims, for a reason that people should see."""


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """One request, or one of its alternatives. `name` is "request" or "request/alternative"."""

    name: str
    request: str
    what: ExactRequest
    class_: DeviceClass

    @property
    def all_devices(self) -> bool:
        return self.what.allocation_mode == ALL

    @property
    def count(self) -> int:
        return self.what.count or 1

    @property
    def admin(self) -> bool:
        return bool(self.what.admin_access)

    @property
    def selectors(self) -> tuple[tuple[DeviceSelector, ...], tuple[DeviceSelector, ...]]:
        """Of the class, and its own."""
        return (self.class_.spec.selectors or (), self.what.selectors or ())


class Matching:
    """Answers that are remembered: what selectors say of a device does not change while its slice is the same."""

    def __init__(self) -> None:
        self._known: dict[tuple[DeviceId, object], bool] = {}

    def selects(self, claim: ResourceClaim, asked: Asked, offer: Offer) -> bool:
        """Raises CannotAllocate where a selector has no answer."""
        if offer.device.binding_conditions:
            return False  # nobody here waits for a device to become ready before the pod is bound
        code = (offer.id, asked.selectors)
        known = self._known.get(code)
        if known is None:
            if len(self._known) >= _MOST_ANSWERS:
                self._known.clear()
            known = self._known[code] = all(self._answers(claim, asked, offer))
        return known

    def _answers(self, claim: ResourceClaim, asked: Asked, offer: Offer) -> Iterator[bool]:
        whose = (f"device class {asked.class_.metadata.name}", f"claim {claim.metadata.key}, request {asked.name}")
        for owner, selectors in zip(whose, asked.selectors, strict=True):
            for number, selector in enumerate(selectors):
                if selector.cel is None:
                    raise CannotAllocate(f"{owner}: selector #{number} is of a kind that is not known")
                try:
                    yield compiled(selector.cel.expression).matches(offer.variables)
                except CelError as error:
                    raise CannotAllocate(f"{owner}: selector #{number}: {error}") from None


def tolerates(tolerations: Sequence[Toleration] | None, taints: Sequence[Taint] | None) -> bool:
    """Every taint that keeps pods away is tolerated. Source: resourceclaim, ToleratesTaint, whose rules are those of nodes."""
    return all(
        any(toleration.tolerates(taint) for toleration in tolerations or ())
        for taint in taints or ()
        if taint.effect in ("NoSchedule", "NoExecute")
    )


class Agreement:
    """One constraint of a claim during a search: its devices have the same value of an attribute, or all another."""

    def __init__(self, constraint: DeviceConstraint) -> None:
        self._requests = constraint.requests or ()
        self._distinct = not constraint.match_attribute
        self._attribute = constraint.match_attribute or constraint.distinct_attribute
        self._values: list[tuple[str, Value]] = []

    def concerns(self, asked: Asked) -> bool:
        return not self._requests or asked.request in self._requests or asked.name in self._requests

    def add(self, asked: Asked, offer: Offer) -> bool:
        """False, and nothing added, where the device would break it."""
        if not self.concerns(asked):
            return True
        value = offer.attribute(self._attribute)
        if value is None:
            return False
        known = value in self._values
        if known if self._distinct else self._values and not known:
            return False
        self._values.append(value)
        return True

    def remove(self, asked: Asked) -> None:
        """Take the last back."""
        if self.concerns(asked):
            self._values.pop()
