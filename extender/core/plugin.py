"""What a plugin is: a class with a name, arguments and any of the hooks, on whole columns instead of single objects.

A plugin is made anew for each session. Having a method of a hook's name registers it: hooks.py says what each is asked and
what it answers, extension_points.py which switch turns it off and how the answers of several plugins become one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from reprlib import repr as short
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from extender.api.boolean import parse_bool
from extender.api.meta import Kind, Time
from extender.api.pod import Pod
from extender.core.axis import BoolN, FloatN, IntNR, IntR
from extender.core.shapes import Shape

if TYPE_CHECKING:
    from extender.core.session import Session

A = TypeVar("A")


class Vote(IntEnum):
    REJECT = -1
    ABSTAIN = 0
    PERMIT = 1


class NotAdmitted(NamedTuple):
    """Why enqueue keeps a job out: `event` in the words of the reference, `text` with the numbers, `numbers` by resource."""

    event: str
    text: str
    numbers: Mapping[str, object]


class Refused(NamedTuple):
    """Why a job is not valid: the machine word and the text of the reference, word for word."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True, eq=False)
class Refusal:
    """Nodes that one check refuses: `mask` (K,) or (N,). `unresolvable`: evicting pods from the node cannot cure it.

    `for_now`: it passes once others have ended, though no eviction brings that about at once."""

    message: str
    mask: BoolN
    unresolvable: bool = False
    plugin: str = ""
    for_now: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Across:
    """Points for all N rows. `moves`: they change with each placement; otherwise only when the feasible nodes change."""

    scores: FloatN
    moves: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class At:
    """K places to judge: node rows as they would stand. A row may occur often, with more and more of the class on it."""

    rows: NDArray[np.intp]  # (K,)
    allocatable: IntNR  # (K, R)
    used: IntNR  # (K, R) with releasing tasks, without pipelined ones
    requested: IntNR  # (K, R) as kube-scheduler would count: with pipelined, without what this session evicts
    nonzero: NDArray[np.int64]  # (K, 2) requested cpu and memory, with defaults for empty requests
    extra: NDArray[np.intp]  # (K,) tasks of the class that are assumed on the row already and are counted in the others


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """Tasks of one job and class, and the node of each."""

    job: int  # -1: none
    queue: int  # -1: none
    tasks: Sequence[int]
    nodes: Sequence[int]
    request: IntR  # (R,) of one task
    total: IntR  # (R,) of all of them


class TaskClass:
    """Tasks of the session that cannot be told apart when it comes to nodes. `task` is one of them."""

    __slots__ = (
        "best_effort", "cache", "gated", "id", "labels", "namespace", "nonzero", "pod", "request", "shape", "spec", "task",
    )  # fmt: skip

    def __init__(self, id: int, task: int, shape: Shape, pod: Pod) -> None:
        self.id = id
        self.task = task
        self.shape = shape
        self.pod = pod
        self.spec = pod.spec
        self.namespace: str = pod.metadata.namespace
        self.labels: dict[str, str] = pod.metadata.labels or {}
        self.request: IntR = shape.request
        self.nonzero: NDArray[np.int64] = shape.nonzero
        self.best_effort: bool = shape.best_effort
        self.gated: bool = shape.gated
        self.cache: dict[str, Any] = {}  # what plugins worked out for this class in this session, by plugin name


@dataclass(frozen=True)
class NoArgs:
    """For plugins without arguments."""


class Plugin(Generic[A]):
    """Base of plugins. `Args` is a frozen dataclass; conf.py fills it through `parse`."""

    name: ClassVar[str]
    keeps: ClassVar[str] = ""  # why it keeps tasks from being evicted, for people
    hierarchical: ClassVar[bool] = False  # it does something about enableHierarchy
    # job_enqueueable looks at queue, namespace and minResources (and devices) only, and what it refuses it refuses all session.
    admits_by_minimum: ClassVar[bool] = False
    # job_valid, job_ready and job_pipelined look at the job's minimums and at the classes, roles and states of its tasks only.
    judges_by_members: ClassVar[bool] = False

    def __init__(self, args: A, hierarchy: bool = False) -> None:
        self.args = args
        self.hierarchy = hierarchy  # enableHierarchy of this plugin in scheduler.conf

    @classmethod
    def parse(cls, arguments: Arguments) -> Any:
        """Read the arguments of scheduler.conf. Override where there are any."""
        del arguments
        return NoArgs()

    @classmethod
    def follows(cls, args: Any) -> tuple[Kind, ...]:
        """A classmethod: kinds of objects that it looks at beside those that are always followed."""
        del args
        return ()

    def open(self, ssn: Session) -> None:
        """Before the actions."""

    def close(self, ssn: Session) -> None:
        """After the actions."""

    def next_due(self, ssn: Session) -> Time | None:
        """When its answers will have changed though the cluster stands still; None: time does not matter to it."""
        del ssn
        return None


class Arguments:
    """The free map of a plugin or action in scheduler.conf: a value of the wrong type is a mistake, told in `errors`.

    `known` is what was asked for, so that the rest can be told too."""

    def __init__(self, path: str, values: dict[str, Any] | None, errors: list[str]) -> None:
        self.path = path
        self.values = values or {}
        self.errors = errors
        self.known: set[str] = set()

    def _get(self, key: str, kinds: tuple[type, ...], what: str) -> Any:
        self.known.add(key)
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            self.wrong(key, f"must be {what}, not {short(value)}")
            return None
        return value

    def wrong(self, key: str, message: str) -> None:
        self.errors.append(f"{self.path}.{key}: {message}")

    def integer(self, key: str, default: int) -> int:
        value = self._get(key, (int,), "an integer")
        return default if value is None else int(value)

    def number(self, key: str, default: float) -> float:
        value = self._get(key, (int, float), "a number")
        return default if value is None else float(value)

    def boolean(self, key: str, default: bool) -> bool:
        value = self._get(key, (bool, str), "true or false")
        if isinstance(value, str):
            read = parse_bool(value)
            if read is None:
                self.wrong(key, f"must be true or false, not {short(value)}")
                return default
            return read
        return default if value is None else bool(value)

    def text(self, key: str, default: str) -> str:
        value = self._get(key, (str,), "a string")
        return default if value is None else str(value)

    def anything(self, key: str) -> Any:
        """The raw value, for nested structures; the caller checks its shape."""
        self.known.add(key)
        return self.values.get(key)
