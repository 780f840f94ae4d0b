"""The search: devices for all claims of a pod on one node. The first that fits wins, in the order of requests, pools and devices.

    for each claim, for each request (or each of its alternatives in turn), for each device that it still lacks:
        try the devices that are free, selected and agree with those chosen so far; go back where the rest finds none

Devices of one request are different ones, in the order of their pools, so that no set is tried twice. The reference bounds the
search by time; here it is bounded by the number of tries, so that the answer is always the same.
Source: k8s.io/dynamic-resource-allocation v0.36.1, structured/internal/incubating/allocator_incubating.go."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from extender.api.claim import ALL, EXACT_COUNT, MOST_DEVICES, DeviceClass, DeviceRequest, ExactRequest, ResourceClaim
from extender.core.dra import capacity
from extender.core.dra.matching import Agreement, Asked, CannotAllocate, Matching, tolerates
from extender.core.dra.pools import Offer, Pool
from extender.core.dra.taken import Held, Taken


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """A device that a request gets. `share`: what it consumes of one that others may use too."""

    asked: Asked
    offer: Offer
    share: capacity.Consumed | None

    @property
    def held(self) -> Held | None:
        """What it keeps from others: nothing, where it is for administration."""
        return None if self.asked.admin else Held(self.offer.id, self.share)


@dataclass(frozen=True, slots=True, eq=False)
class Allocated:
    """What one claim gets. `chosen`: for each request which alternative, -1 where there was no choice."""

    claim: ResourceClaim
    given: tuple[Given, ...]
    requests: tuple[Asked, ...]
    chosen: tuple[int, ...]


def allocate(
    pools: Sequence[Pool],
    claims: Sequence[ResourceClaim],
    classes: Mapping[str, DeviceClass],
    taken: Taken,
    matching: Matching,
    tries: int,
) -> list[Allocated] | None:
    """What each claim gets, None where there is not enough. `taken` is as before when this returns.

    Raises CannotAllocate where a class or a selector is at fault, or a pool that would be needed."""
    search = _Search(pools, claims, classes, taken, matching, tries)
    try:
        if search.find(0, 0):
            return search.result()
    finally:
        search.undo()
    broken = next((pool for pool in pools if pool.broken), None)
    if broken is not None:
        raise CannotAllocate(f"resource pool {broken} is invalid: {broken.broken}")
    return None


class _Candidate(NamedTuple):
    """`error`: it could not be judged."""

    pool: Pool
    offer: Offer
    error: CannotAllocate | None = None


class _Candidates:
    """Devices for one request, looked at one after the other: most requests are content with the first.

    One that cannot be judged is a fault only once its turn comes."""

    def __init__(self, offers: Sequence[tuple[Pool, Offer]], selects: Callable[[Offer], bool]) -> None:
        self._found: list[_Candidate] = []
        self._rest, self._selects = deque(offers), selects

    @property
    def most(self) -> int:
        """No more than so many are there."""
        return len(self._found) + len(self._rest)

    def at(self, number: int) -> _Candidate | None:
        while len(self._found) <= number and self._rest:
            pool, offer = self._rest.popleft()
            try:
                if self._selects(offer):
                    self._found.append(_Candidate(pool, offer))
            except CannotAllocate as error:
                self._found.append(_Candidate(pool, offer, error))
        return self._found[number] if number < len(self._found) else None


class _Search:
    def __init__(
        self,
        pools: Sequence[Pool],
        claims: Sequence[ResourceClaim],
        classes: Mapping[str, DeviceClass],
        taken: Taken,
        matching: Matching,
        tries: int,
    ) -> None:
        self.pools, self.claims, self.classes, self.taken, self.matching = pools, claims, classes, taken, matching
        self.tries = tries
        self.offers = [(pool, offer) for pool in pools if not pool.incomplete and not pool.broken for offer in pool.offers]
        self.asked = [[self._alternatives(claim, request) for request in claim.spec.devices.requests or ()] for claim in claims]
        self.every = {
            id(asked): self._every_device(claim, asked)
            for claim, requests in zip(claims, self.asked, strict=True)
            for alternatives in requests
            for asked in alternatives
            if asked.all_devices
        }
        self.agreements = [[Agreement(each) for each in claim.spec.devices.constraints or ()] for claim in claims]
        self.given: list[list[Given]] = [[] for _ in claims]
        self.chosen = [[-1] * len(requests) for requests in self.asked]

    # --- what is asked ----------------------------------------------------------------------------------------------------

    def _alternatives(self, claim: ResourceClaim, request: DeviceRequest) -> list[Asked]:
        if request.first_available:
            return [self._one(claim, f"{request.name}/{sub.name}", request, sub) for sub in request.first_available]
        if request.exactly is None:
            raise CannotAllocate(f"claim {claim.metadata.key}, request {request.name}: asks for nothing that is known")
        return [self._one(claim, request.name, request, request.exactly)]

    def _one(self, claim: ResourceClaim, name: str, request: DeviceRequest, what: ExactRequest) -> Asked:
        class_ = self.classes.get(what.device_class_name)
        if class_ is None:
            missing = f"device class {what.device_class_name} does not exist"
            raise CannotAllocate(f"claim {claim.metadata.key}, request {name}: {missing}")
        if what.allocation_mode not in ("", ALL, EXACT_COUNT):
            raise CannotAllocate(f"claim {claim.metadata.key}, request {name}: no such allocation mode: {what.allocation_mode}")
        return Asked(name, request.name, what, class_)

    def _every_device(self, claim: ResourceClaim, asked: Asked) -> list[tuple[Pool, Offer]]:
        for pool in self.pools:
            if pool.incomplete or pool.broken:
                state = "being updated" if pool.incomplete else f"invalid: {pool.broken}"
                raise CannotAllocate(f"request {asked.name} asks for all devices, but resource pool {pool} is {state}")
        return [
            (pool, offer)
            for pool, offer in self.offers
            if self.matching.selects(claim, asked, offer) and self._consumes(asked, offer) is not None
        ]

    def _consumes(self, asked: Asked, offer: Offer) -> capacity.Consumed | None:
        """What the request would consume of the device, None where there is not so much."""
        wants = capacity.consumed(offer, asked.what.capacity.requests)
        held: capacity.Consumed = self.taken.consumed.get(offer.id, {}) if offer.shared else {}
        return wants if wants is not None and capacity.fits(offer, wants, held) else None

    # --- the search ---------------------------------------------------------------------------------------------------------

    def find(self, claim: int, request: int) -> bool:
        """Devices for the request and all that come after it."""
        if claim == len(self.claims):
            return True
        if request == len(self.asked[claim]):
            return self.find(claim + 1, 0)
        alternatives = self.asked[claim][request]
        choice = bool((self.claims[claim].spec.devices.requests or ())[request].first_available)
        for number, asked in enumerate(alternatives):
            self.chosen[claim][request] = number if choice else -1
            candidates = self._candidates(claim, asked)
            count = candidates.most if asked.all_devices else asked.count
            if 0 < count <= MOST_DEVICES - len(self.given[claim]) and self._fill(claim, request, asked, candidates, count, 0):
                return True
        return False

    def _candidates(self, claim: int, asked: Asked) -> _Candidates:
        """Devices that the request may have as things stand."""
        if asked.all_devices:
            return _Candidates(self.every[id(asked)], lambda _: True)
        free = [(pool, offer) for pool, offer in self.offers if asked.admin or not self.taken.whole[offer.id]]
        return _Candidates(free, partial(self.matching.selects, self.claims[claim], asked))

    def _fill(self, claim: int, request: int, asked: Asked, candidates: _Candidates, lacking: int, start: int) -> bool:
        """The devices that the request still lacks, out of the candidates from `start` on."""
        if lacking == 0:
            return self.find(claim, request + 1)
        at = start
        while at + lacking <= candidates.most and (candidate := candidates.at(at)) is not None:
            if self._take(claim, asked, candidate):
                if self._fill(claim, request, asked, candidates, lacking - 1, at + 1):
                    return True
                self._give_back(claim)
            elif asked.all_devices:
                return False
            at += 1
        return False

    def _take(self, claim: int, asked: Asked, candidate: _Candidate) -> bool:
        """Choose the device, if it can be had beside what is chosen already."""
        self.tries -= 1
        if self.tries < 0:
            raise CannotAllocate("the search for devices was given up: there are too many ways to choose")
        if candidate.error is not None:
            raise candidate.error
        mine, offer, wants = self.given[claim], candidate.offer, self._consumes(asked, candidate.offer)
        if wants is None or (not asked.admin and self.taken.whole[offer.id]):
            return False
        if asked.admin and not offer.shared and any(given.offer.id == offer.id for given in mine):
            return False
        if not tolerates(asked.what.tolerations, offer.device.taints) or not self.taken.has_counters(candidate.pool, offer):
            return False
        if not self._agrees(claim, asked, offer):
            return False
        given = Given(asked, offer, wants if offer.shared else None)
        mine.append(given)
        if given.held is not None:
            self.taken.take(given.held)
        return True

    def _agrees(self, claim: int, asked: Asked, offer: Offer) -> bool:
        done: list[Agreement] = []
        for agreement in self.agreements[claim]:
            if not agreement.add(asked, offer):
                for earlier in done:
                    earlier.remove(asked)
                return False
            done.append(agreement)
        return True

    def _give_back(self, claim: int) -> None:
        given = self.given[claim].pop()
        if given.held is not None:
            self.taken.take(given.held, -1)
        for agreement in self.agreements[claim]:
            agreement.remove(given.asked)

    def result(self) -> list[Allocated]:
        """What was found, before it is undone."""
        return [
            Allocated(
                claim,
                tuple(given),
                tuple(alternatives[max(number, 0)] for alternatives, number in zip(requests, chosen, strict=True)),
                tuple(chosen),
            )
            for claim, given, requests, chosen in zip(self.claims, self.given, self.asked, self.chosen, strict=True)
        ]

    def undo(self) -> None:
        """Nothing is taken any more."""
        for claim, given in enumerate(self.given):
            while given:
                self._give_back(claim)
