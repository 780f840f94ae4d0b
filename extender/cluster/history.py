"""What happened to the objects of one kind: a bounded log that every watch reads with a cursor of its own.

Nothing is queued per watch, so a write costs the same however many watches are open."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from extender.api.errors import Gone
from extender.api.meta import Json, Time


class Change(NamedTuple):
    """One event. `old` is the object before it (None for ADDED), which a watch with a selector needs."""

    version: int
    when: Time
    type: str
    object: Json
    old: Json | None


class History:
    """The last `limit` changes of one kind. Positions count from the first change ever, so they never move."""

    __slots__ = ("_changes", "_dropped", "_dropped_version", "_limit", "_versions")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._changes: list[Change] = []
        self._versions: list[int] = []
        self._dropped = 0
        self._dropped_version = 0

    def append(self, change: Change) -> None:
        self._changes.append(change)
        self._versions.append(change.version)
        if len(self._changes) > self._limit + self._limit // 8 + 16:
            surplus = len(self._changes) - self._limit
            self._dropped += surplus
            self._dropped_version = self._versions[surplus - 1]
            del self._changes[:surplus], self._versions[:surplus]

    @property
    def end(self) -> int:
        """The position after the last change."""
        return self._dropped + len(self._changes)

    def after(self, version: int) -> int:
        """The position of the first change after `version`. Raises Gone where changes since then were forgotten."""
        kept = max(len(self._changes) - self._limit, 0)
        oldest = self._versions[kept - 1] if kept else self._dropped_version
        if version < oldest:
            raise Gone(f"too old resource version: {version} ({oldest})")
        return self._dropped + bisect_right(self._versions, version)

    def since(self, position: int) -> list[Change]:
        """The changes from `position` on. Raises Gone where the first of them was forgotten."""
        if position < self._dropped:
            raise Gone(f"too old resource version: the log begins after {self._dropped_version}")
        return self._changes[position - self._dropped :]

    def newer_than(self, when: Time) -> list[Change]:
        """The changes after that time, latest first."""
        found = []
        for change in reversed(self._changes):
            if change.when <= when:
                break
            found.append(change)
        return found
