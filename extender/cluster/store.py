"""The objects of one kind in the embedded cluster, and what happened to them."""

from __future__ import annotations

from collections.abc import Iterable

from extender.api.meta import Json, Key, Kind, Time
from extender.cluster.history import Change, History
from extender.cluster.matching import Predicate
from extender.cluster.watching import last_seen


class Store:
    """Stored dicts are shared with readers and never changed: a write puts a new one in its place."""

    __slots__ = ("_order", "history", "kind", "objects")

    def __init__(self, kind: Kind, history: int) -> None:
        self.kind = kind
        self.objects: dict[str, dict[str, Json]] = {}
        self.history = History(history)
        self._order: dict[str, list[str]] = {}

    def get(self, key: Key) -> Json | None:
        named = self.objects.get(key.namespace)
        return named.get(key.name) if named is not None else None

    def put(self, key: Key, obj: Json, *, old: Json | None, version: int, when: Time) -> None:
        if old is None:
            self._order.pop(key.namespace, None)
        self.objects.setdefault(key.namespace, {})[key.name] = obj
        self.history.append(Change(version, when, "ADDED" if old is None else "MODIFIED", obj, old))

    def remove(self, key: Key, last: Json, *, old: Json, version: int, when: Time) -> None:
        self._order.pop(key.namespace, None)
        named = self.objects[key.namespace]
        del named[key.name]
        if not named:
            del self.objects[key.namespace]
        self.history.append(Change(version, when, "DELETED", last, old))

    def select(self, namespace: str, matches: Predicate | None) -> list[Json]:
        """In the order of namespace and name, as etcd keeps them."""
        found: list[Json] = []
        for place in (namespace,) if namespace else sorted(self.objects):
            named = self.objects.get(place)
            if named is None:
                continue
            names = self._order.get(place)
            if names is None:
                names = self._order[place] = sorted(named)
            found.extend(map(named.__getitem__, names))
        return [obj for obj in found if matches(obj)] if matches is not None else found

    def as_of(self, when: Time) -> tuple[dict[Key, Json], int]:
        """All objects as they were at that time and the version of it, as far as the history reaches back."""
        objects = {Key(place, name): obj for place, named in self.objects.items() for name, obj in named.items()}
        version = -1
        for change in self.history.newer_than(when):
            version = change.version - 1
            meta = change.object["metadata"]
            key = Key(meta.get("namespace", ""), meta["name"])
            if change.old is None:
                objects.pop(key, None)
            else:
                objects[key] = change.old if change.type == "MODIFIED" else last_seen(change)
        return objects, version


def matching(objects: Iterable[Json], namespace: str, matches: Predicate | None) -> list[Json]:
    return [
        obj for obj in objects
        if (not namespace or obj["metadata"].get("namespace") == namespace) and (matches is None or matches(obj))
    ]  # fmt: skip
