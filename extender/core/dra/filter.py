"""ClaimFilter: claims of devices in one session: which nodes are refused, what is given away, what a binding writes.

A class of tasks is judged node by node, and only where it has room; the answers stand until something is taken from, or
given back to, a pool that the node can reach. Devices are given when a task takes its node and taken back with it. A claim
that several tasks share is given with the first of them and pins the others to the nodes that can use its devices.

Source: kube-scheduler v1.36.1, plugins/dynamicresources; there a claim that was given in this session keeps the other pods
that share it waiting until it is written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import msgspec
import numpy as np
from numpy.typing import NDArray

from extender.api import meta
from extender.api.claim import FINALIZER, MOST_CONSUMERS, DeviceClass, ResourceClaim
from extender.api.device import ResourceSlice
from extender.api.meta import Json, Key
from extender.api.operations import Patch, PatchStatus
from extender.api.selectors import NodeSelector
from extender.api.views import view
from extender.core.axis import BoolN, FloatN
from extender.core.dra import written
from extender.core.dra.allocator import Allocated, allocate
from extender.core.dra.matching import CannotAllocate
from extender.core.dra.taken import Taken, held_by
from extender.core.dra.wanted import Wanted, WantedClaim, wanted
from extender.core.plugin import Change, Refusal, TaskClass
from extender.core.session import Session

CANNOT_ALLOCATE = "cannot allocate all claims"
NOT_ON_NODE = "resourceclaim not available on the node"
IN_USE = "resourceclaim in use"
_UNJUDGED, _PASSES = -1, 0
_BEST_CHOICE = 8  # points for the first alternative of a request; one less for each later one


@dataclass(frozen=True, slots=True, eq=False)
class _Gift:
    """What a claim got in this session: the devices, and from where they can be used."""

    allocated: Allocated
    selector: NodeSelector | None


@dataclass(slots=True, eq=False)
class _Judged:
    """The answers for one class. `code` (N,): not judged yet, passes, or 1 + the number of a message."""

    own: list[ResourceClaim]  # each of its tasks has one like it
    common: list[WantedClaim]
    code: NDArray[np.int16]
    points: FloatN  # for alternatives that were asked for first
    state: tuple[object, ...] = ()  # of the common claims, when this was judged
    seen: int = 0  # how far into the moved rows
    messages: list[str] = field(default_factory=list)

    def number(self, message: str) -> int:
        if message not in self.messages:
            self.messages.append(message)
        return 1 + self.messages.index(message)


class _Books:
    """All devices, and who has them. Made when the first task with claims turns up."""

    def __init__(self, ssn: Session) -> None:
        slices = ssn.facts[meta.RESOURCE_SLICE].values()
        self.catalogue = ssn.reservations.devices.refresh(s for s in slices if isinstance(s, ResourceSlice))
        self.classes = {key.name: c for key, c in ssn.facts[meta.DEVICE_CLASS].items() if isinstance(c, DeviceClass)}
        self.taken = Taken()
        for claim in ssn.facts[meta.RESOURCE_CLAIM].values():
            if isinstance(claim, ResourceClaim) and claim.status.allocation is not None:
                for held in held_by(claim.status.allocation):
                    self.taken.take(held)


class ClaimFilter:
    """`tries`: how long one search for devices may go on."""

    def __init__(self, ssn: Session, tries: int) -> None:
        self._ssn, self._tries = ssn, tries
        self._wanted: dict[int, Wanted] = {}
        self._judged: dict[int, _Judged] = {}
        self._gifts: dict[Key, _Gift] = {}
        self._users: dict[Key, set[int]] = defaultdict(set)  # tasks that took their nodes in this session
        self._moved: list[int] = []  # node rows whose devices changed hands, in that order
        self._reserved: dict[Key, list[Json]] = {}  # as written by this session
        self._written: set[Key] = set()  # claims whose allocation is among what this session writes

    @cached_property
    def _books(self) -> _Books:
        return _Books(self._ssn)

    def _of(self, task: int) -> Wanted:
        known = self._wanted.get(task)
        if known is None:
            pod = self._ssn.tasks.pod[task]
            known = self._wanted[task] = wanted(pod, self._ssn.facts) if pod is not None else Wanted()
        return known

    # --- who is alike -----------------------------------------------------------------------------------------------------

    def distinguish(self, task: int) -> Hashable:
        """Tasks whose own claims ask the same are alike, until one of these has its devices; common claims count by name."""
        if not self._ssn.shape_of(task).spec.resource_claims:
            return None
        found = self._of(task)
        return found.problem or tuple(_code(each) for each in found.claims)

    # --- which nodes ------------------------------------------------------------------------------------------------------

    def problem(self, cls: TaskClass) -> str:
        """Why no node at all will do, "" where there is no such reason."""
        return self._of(cls.task).problem if cls.spec.resource_claims else ""

    def refusals(self, cls: TaskClass) -> list[Refusal] | None:
        """None: the class claims nothing."""
        if not cls.spec.resource_claims:
            return None
        judged = self._judge(cls)
        return [
            Refusal(message, mask, unresolvable=True, plugin="predicates", for_now=message in (CANNOT_ALLOCATE, IN_USE))
            for number, message in enumerate(judged.messages, 1)
            if (mask := judged.code == number).any()
        ]

    def points(self, cls: TaskClass, feasible: BoolN) -> FloatN | None:
        """(N,) 0..100 for the alternatives that nodes can give; None where nothing is left to choose."""
        if not cls.spec.resource_claims:
            return None
        points = self._judge(cls).points
        highest = points[feasible].max(initial=0.0)
        return np.floor(100 * points / highest) if highest > 0 else None

    def _judge(self, cls: TaskClass) -> _Judged:
        ssn = self._ssn
        judged = self._judged.get(cls.id)
        if judged is None:
            claims, size = self._of(cls.task).claims, len(ssn.nodes)
            own = [each.claim for each in claims if each.own and each.claim.status.allocation is None]
            common = [each for each in claims if not each.own or each.claim.status.allocation is not None]
            judged = self._judged[cls.id] = _Judged(own, common, np.full(size, _UNJUDGED, dtype=np.int16), np.zeros(size))
        state = tuple((self._gifts.get(each.key), self._is_full(each, cls.task)) for each in judged.common)
        if state != judged.state:
            judged.state = state
            judged.code[:] = _UNJUDGED
        else:
            judged.code[self._moved[judged.seen :]] = _UNJUDGED
        judged.seen = len(self._moved)
        asked = np.flatnonzero(cls.request)
        room = (ssn.future[:, asked] >= cls.request[asked]).all(axis=1)
        for row in np.flatnonzero((judged.code == _UNJUDGED) & room & ssn.nodes.exists).tolist():
            message, judged.points[row] = self._judge_node(judged, cls, row)
            judged.code[row] = judged.number(message) if message else _PASSES
        return judged

    def _judge_node(self, judged: _Judged, cls: TaskClass, row: int) -> tuple[str, float]:
        """What keeps the class from the node, "" for nothing, and its points."""
        if any(self._is_full(each, cls.task) for each in judged.common):
            return IN_USE, 0.0
        node = self._ssn.nodes.node[row]
        assert node is not None
        for each in judged.common:
            selector = self._selector(each)
            if selector is not None and not selector.matches(node.metadata.name, node.metadata.labels or {}):
                return NOT_ON_NODE, 0.0
        claims = [*(each.claim for each in judged.common if self._is_open(each)), *judged.own]
        try:
            found = self._allocate(claims, row)
        except CannotAllocate as error:
            return str(error), 0.0
        if found is None:
            return CANNOT_ALLOCATE, 0.0
        return "", float(sum(_BEST_CHOICE - number for each in found for number in each.chosen if number >= 0))

    def _is_open(self, each: WantedClaim) -> bool:
        return each.claim.status.allocation is None and each.key not in self._gifts

    def _is_full(self, each: WantedClaim, task: int) -> bool:
        """As many as may use the claim do so already, and the task is not among them."""
        reserved = each.claim.status.reserved_for or ()
        if len(reserved) + len(self._users[each.key]) < MOST_CONSUMERS:
            return False
        pod = self._ssn.tasks.pod[task]
        return pod is not None and all(consumer.uid != pod.metadata.uid for consumer in reserved)

    def _selector(self, each: WantedClaim) -> NodeSelector | None:
        gift = self._gifts.get(each.key)
        if gift is not None:
            return gift.selector
        allocation = each.claim.status.allocation
        return allocation.node_selector if allocation is not None else None

    def _allocate(self, claims: Sequence[ResourceClaim], row: int) -> list[Allocated] | None:
        if not claims:
            return []
        books, node = self._books, self._ssn.nodes.node[row]
        pools = books.catalogue.pools(row, node) if node is not None else []
        return allocate(pools, claims, books.classes, books.taken, books.catalogue.matching, self._tries)

    # --- giving and taking back -------------------------------------------------------------------------------------------

    def take(self, change: Change) -> None:
        """Tasks took their nodes: they get their devices. One that had its node before has them already."""
        if self._ssn.shape_of(change.tasks[0]).spec.resource_claims:
            for task, row in zip(change.tasks, change.nodes, strict=True):
                if self._ssn.tasks.node[task] < 0:
                    self._give(task, row)

    def give_back(self, change: Change) -> None:
        if self._ssn.shape_of(change.tasks[0]).spec.resource_claims:
            for task in change.tasks:
                for each in self._of(task).claims:
                    self._leave(each.key, task)

    def _give(self, task: int, row: int) -> None:
        claims = self._of(task).claims
        try:
            found = self._allocate([each.claim for each in claims if self._is_open(each)], row)
        except CannotAllocate:
            found = None
        if found is None:
            return  # whoever placed it did not ask whether it could be served
        for allocated in found:
            selector = written.node_selector(allocated)
            gift = _Gift(allocated, view(NodeSelector, selector) if selector is not None else None)
            self._gifts[allocated.claim.metadata.key] = gift
            self._move(gift, +1)
        for each in claims:
            self._users[each.key].add(task)

    def _leave(self, key: Key, task: int) -> None:
        users = self._users[key]
        users.discard(task)
        if not users and key in self._gifts:
            self._move(self._gifts.pop(key), -1)

    def _move(self, gift: _Gift, sign: int) -> None:
        for given in gift.allocated.given:
            if given.held is not None:
                self._books.taken.take(given.held, sign)
                self._moved.extend(self._books.catalogue.reach[given.offer.id[:2]])

    # --- what is written --------------------------------------------------------------------------------------------------

    def before_bind(self, task: int) -> list[Patch | PatchStatus]:
        """Protection, allocation and reservation of the task's claims."""
        pod = self._ssn.tasks.pod[task]
        if pod is None or not pod.spec.resource_claims:
            return []
        return [
            write
            for each in self._of(task).claims
            if task in self._users[each.key]
            for write in self._writes(each, written.consumer(pod))
        ]

    def _writes(self, each: WantedClaim, consumer: Json) -> list[Patch | PatchStatus]:
        """The first write of a claim holds only if nobody else wrote it meanwhile."""
        metadata = each.claim.metadata
        version = metadata.resource_version if each.key not in self._reserved else ""
        listed = self._reserved.get(each.key) or [written.consumer_of(c) for c in each.claim.status.reserved_for or ()]
        writes: list[Patch | PatchStatus] = []
        status: Json = {}
        if each.key in self._gifts and each.key not in self._written:
            self._written.add(each.key)
            status["allocation"] = written.allocation(self._gifts[each.key].allocated)
            if FINALIZER not in (metadata.finalizers or ()):
                protected = {"metadata": {"finalizers": [*(metadata.finalizers or ()), FINALIZER]}}
                writes.append(Patch(meta.RESOURCE_CLAIM, each.key, protected, metadata.uid, version))
                version = ""
        if all(reserved["uid"] != consumer["uid"] for reserved in listed):
            listed = [*listed, consumer]
            status["reservedFor"] = listed
        self._reserved[each.key] = listed
        if status:
            writes.append(PatchStatus(meta.RESOURCE_CLAIM, each.key, {"status": status}, metadata.uid, version))
        return writes


def _code(each: WantedClaim) -> Hashable:
    if each.own and each.claim.status.allocation is None:
        return msgspec.json.encode(each.claim.spec.devices)
    return each.key
