"""The rules of `metadata` that hold for every kind: names, versions, generations, finalizers, deletion.

Sources: kubernetes v1.36.1 staging/src/k8s.io/apiserver/pkg/registry/rest (BeforeCreate, BeforeUpdate, BeforeDelete),
k8s.io/apimachinery v0.36.1 pkg/api/validation/objectmeta.go."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from extender.api.errors import BadRequest, ClusterError, Fault
from extender.api.meta import (
    BATCH_CRON_JOB,
    BATCH_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    NAMESPACE,
    NETWORK_POLICY,
    PDB,
    POD,
    PRIORITY_CLASS,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
    Json,
    Key,
    Kind,
    Time,
    format_time,
    key_of,
)
from extender.cluster import refusals
from extender.cluster.names import annotation_faults, key_fault, label_faults, name_fault
from extender.cluster.owners import FOREGROUND, ORPHAN

_SYSTEM_FIELDS = ("uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds")
_FIXED = ("deletionTimestamp", "deletionGracePeriodSeconds")
_MAY_BE_EMPTY = ("labels", "annotations", "finalizers", "ownerReferences")
_CORE_WITH_GENERATION = {
    POD, DEPLOYMENT, REPLICA_SET, STATEFUL_SET, DAEMON_SET, REPLICATION_CONTROLLER, BATCH_JOB, BATCH_CRON_JOB, PDB,
    NETWORK_POLICY, PRIORITY_CLASS,
}  # fmt: skip
SAFE_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # k8s.io/apimachinery pkg/util/rand: no word comes of them
# Kinds whose names are DNS labels, because they become host names.
_LABEL_NAMES = {"Namespace", "Service"}
_STANDARD_FINALIZERS = ("kubernetes", ORPHAN, FOREGROUND)


def is_custom(kind: Kind) -> bool:
    """Whether a CRD defines the kind."""
    return kind.group.endswith(".volcano.sh")


def has_generation(kind: Kind) -> bool:
    return is_custom(kind) or kind in _CORE_WITH_GENERATION


# --- coming in --------------------------------------------------------------------------------------------------------


def place(kind: Kind, new: Json) -> None:
    """Fill in apiVersion, kind and namespace. Raises BadRequest where they contradict the kind that was asked for."""
    for field, want in (("apiVersion", kind.api_version), ("kind", kind.name)):
        given = new.setdefault(field, want)
        if given != want:
            raise BadRequest(f"the {field} in the data ({given}) does not match the expected {field} ({want})")
    meta = new.setdefault("metadata", {})
    if kind.namespaced:
        meta["namespace"] = meta.get("namespace") or "default"
    else:
        meta.pop("namespace", None)
    _tidy(meta)


def begin(kind: Kind, new: Json, *, uid: str, now: str) -> None:
    """What the system says about a new object, whatever the request said."""
    meta = new["metadata"]
    if meta.get("resourceVersion"):
        raise ClusterError("resourceVersion should not be set on objects to be created")
    for field in _SYSTEM_FIELDS:
        meta.pop(field, None)
    complete(kind, new, uid=uid, now=now)


def complete(kind: Kind, new: Json, *, uid: str, now: str) -> None:
    """The same, where nothing was said."""
    meta = new["metadata"]
    meta["uid"] = meta.get("uid") or uid
    meta["creationTimestamp"] = meta.get("creationTimestamp") or now
    if has_generation(kind):
        meta.setdefault("generation", 1)


def generated_name(prefix: str, rng: random.Random) -> str:
    return prefix[:58] + "".join(rng.choices(SAFE_LETTERS, k=5))


def _tidy(meta: Json) -> None:
    meta.pop("managedFields", None)
    meta.pop("selfLink", None)
    for field in _MAY_BE_EMPTY:
        if field in meta and not meta[field]:
            del meta[field]


# --- changing ---------------------------------------------------------------------------------------------------------


def check_preconditions(kind: Kind, key: Key, new: Json, old: Json) -> None:
    """Raises Conflict where the change was made for another object or an older version."""
    have, want = old["metadata"], new.get("metadata") or {}
    check_uid(kind, new, old)
    if want.get("resourceVersion") and want["resourceVersion"] != have["resourceVersion"]:
        raise refusals.conflict(kind, key.name, refusals.STALE)
    if key_of(new) != key:
        raise BadRequest(f"the name of the object ({key_of(new)}) does not match the name on the URL ({key})")


def check_uid(kind: Kind, new: Json, old: Json) -> None:
    have, want = old["metadata"], new.get("metadata") or {}
    if want.get("uid") and want["uid"] != have["uid"]:
        raise refusals.other_uid(kind, have["name"], want["uid"], have["uid"])


def check_version_given(kind: Kind, new: Json) -> None:
    """A custom resource cannot be replaced blindly."""
    if is_custom(kind) and not new["metadata"].get("resourceVersion"):
        fault = Fault("metadata.resourceVersion", "Invalid value: 0: must be specified for an update")
        raise refusals.invalid(kind, new["metadata"].get("name", ""), [fault])


def check_fixed(kind: Kind, new: Json, old: Json) -> None:
    """Raises Invalid where a write would begin a deletion, or gives it another time."""
    meta, have = new["metadata"], old["metadata"]
    faults = [
        Fault(f"metadata.{field}", f'Invalid value: "{meta[field]}": field is immutable')
        for field in _FIXED
        if meta.get(field) is not None and meta[field] != have.get(field) and not (field == "deletionTimestamp" and field in have)
    ]
    if faults:
        raise refusals.invalid(kind, have["name"], faults)


def carried_over(kind: Kind, new: Json, old: Json) -> Json:
    """`new` with a metadata dict of its own, in which what a client cannot change is as it was."""
    have = old["metadata"]
    meta = dict(new.get("metadata") or {})
    for field in (*_SYSTEM_FIELDS, "resourceVersion"):
        if field in have:
            meta[field] = have[field]
        else:
            meta.pop(field, None)
    _tidy(meta)
    return {**new, "apiVersion": kind.api_version, "kind": kind.name, "metadata": meta}


def count_generation(kind: Kind, new: Json, old: Json) -> None:
    """The generation goes up with whatever the status subresource does not cover: PodGroups count status writes too."""
    if not has_generation(kind):
        return
    apart = ("metadata", "status") if kind.status_subresource else ("metadata",)
    for field in new.keys() | old.keys():
        if field not in apart and new.get(field) != old.get(field):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
            return


def check_update(kind: Kind, new: Json, old: Json) -> None:
    """Raises Invalid."""
    meta, before = new["metadata"], old["metadata"]
    faults = []
    if "deletionTimestamp" in before:
        added = [name for name in meta.get("finalizers", ()) if name not in before.get("finalizers", ())]
        if added:
            message = "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers "
            faults.append(Fault("metadata.finalizers", message + str(added)))
    faults += _metadata_faults(kind, meta, before)
    if faults:
        raise refusals.invalid(kind, meta["name"], faults)


# --- checking ---------------------------------------------------------------------------------------------------------


def faults_of_new(kind: Kind, new: Json) -> list[Fault]:
    """Every fault of a new object's metadata."""
    meta, is_label = new["metadata"], kind.name in _LABEL_NAMES
    named = {"name": meta.get("name"), "generateName": _with_an_end(meta.get("generateName", ""))}
    faults = [
        Fault(f"metadata.{field}", why) for field, name in named.items() if name and (why := name_fault(name, label=is_label))
    ]
    if not meta.get("name"):
        faults.append(Fault("metadata.name", "Required value: name or generateName is required"))
    return [*faults, *_metadata_faults(kind, meta, {})]


def _with_an_end(prefix: str) -> str:
    """As it is judged: what is appended to it makes a last dash an inner one."""
    return f"{prefix[:-2]}a" if len(prefix) > 1 and prefix.endswith("-") else prefix


def _finalizer_faults(finalizers: Sequence[str], *, custom: bool) -> Iterator[Fault]:
    for index, name in enumerate(finalizers):
        if why := key_fault(name):
            yield Fault("metadata.finalizers", f'Invalid value: "{name}": {why}')
        elif not custom and "/" not in name and name not in _STANDARD_FINALIZERS:
            why = "is not one of the system's own and must have a domain in front, such as example.com/mine"
            yield Fault(f"metadata.finalizers[{index}]", f'Invalid value: "{name}": {why}')
    if {FOREGROUND, ORPHAN} <= set(finalizers):
        yield Fault("metadata.finalizers", f"Invalid value: finalizer {ORPHAN} and {FOREGROUND} cannot be both set")


def _metadata_faults(kind: Kind, meta: Json, before: Json) -> list[Fault]:
    faults: list[Fault] = []
    if meta.get("labels") is not before.get("labels"):
        faults += label_faults(meta.get("labels"), "metadata.labels")
    if meta.get("annotations") is not before.get("annotations"):
        faults += annotation_faults(meta.get("annotations") or {})
    if meta.get("ownerReferences") is not before.get("ownerReferences"):
        faults += _owner_faults(meta.get("ownerReferences") or [])
    if meta.get("finalizers") != before.get("finalizers") and not (before and is_custom(kind)):
        faults += _finalizer_faults(meta.get("finalizers") or (), custom=is_custom(kind))
    return faults


def _owner_faults(owners: list[Json]) -> list[Fault]:
    faults = [
        Fault(f"metadata.ownerReferences.{field}", "Required value: must not be empty")
        for owner in owners
        for field in ("apiVersion", "kind", "name", "uid")
        if not owner.get(field)
    ]
    controllers = [owner for owner in owners if owner.get("controller")]
    if len(controllers) > 1:
        names = " and ".join(f"{owner.get('kind')}/{owner.get('name')}" for owner in controllers)
        message = f"Invalid value: Only one reference can have Controller set to true. Found: {names}"
        faults.append(Fault("metadata.ownerReferences", message))
    return faults


# --- going away -------------------------------------------------------------------------------------------------------


def is_marked_first(kind: Kind, old: Json) -> bool:
    """Whether a deletion without any grace is seen as a change before it is seen as the end: so with pods."""
    return kind == POD and "deletionTimestamp" not in old["metadata"]


def finalizers_after(old: Json, propagation: str) -> list[str]:
    """The finalizers an object has once its deletion with that propagation has begun."""
    if propagation not in ("Background", "Foreground", "Orphan"):
        raise BadRequest(f'invalid propagationPolicy "{propagation}"; known: Background, Foreground, Orphan')
    kept = [name for name in old["metadata"].get("finalizers", ()) if name not in (FOREGROUND, ORPHAN)]
    if propagation == "Background":
        return kept
    return [*kept, FOREGROUND if propagation == "Foreground" else ORPHAN]


def marked_for_deletion(old: Json, finalizers: list[str], grace: int, now: Time) -> Json:
    """A deletion that has begun already can only be shortened."""
    meta = dict(old["metadata"])
    if "deletionTimestamp" not in meta:
        if "generation" in meta:
            meta["generation"] += 1
        meta["deletionTimestamp"] = format_time(now + grace)
        meta["deletionGracePeriodSeconds"] = grace
    elif grace < meta.get("deletionGracePeriodSeconds", 0):
        meta["deletionTimestamp"] = format_time(now + grace)
        meta["deletionGracePeriodSeconds"] = grace
    if finalizers:
        meta["finalizers"] = finalizers
    else:
        meta.pop("finalizers", None)
    return {**old, "metadata": meta}


def finished(kind: Kind, new: Json) -> bool:
    """Whether a write leaves an object that is being deleted with nothing to wait for."""
    meta = new["metadata"]
    if "deletionTimestamp" not in meta or meta.get("finalizers") or meta.get("deletionGracePeriodSeconds"):
        return False
    return kind != NAMESPACE or not (new.get("spec") or {}).get("finalizers")
