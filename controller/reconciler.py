"""What a controller is: it observes changes and names requests that are due, and it answers a request with a Decision.

Both are free of I/O. The manager (controller/manager.py) feeds changes, carries decisions out and knows about retries."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from controller.sharding import ShardFlags
from controller.store import Change, Index, Store
from extender.api.errors import PumiceError
from extender.api.labels import SCHEDULERS, SYSTEM_NAMESPACE
from extender.api.meta import Json, Key, Kind, Time
from extender.api.operations import Operation

MAX_REQUEUE = 15  # --max-requeue-num
CONFIGURATION = Key(SYSTEM_NAMESPACE, "volcano-controller-configmap")  # of HyperNode discovery
SHARDING = Key(SYSTEM_NAMESPACE, "volcano-sharding-configmap")  # --sharding-configmap, --sharding-configmap-namespace


class NotYet(PumiceError):
    """Something that only others can bring is missing (a claim, a queue): no failure, and without a budget.

    The controller requests the same again when it sees what is missing come; `poll` where it cannot see that.
    `reason` is that of the Warning event about it, "" for none."""

    def __init__(self, message: str, reason: str = "", *, poll: bool = False) -> None:
        super().__init__(message)
        self.reason = reason
        self.poll = poll


@dataclass(frozen=True, slots=True)
class Stage:
    """Operations that need not wait for each other. A stage is reached only if all before it went well, unless
    `regardless`: then it is carried out for every object none of whose earlier operations failed."""

    operations: Sequence[Operation]
    regardless: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be done about a request: stages in order, then, if all went well, more requests.

    `later` are requests for a time, `cancelled` requests that are not wanted any more. `once`: the follow-up happens only
    if these very operations took effect (whoever finds a Command gone must not act on it)."""

    stages: Sequence[Stage] = ()
    follow_up: Sequence[Hashable] = ()
    later: Sequence[tuple[Hashable, Time]] = ()
    cancelled: Sequence[Hashable] = ()
    once: bool = False

    @classmethod
    def telling(cls, events: Iterable[Operation]) -> Decision:
        """Events only."""
        return cls(at_once(*events))


NOTHING = Decision()


@dataclass(frozen=True, slots=True)
class Settings:
    """The flags of vc-controller-manager that controllers read."""

    scheduler_names: Sequence[str] = SCHEDULERS
    max_requeue: int = MAX_REQUEUE
    inherit_owner_annotations: bool = True
    workload_support: bool = True
    configuration: Key = CONFIGURATION
    sharding: Key = SHARDING
    shard_flags: ShardFlags = field(default_factory=ShardFlags)
    workers: int = 3
    make_keys: Callable[[], tuple[str, str]] | None = field(default=None, repr=False)  # for tests: an RSA pair takes long


class Lookup(Protocol):
    """What a controller may look at."""

    store: Store

    def read(self, kind: Kind, key: Key) -> Json | None:
        """One object of a kind that is not watched, read once and then kept up by our own writes; None: not there."""

    def forget(self, kind: Kind, key: Key) -> None:
        """Read it anew next time."""


class Controller(Protocol):
    name: str  # as in --controllers
    kinds: Sequence[Kind]  # watched
    indexes: Sequence[Index]

    def only(self, kind: Kind) -> Key | None:
        """The one object of a kind that is of interest; None: all of them. Asked after `start`."""

    def start(self, lookup: Lookup, settings: Settings) -> None:
        """Given before anything else, once."""

    def observe(self, change: Change, now: Time) -> Iterable[Hashable | tuple[Hashable, Time]]:
        """Requests that are due because of the change (at once, or at a time)."""

    def group_of(self, request: Hashable) -> Hashable:
        """Requests of one group are handled one after the other."""

    def is_urgent(self, request: Hashable) -> bool:
        """To be handled before those of the same time that are not."""

    def reconcile(self, request: Hashable, now: Time) -> Decision:
        """What to do. May raise NotYet, or any other PumiceError to be tried again within the budget."""

    def failed(self, request: Hashable, operation: Operation | None, error: PumiceError) -> Iterable[Operation]:
        """Events about an operation that failed, or (None) about a decision that could not be made. Not asked about a
        write that was only overtaken by another's: it is decided anew."""

    def gave_up(self, request: Hashable, now: Time) -> Decision:
        """The request has used up its retries."""


def at_once(*operations: Operation) -> tuple[Stage, ...]:
    return (Stage(operations),) if operations else ()


class PlainController:
    """What most controllers answer: each request by itself, none before another, nothing to tell about failures."""

    indexes: Sequence[Index] = ()

    def only(self, kind: Kind) -> Key | None:
        return None

    def group_of(self, request: Hashable) -> Hashable:
        return request

    def is_urgent(self, request: Hashable) -> bool:
        return True

    def failed(self, request: Hashable, operation: Operation | None, error: PumiceError) -> Iterable[Operation]:
        return ()

    def gave_up(self, request: Hashable, now: Time) -> Decision:
        return NOTHING
