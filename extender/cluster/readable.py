"""Whether an object can be read at all: fields that somebody here reads have the types they read.

The schema of custom kinds says more (schema.py); of core kinds these are the views of extender/api. A real API server fails
likewise, when it decodes the request."""

from __future__ import annotations

from typing import Any

from extender.api.errors import InvalidObject
from extender.api.meta import (
    BATCH_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    NODE,
    PDB,
    POD,
    PRIORITY_CLASS,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    SERVICE,
    STATEFUL_SET,
    Json,
    Kind,
)
from extender.api.node import Node, PodDisruptionBudget, PriorityClass, Service
from extender.api.pod import Pod, PodSpec
from extender.api.selectors import LabelSelector
from extender.api.views import Metadata, View, view
from extender.cluster import refusals


class _Metadata(Metadata, frozen=True):
    generate_name: str = ""
    finalizers: tuple[str, ...] | None = None


class _Envelope(View, frozen=True):
    metadata: _Metadata = _Metadata()
    spec: dict[str, Any] | None = None
    status: dict[str, Any] | None = None


class _Template(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()


class _WorkloadSpec(View, frozen=True):
    replicas: int | None = None
    parallelism: int | None = None
    completions: int | None = None
    selector: LabelSelector | None = None
    template: _Template = _Template()


class _Workload(View, frozen=True):
    spec: _WorkloadSpec = _WorkloadSpec()


class _ControllerSpec(View, frozen=True):
    replicas: int | None = None
    selector: dict[str, str] | None = None
    template: _Template = _Template()


class _Controller(View, frozen=True):
    """A ReplicationController selects by plain labels."""

    spec: _ControllerSpec = _ControllerSpec()


_VIEWS: dict[Kind, type[View]] = {
    POD: Pod, NODE: Node, PRIORITY_CLASS: PriorityClass, PDB: PodDisruptionBudget, SERVICE: Service,
    **dict.fromkeys((DEPLOYMENT, REPLICA_SET, STATEFUL_SET, DAEMON_SET, BATCH_JOB), _Workload),
    REPLICATION_CONTROLLER: _Controller,
}  # fmt: skip


def readable(kind: Kind, new: Json, old: Json | None = None) -> Json:
    """The object as it can be read: a null where there must be something counts as not written.

    What is shared with the stored object was read before. Raises BadRequest naming the field."""
    try:
        _read(kind, new, old)
    except InvalidObject:
        new = _without_nulls(new)
        try:
            _read(kind, new, old)
        except InvalidObject as error:
            raise refusals.unreadable(kind, error) from None
    return new


def _read(kind: Kind, new: Json, old: Json | None) -> None:
    if old is None or new.get("metadata") is not old["metadata"]:
        view(_Envelope, new)
    read_as = _VIEWS.get(kind)
    if read_as is not None and (old is None or any(new.get(part) is not old.get(part) for part in ("spec", "status"))):
        view(read_as, new)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(each) for name, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value
