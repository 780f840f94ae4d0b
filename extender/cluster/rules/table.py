"""Which shape, which rules and which fixed fields a built-in kind has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from extender.api import meta
from extender.api.checks import Faults
from extender.api.decode import decode, differences
from extender.api.errors import Fault, InvalidObject
from extender.api.meta import Json, Kind
from extender.api.shapes import METADATA, Fields
from extender.cluster.rules import jobs, objects, policy, shapes, storage, workloads

_SELECTOR = ("spec.selector",)
_CLAIMED = ("spec.selector", "spec.serviceName", "spec.podManagementPolicy", "spec.volumeClaimTemplates")


@dataclass(frozen=True, slots=True)
class Row:
    """`fixed`: paths of fields that never change; `changes`: what else is wrong with a change (of what, to what)."""

    shape: Fields
    faults: Callable[[Json], Faults]
    fixed: tuple[str, ...] = ()
    changes: Callable[[Json, Json], Faults] | None = None


RULES: Mapping[Kind, Row] = {
    meta.DEPLOYMENT: Row(shapes.DEPLOYMENT, workloads.deployment_faults, _SELECTOR),
    meta.REPLICA_SET: Row(shapes.REPLICA_SET, workloads.replica_set_faults, _SELECTOR),
    meta.REPLICATION_CONTROLLER: Row(shapes.REPLICATION_CONTROLLER, workloads.replication_controller_faults),
    meta.DAEMON_SET: Row(shapes.DAEMON_SET, workloads.daemon_set_faults, _SELECTOR),
    meta.STATEFUL_SET: Row(shapes.STATEFUL_SET, workloads.stateful_set_faults, _CLAIMED),
    meta.BATCH_JOB: Row(shapes.JOB, jobs.job_faults, ("spec.selector", "spec.completionMode", "spec.podFailurePolicy")),
    meta.BATCH_CRON_JOB: Row(shapes.CRON_JOB, jobs.cron_job_faults),
    meta.PRIORITY_CLASS: Row(shapes.PRIORITY_CLASS, policy.priority_class_faults, ("value", "preemptionPolicy")),
    meta.PDB: Row(shapes.BUDGET, policy.budget_faults),
    meta.RESOURCE_QUOTA: Row(shapes.QUOTA, policy.quota_faults, ("spec.scopes",)),
    meta.LIMIT_RANGE: Row(shapes.LIMIT_RANGE, policy.limit_range_faults),
    meta.PVC: Row(shapes.CLAIM, storage.claim_object_faults, changes=storage.claim_changes),
    meta.PV: Row(shapes.VOLUME, storage.volume_faults, changes=storage.volume_changes),
    meta.STORAGE_CLASS: Row(shapes.STORAGE_CLASS, storage.class_faults,
                            ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode")),
    meta.CSI_NODE: Row(shapes.CSI_NODE, storage.driver_faults),
    meta.CSI_STORAGE_CAPACITY: Row(shapes.STORAGE_CAPACITY, storage.capacity_faults, ("storageClassName", "nodeTopology")),
    meta.NODE: Row(shapes.NODE, objects.node_faults),
    meta.SERVICE: Row(shapes.SERVICE, objects.service_faults, changes=objects.service_changes),
    meta.CONFIG_MAP: Row(shapes.CONFIG_MAP, objects.data_faults, changes=objects.data_changes),
    meta.SECRET: Row(shapes.SECRET, objects.data_faults, ("type",), objects.data_changes),
    meta.NAMESPACE: Row(shapes.NAMESPACE, objects.namespace_faults),
}  # fmt: skip


def check_shape(kind: Kind, new: Json) -> None:
    """Raises InvalidObject naming the first field that cannot be read."""
    row = RULES.get(kind)
    faults = decode(new, {"metadata": METADATA, **row.shape})[1] if row is not None else []
    if faults:
        raise InvalidObject(faults[0].message, path=faults[0].path)


def faults(kind: Kind, new: Json, old: Json | None) -> list[Fault]:
    """Everything that is wrong with a new object, or with a change of one, that has the shape of its kind."""
    row = RULES.get(kind)
    if row is None or (old is not None and _same(new, old)):
        return []
    shape: Fields = {"metadata": METADATA, **row.shape}
    read = decode(new, shape)[0]
    return [*row.faults(read), *(_change_faults(row, shape, read, decode(old, shape)[0]) if old is not None else ())]


def _change_faults(row: Row, shape: Fields, new: Json, old: Json) -> Faults:
    changed = list(differences(old, new, shape))
    for path in row.fixed:
        if any(each == path or each.startswith((f"{path}.", f"{path}[")) for each in changed):
            yield Fault(path, "cannot be changed")
    if row.changes is not None:
        yield from row.changes(new, old)


def _same(new: Json, old: Json) -> bool:
    return all(new.get(part) is old.get(part) or new.get(part) == old.get(part) for part in new.keys() | old.keys()
               if part != "metadata")  # fmt: skip
