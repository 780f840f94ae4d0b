"""The controllers' picture of the cluster: the newest JSON of every watched object, with indexes kept by each event.

It knows nothing of controllers. Answers of our own writes are taken in as soon as they come, so that a controller never
decides on what it has itself overtaken; the watch then confirms them and is recognised as old news by its version."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from extender.api.meta import POD, Json, Key, Kind, Time, format_time, key_of, uid_of

ENDED = 10_000  # objects whose end is remembered for as long as an answer to a write of ours can be on its way

KeysOf = Callable[[Json], Iterable[Hashable]]


@dataclass(frozen=True, slots=True)
class Index:
    """A named view of one kind: `store.by(name, value)` are the objects for which `keys_of` gives `value`."""

    name: str
    kind: Kind
    keys_of: KeysOf


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """What became of one object. `old` is None for a new one, `new` for one that is gone."""

    kind: Kind
    key: Key
    old: Json | None
    new: Json | None

    @property
    def object(self) -> Json:
        """The newest that is known of it."""
        found = self.new if self.new is not None else self.old
        assert found is not None
        return found


class Store:
    """Not thread-safe: whoever shares it holds a lock."""

    def __init__(self, indexes: Iterable[Index] = ()) -> None:
        self._objects: dict[Kind, dict[Key, Json]] = {}
        self._indexes = {index.name: index for index in indexes}
        self._values: dict[str, dict[Hashable, dict[Key, None]]] = {name: {} for name in self._indexes}
        self._by_kind: dict[Kind, list[Index]] = {}
        for index in self._indexes.values():
            self._by_kind.setdefault(index.kind, []).append(index)
        self._going: dict[tuple[Kind, Key], str] = {}
        self._ended: OrderedDict[str, None] = OrderedDict()  # uids

    def get(self, kind: Kind, key: Key) -> Json | None:
        return self._objects.get(kind, {}).get(key)

    def all(self, kind: Kind) -> Mapping[Key, Json]:
        return self._objects.get(kind, {})

    def by(self, index: str, value: Hashable) -> Iterator[Json]:
        """The objects of an index under one value, in the order in which they came."""
        objects = self._objects.get(self._indexes[index].kind, {})
        return (objects[key] for key in tuple(self._values[index].get(value, ())))

    def count(self, index: str, value: Hashable) -> int:
        return len(self._values[index].get(value, ()))

    def put(self, kind: Kind, obj: Json) -> Change | None:
        """Take in a state; None where it is old news or belongs to an object that has gone or that we have deleted ourselves."""
        key = key_of(obj)
        if uid_of(obj) in self._ended:
            return None
        going = self._going.get((kind, key))
        if going is not None:
            if going == uid_of(obj):
                return None
            del self._going[(kind, key)]
        old = self.get(kind, key)
        if old is not None and uid_of(old) == uid_of(obj) and not _newer(obj, old):
            return None
        return self._set(kind, key, obj)

    def drop(self, kind: Kind, key: Key, uid: str = "") -> Change | None:
        """It is gone, says the watch. With its uid: no answer to an earlier write of ours brings it back."""
        self._going.pop((kind, key), None)
        if uid:
            self._ended[uid] = None
            if len(self._ended) > ENDED:
                self._ended.popitem(last=False)
        return self._remove(kind, key)

    def assume_deleted(self, kind: Kind, key: Key, now: Time) -> Change | None:
        """The server has accepted our deletion: a pod is ending from now on, anything else counts as gone."""
        old = self.get(kind, key)
        if old is None:
            return None
        if kind == POD:
            if old["metadata"].get("deletionTimestamp"):
                return None
            ending = {**old, "metadata": {**old["metadata"], "deletionTimestamp": format_time(now)}}
            return self._set(kind, key, ending)
        self._going[(kind, key)] = uid_of(old)
        return self._remove(kind, key)

    def _set(self, kind: Kind, key: Key, obj: Json) -> Change:
        objects = self._objects.setdefault(kind, {})
        old = objects.get(key)
        objects[key] = obj
        self._reindex(kind, key, old, obj)
        return Change(kind, key, old, obj)

    def _remove(self, kind: Kind, key: Key) -> Change | None:
        old = self._objects.get(kind, {}).pop(key, None)
        if old is None:
            return None
        self._reindex(kind, key, old, None)
        return Change(kind, key, old, None)

    def _reindex(self, kind: Kind, key: Key, old: Json | None, new: Json | None) -> None:
        for index in self._by_kind.get(kind, ()):
            before = set(index.keys_of(old)) if old is not None else set()
            after = set(index.keys_of(new)) if new is not None else set()
            values = self._values[index.name]
            for value in before - after:
                entries = values[value]
                entries.pop(key, None)
                if not entries:
                    del values[value]
            for value in after - before:
                values.setdefault(value, {})[key] = None


def _newer(obj: Json, old: Json) -> bool:
    """Versions are compared as numbers, as Kubernetes does since 1.35; what is no number is taken to be new."""
    had, has = (str(each["metadata"].get("resourceVersion") or "") for each in (old, obj))
    return not (had.isdigit() and has.isdigit()) or int(has) > int(had)
