"""The port to a cluster: small Protocols, two adapters (memory.py, kubernetes.py), one contract suite (tests/cluster).

JSON dicts cross it. Dicts that come out must not be changed by the caller; dicts that go in are copied.
Every method may raise a ClusterError (api/errors.py)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from extender.api.meta import Json, Key, Kind


class Listing(NamedTuple):
    """Objects and the resourceVersion from which a watch goes on without a gap."""

    objects: list[Json]
    resource_version: str


class WatchEvent(NamedTuple):
    """`type` is ADDED, MODIFIED, DELETED or BOOKMARK; `object` its state after the event (for DELETED the last state)."""

    type: str
    object: Json


class Reader(Protocol):
    def get(self, kind: Kind, key: Key) -> Json:
        """Raises NotFound."""

    def list(self, kind: Kind, namespace: str = "", label_selector: str = "", field_selector: str = "") -> Listing:
        """All namespaces where `namespace` is empty."""


class Watcher(Protocol):
    def watch(
        self, kind: Kind, resource_version: str, namespace: str = "", label_selector: str = "", field_selector: str = ""
    ) -> Watch:
        """Everything after `resource_version`. Raises Gone where that is too old: list again."""


class Watch(Protocol):
    """An open watch. Iterating blocks for the next event (bounded by `timeout` in `poll`); `close` ends it."""

    def poll(self, timeout: float = 0.0) -> list[WatchEvent]:
        """Events that have come in, in order; waits up to `timeout` real seconds for the first. Raises Gone."""

    def __iter__(self) -> Iterator[WatchEvent]: ...

    def close(self) -> None: ...


class Writer(Protocol):
    """Writes take effect at once or raise; none is applied in part.

    `dry_run`: admission and validation run, nothing is stored, the answer is what would have been."""

    def create(self, kind: Kind, obj: Json, *, dry_run: bool = False) -> Json:
        """Raises AlreadyExists, Invalid, Denied. `metadata.generateName` is honoured."""

    def update(self, kind: Kind, obj: Json, *, subresource: str = "", dry_run: bool = False) -> Json:
        """Full replace; Conflict where `metadata.resourceVersion` is given and stale. `subresource`: "" or "status"."""

    def patch(self, kind: Kind, key: Key, patch: Json, *, subresource: str = "", dry_run: bool = False) -> Json:
        """JSON merge patch. `metadata.resourceVersion` or `metadata.uid` within the patch are preconditions."""

    def json_patch(self, kind: Kind, key: Key, patch: list[Json], *, subresource: str = "", dry_run: bool = False) -> Json:
        """RFC 6902 patch."""

    def delete(
        self,
        kind: Kind,
        key: Key,
        *,
        uid: str = "",
        propagation: str = "Background",
        grace_seconds: int | None = None,
        dry_run: bool = False,
    ) -> None:
        """`uid`: Conflict where the object is another one of the same name."""

    def bind(self, pod: Key, node: str, *, uid: str = "", annotations: dict[str, str] | None = None) -> None:
        """POST pods/binding. Conflict ("already assigned to node ...") where the pod has a node or is being deleted."""

    def evict(self, pod: Key, *, uid: str = "", grace_seconds: int | None = None) -> None:
        """POST pods/eviction. TooManyRequests where a PodDisruptionBudget forbids it now."""


class Cluster(Reader, Watcher, Writer, Protocol):
    """All three; what components are given."""


class AdmissionRequest(NamedTuple):
    """What admission is asked about one write. `object` is None for DELETE, `old` for CREATE."""

    operation: str  # CREATE, UPDATE or DELETE
    kind: Kind
    key: Key
    object: Json | None
    old: Json | None
    dry_run: bool = False


class Admission(Protocol):
    """What the embedded cluster asks on each write of a main resource, as an API server asks its webhooks."""

    def mutate(self, request: AdmissionRequest) -> Json | None:
        """The object to go on with. Asked after CRD defaulting and pruning, before the schema is checked."""

    def validate(self, request: AdmissionRequest) -> None:
        """Raises Denied with every fault. Asked after the schema was checked, before the object is stored."""
