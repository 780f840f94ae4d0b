"""Garbage collection: what owners leave behind, and what a namespace takes with it.

Nothing is searched: owners.py tells which owners went, so the cost follows what was deleted. Order is that of creation, so
the outcome is the same every time. Source: kubernetes v1.36.1 pkg/controller/garbagecollector, pkg/controller/namespace."""

from __future__ import annotations

import contextlib
from typing import Protocol

from extender.api.errors import Denied, NotFound
from extender.api.meta import KINDS, NAMESPACE, Json, Key, key_of
from extender.cluster.owners import FOREGROUND, ORPHAN, Owners, Ref
from extender.cluster.port import Reader, Writer


class Collectable(Reader, Writer, Protocol):
    owners: Owners


def collect(cluster: Collectable) -> None:
    """Until nothing is left to do."""
    while _owners_gone(cluster) or _owners_waiting(cluster) or _namespaces_going(cluster):
        pass


def _owners_gone(cluster: Collectable) -> bool:
    acted = False
    while cluster.owners.gone:
        uid = next(iter(cluster.owners.gone))
        del cluster.owners.gone[uid]
        for ref in cluster.owners.dependents(uid):
            acted = True
            _release(cluster, ref, uid)
    return acted


def _release(cluster: Collectable, ref: Ref, uid: str, propagation: str = "Background") -> None:
    """One owner of a dependent is gone: another living one keeps it, otherwise it goes too."""
    obj = _get(cluster, ref)
    if obj is None:
        return
    owners = obj["metadata"].get("ownerReferences") or []
    living = [owner for owner in owners if owner.get("uid") != uid and cluster.owners.alive(owner.get("uid", ""))]
    if living:
        _set_owners(cluster, ref, living)
    elif "deletionTimestamp" not in obj["metadata"]:
        with contextlib.suppress(Denied):
            cluster.delete(ref.kind, ref.key, uid=obj["metadata"]["uid"], propagation=propagation)


def _owners_waiting(cluster: Collectable) -> bool:
    """Owners that wait for their dependents to go (foreground) or to be set free (orphan)."""
    acted = False
    for ref in list(cluster.owners.waiting):
        obj = _get(cluster, ref)
        finalizers = obj["metadata"].get("finalizers") or [] if obj is not None else []
        if obj is None or "deletionTimestamp" not in obj["metadata"]:
            del cluster.owners.waiting[ref]
        elif ORPHAN in finalizers:
            acted = True
            _set_free(cluster, obj)
            _drop_finalizer(cluster, ref, obj, ORPHAN)
        elif FOREGROUND in finalizers:
            acted = _advance_foreground(cluster, ref, obj) or acted
        else:
            del cluster.owners.waiting[ref]
    return acted


def _set_free(cluster: Collectable, owner: Json) -> None:
    uid = owner["metadata"]["uid"]
    for ref in cluster.owners.dependents(uid):
        obj = _get(cluster, ref)
        if obj is not None:
            _set_owners(cluster, ref, [o for o in obj["metadata"].get("ownerReferences") or [] if o.get("uid") != uid])


def _advance_foreground(cluster: Collectable, ref: Ref, owner: Json) -> bool:
    """Delete the dependents; the owner goes when none that blocks it is left."""
    acted, blocked = False, False
    uid = owner["metadata"]["uid"]
    for dependent in cluster.owners.dependents(uid):
        obj = _get(cluster, dependent)
        if obj is None:
            continue
        if "deletionTimestamp" not in obj["metadata"]:
            acted = True
            _release(cluster, dependent, uid, "Foreground" if cluster.owners.dependents(obj["metadata"]["uid"]) else "Background")
        still = _get(cluster, dependent)
        blocked = blocked or (still is not None and _blocks(still, uid))
    if not blocked:
        _drop_finalizer(cluster, ref, owner, FOREGROUND)
        return True
    return acted


def _blocks(dependent: Json, uid: str) -> bool:
    owners = dependent["metadata"].get("ownerReferences") or []
    return any(owner.get("uid") == uid and owner.get("blockOwnerDeletion") for owner in owners)


def _namespaces_going(cluster: Collectable) -> bool:
    acted = False
    for namespace in cluster.list(NAMESPACE).objects:
        if "deletionTimestamp" in namespace["metadata"]:
            acted = _empty(cluster, namespace) or acted
    return acted


def _empty(cluster: Collectable, namespace: Json) -> bool:
    name = namespace["metadata"]["name"]
    acted, left = False, False
    for kind in KINDS:
        if not kind.namespaced:
            continue
        for obj in cluster.list(kind, name).objects:
            if "deletionTimestamp" not in obj["metadata"]:
                acted = True
                cluster.delete(kind, key_of(obj), uid=obj["metadata"]["uid"])
            left = left or _get(cluster, Ref(kind, key_of(obj))) is not None
    if not left and not namespace["metadata"].get("finalizers"):
        cluster.patch(NAMESPACE, Key("", name), {"spec": {"finalizers": None}})
        return True
    return acted


def _set_owners(cluster: Collectable, ref: Ref, owners: list[Json]) -> None:
    cluster.patch(ref.kind, ref.key, {"metadata": {"ownerReferences": owners or None}})


def _drop_finalizer(cluster: Collectable, ref: Ref, obj: Json, name: str) -> None:
    kept = [finalizer for finalizer in obj["metadata"]["finalizers"] if finalizer != name]
    cluster.patch(ref.kind, ref.key, {"metadata": {"finalizers": kept or None}})


def _get(cluster: Collectable, ref: Ref) -> Json | None:
    try:
        return cluster.get(ref.kind, ref.key)
    except NotFound:
        return None
