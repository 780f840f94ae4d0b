"""Storage: PersistentVolume, PersistentVolumeClaim, StorageClass, and what CSI drivers say of nodes and of the room they have."""

from __future__ import annotations

from extender.api import labels as names
from extender.api import quantity
from extender.api.meta import Key
from extender.api.selectors import LabelSelector, NodeSelector, NodeSelectorTerm, Requirement
from extender.api.views import Metadata, Quantities, View

AVAILABLE, LOST = "Available", "Lost"  # phases of a volume that may be claimed, of a claim whose volume is gone
READ_WRITE_ONCE_POD = "ReadWriteOncePod"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
NO_PROVISIONER = "kubernetes.io/no-provisioner"  # of a class whose volumes are made by hand
STORAGE = "storage"
_FILESYSTEM = "Filesystem"


def _storage(listed: Quantities | None, path: str) -> int:
    """Nano-bytes. Raises InvalidObject."""
    amount = (listed or {}).get(STORAGE)
    return quantity.nanos(amount, f"{path}[{STORAGE}]") if amount is not None else 0


class VolumeNodeAffinity(View, frozen=True):
    required: NodeSelector | None = None


class CsiVolume(View, frozen=True):
    driver: str = ""
    volume_handle: str = ""


class ClaimReference(View, frozen=True):
    """Whose volume it is. Without a uid: whichever claim has the name."""

    namespace: str = ""
    name: str = ""
    uid: str = ""

    @property
    def key(self) -> Key:
        return Key(self.namespace, self.name)


class VolumeSpec(View, frozen=True):
    capacity: Quantities | None = None
    access_modes: tuple[str, ...] | None = None
    claim_ref: ClaimReference | None = None
    storage_class_name: str = ""
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    csi: CsiVolume | None = None

    def __post_init__(self) -> None:
        _storage(self.capacity, "spec.capacity")


class VolumeStatus(View, frozen=True):
    phase: str = ""


class PersistentVolume(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: VolumeSpec = VolumeSpec()
    status: VolumeStatus = VolumeStatus()

    @property
    def size(self) -> int:
        return _storage(self.spec.capacity, "spec.capacity")

    @property
    def storage_class(self) -> str:
        old = self.metadata.annotation(names.BETA_STORAGE_CLASS)
        return self.spec.storage_class_name if old is None else old

    @property
    def reach(self) -> NodeSelector | None:
        """The nodes from which it can be used; None: all."""
        return self.spec.node_affinity.required if self.spec.node_affinity is not None else None

    def is_for(self, claim: PersistentVolumeClaim) -> bool:
        """Is it bound to the claim, or meant for it?"""
        whose = self.spec.claim_ref
        return whose is not None and whose.key == claim.metadata.key and whose.uid in ("", claim.metadata.uid)


class ClaimResources(View, frozen=True):
    requests: Quantities | None = None

    def __post_init__(self) -> None:
        _storage(self.requests, "spec.resources.requests")


class ClaimSpec(View, frozen=True):
    access_modes: tuple[str, ...] | None = None
    storage_class_name: str | None = None
    volume_name: str = ""
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    resources: ClaimResources = ClaimResources()
    selector: LabelSelector | None = None


class ClaimStatus(View, frozen=True):
    phase: str = ""


class PersistentVolumeClaim(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()

    @property
    def size(self) -> int:
        return _storage(self.spec.resources.requests, "spec.resources.requests")

    @property
    def asks_for_storage(self) -> bool:
        return STORAGE in (self.spec.resources.requests or {})

    @property
    def storage_class(self) -> str:
        """Empty where it asks for none."""
        old = self.metadata.annotation(names.BETA_STORAGE_CLASS)
        return (self.spec.storage_class_name or "") if old is None else old

    @property
    def selected_node(self) -> str:
        """Where its volume is to be made, "" while no scheduler has said so."""
        return self.metadata.annotation(names.SELECTED_NODE) or ""

    @property
    def bound(self) -> bool:
        """It has its volume, and both sides know."""
        return bool(self.spec.volume_name) and self.metadata.annotation(names.BIND_COMPLETED) is not None

    def takes(self, volume: PersistentVolume) -> bool:
        """Do size, mode and attributes do? These count for volumes that are meant for it, too."""
        mine, its = self.spec, volume.spec
        return (
            volume.size >= self.size
            and (mine.volume_mode or _FILESYSTEM) == (its.volume_mode or _FILESYSTEM)
            and (mine.volume_attributes_class_name or "") == (its.volume_attributes_class_name or "")
            and not volume.metadata.deletion_timestamp
        )

    def may_choose(self, volume: PersistentVolume) -> bool:
        """Does it do as one of many that are nobody's yet?"""
        return (
            volume.status.phase == AVAILABLE
            and (self.spec.selector is None or self.spec.selector.matches(volume.metadata.labels or {}))
            and set(self.spec.access_modes or ()) <= set(volume.spec.access_modes or ())
        )


class TopologyRequirement(View, frozen=True):
    key: str = ""
    values: tuple[str, ...] | None = None


class TopologyTerm(View, frozen=True):
    match_label_expressions: tuple[TopologyRequirement, ...] | None = None


class StorageClass(View, frozen=True):
    metadata: Metadata = Metadata()
    provisioner: str = ""
    volume_binding_mode: str = "Immediate"
    allowed_topologies: tuple[TopologyTerm, ...] | None = None

    @property
    def waits(self) -> bool:
        """Its claims get their volumes when a pod that mounts them is placed."""
        return self.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER

    @property
    def makes_volumes(self) -> bool:
        return self.provisioner not in ("", NO_PROVISIONER)

    @property
    def reach(self) -> NodeSelector | None:
        """Nodes for which it makes volumes; None: for all."""
        if not self.allowed_topologies:
            return None
        return NodeSelector(node_selector_terms=tuple(_as_node_term(term) for term in self.allowed_topologies))


def _as_node_term(term: TopologyTerm) -> NodeSelectorTerm:
    lines = (Requirement(key=each.key, operator="In", values=each.values) for each in term.match_label_expressions or ())
    return NodeSelectorTerm(match_expressions=tuple(lines))


class DriverLimit(View, frozen=True):
    count: int | None = None


class NodeDriver(View, frozen=True):
    name: str = ""
    allocatable: DriverLimit | None = None


class CsiNodeSpec(View, frozen=True):
    drivers: tuple[NodeDriver, ...] | None = None


class CsiNode(View, frozen=True):
    """How many volumes of each driver the node of the same name can have attached."""

    metadata: Metadata = Metadata()
    spec: CsiNodeSpec = CsiNodeSpec()


class AttachedVolume(View, frozen=True):
    persistent_volume_name: str | None = None


class AttachmentSpec(View, frozen=True):
    attacher: str = ""
    node_name: str = ""
    source: AttachedVolume = AttachedVolume()


class VolumeAttachment(View, frozen=True):
    """A volume that a driver has attached to a node, or is about to; it may outlive the pods that used it."""

    metadata: Metadata = Metadata()
    spec: AttachmentSpec = AttachmentSpec()


class CsiDriverSpec(View, frozen=True):
    storage_capacity: bool | None = None


class CsiDriver(View, frozen=True):
    """`storage_capacity`: it tells by CSIStorageCapacity objects how much room is left."""

    metadata: Metadata = Metadata()
    spec: CsiDriverSpec = CsiDriverSpec()


class CsiStorageCapacity(View, frozen=True):
    """Room for new volumes of a class, for the nodes that `node_topology` matches; without it for none."""

    metadata: Metadata = Metadata()
    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: str | int | float | None = None
    maximum_volume_size: str | int | float | None = None

    def __post_init__(self) -> None:
        for name in ("capacity", "maximumVolumeSize"):
            amount = self.capacity if name == "capacity" else self.maximum_volume_size
            if amount is not None:
                quantity.nanos(amount, name)

    def holds(self, size: int) -> bool:
        limit = self.capacity if self.maximum_volume_size is None else self.maximum_volume_size
        return limit is not None and quantity.nanos(limit) >= size
