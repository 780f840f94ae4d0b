"""Where recorded stories are played."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from extender.api.meta import Json
from extender.cluster.clock import Clock
from extender.cluster.port import Cluster


class Stage(Protocol):
    """A cluster of the stories' kind, and what a watch has seen on it."""

    @property
    def cluster(self) -> Cluster: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def phases(self) -> Mapping[str, list[str]]:
        """Kind/name -> the phases that it went through."""

    @property
    def born(self) -> Mapping[str, list[str]]:
        """Kind/name -> uids of the objects that had this name."""

    def create(self, obj: Json) -> None: ...

    def react(self) -> None:
        """Let controllers see what there is before more comes."""

    def settle(self, wait: float, settled: Callable[[], bool]) -> None:
        """Until nothing changes any more and no sooner than after `wait` seconds; `settled` says whether it is as it shall be."""

    def settle_until(self, when: float) -> None: ...
