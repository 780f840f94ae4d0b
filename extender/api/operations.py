"""All we ever ask of a cluster, as plain data. Deciding code returns these; `cluster/apply.py` carries them out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from extender.api.meta import POD, Json, Key, Kind, key_of


@dataclass(frozen=True, slots=True)
class Bind:
    """Give a pod its node; `annotations` are merged into the pod's by the binding itself. `uid` guards against a namesake.

    `before`: what must have been written first; where one of these fails the pod is not bound. `awaits`: what somebody else
    has to do then. Whoever carries operations out leaves such a pod unbound; it is bound when it is asked for anew without."""

    pod: Key
    node: str
    uid: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)
    before: tuple[Patch | PatchStatus, ...] = ()
    awaits: ClaimsBound | None = None


@dataclass(frozen=True, slots=True)
class ClaimsBound:
    """PersistentVolumeClaims that the volume controller has yet to bind, `seconds` after the writes at the latest.

    Without claims: the pod waits for those of its gang that have some."""

    claims: tuple[Key, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Evict:
    """Take a pod off its node: conditions Ready=False and DisruptionTarget=True, an event, then deletion.

    `reason` is the action that wants it (`preempt`, `reclaim`, `shuffle` ...)."""

    pod: Key
    reason: str
    uid: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Create:
    kind: Kind
    object: Json


@dataclass(frozen=True, slots=True)
class Patch:
    """JSON merge patch of the main resource. `resource_version` set: Conflict where the object has moved on."""

    kind: Kind
    key: Key
    patch: Json
    uid: str = ""
    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class PatchStatus:
    """JSON merge patch of the status: `patch` is the object `{"status": {...}}`. Uses the subresource where the kind has one."""

    kind: Kind
    key: Key
    patch: Json
    uid: str = ""
    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class Delete:
    """`propagation`: Background, Foreground or Orphan. `uid` set: only that very object."""

    kind: Kind
    key: Key
    uid: str = ""
    propagation: str = "Background"
    grace_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Emit:
    """An event about an object. `type`: Normal or Warning. Repeats are folded into a count by whoever applies it."""

    kind: Kind
    key: Key
    type: str
    reason: str
    message: str
    uid: str = ""


Prior = Patch | PatchStatus | ClaimsBound  # what has to come first where a pod is to be bound
Operation = Bind | Evict | Create | Patch | PatchStatus | Delete | Emit


def target(operation: Operation) -> tuple[Kind, Key]:
    """Kind and key of the object that it is about."""
    match operation:
        case Bind() | Evict():
            return POD, operation.pod
        case Create():
            return operation.kind, key_of(operation.object)
        case Patch() | PatchStatus() | Delete() | Emit():
            return operation.kind, operation.key
