"""Who owns whom: uid -> object, owner -> dependents, and the garbage collection that follows from it.

Source: kubernetes v1.36.1 pkg/controller/garbagecollector. One difference, on purpose: an object whose owner has never
been seen is left alone, where Kubernetes would look the owner up and then delete the object."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from extender.api.meta import Json, Key, Kind, key_of

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"


class Ref(NamedTuple):
    kind: Kind
    key: Key


class Owners:
    """Kept up by every write. `gone` lists the uids that went and had dependents, in that order."""

    def __init__(self) -> None:
        self._by_uid: dict[str, Ref] = {}
        self._dependents: dict[str, dict[Ref, None]] = {}
        self.gone: dict[str, None] = {}
        self.waiting: dict[Ref, None] = {}

    def note(self, kind: Kind, new: Json | None, old: Json | None) -> None:
        """`new` is None where the object was removed, `old` where it was created."""
        before = owner_uids(old) if old is not None else ()
        after = owner_uids(new) if new is not None else ()
        meta = (new or old or {})["metadata"]
        if old is None:
            self._by_uid[meta["uid"]] = Ref(kind, key_of({"metadata": meta}))
        elif new is None:
            self._by_uid.pop(meta["uid"], None)
            if meta["uid"] in self._dependents:
                self.gone[meta["uid"]] = None
        if before or after:
            self._relink(Ref(kind, key_of({"metadata": meta})), before, after)
        finalizers = meta.get("finalizers")
        if finalizers and new is not None and "deletionTimestamp" in meta and (FOREGROUND in finalizers or ORPHAN in finalizers):
            self.waiting[Ref(kind, key_of({"metadata": meta}))] = None

    def _relink(self, ref: Ref, before: Iterable[str], after: Iterable[str]) -> None:
        for uid in before:
            if uid not in after and ref in self._dependents.get(uid, ()):
                del self._dependents[uid][ref]
                if not self._dependents[uid]:
                    del self._dependents[uid]
        for uid in after:
            self._dependents.setdefault(uid, {})[ref] = None

    def alive(self, uid: str) -> bool:
        return uid in self._by_uid

    def where(self, uid: str) -> Ref | None:
        return self._by_uid.get(uid)

    def dependents(self, uid: str) -> list[Ref]:
        """In the order in which they were made."""
        return list(self._dependents.get(uid, ()))


def owner_uids(obj: Json) -> tuple[str, ...]:
    owners = obj["metadata"].get("ownerReferences")
    return tuple(owner.get("uid", "") for owner in owners) if owners else ()
