"""Bindings that wait: whose the pods' volumes are has been written, and somebody else has to bind the claims before the pods may
be bound. Meanwhile a pod's node and volumes are kept for it, and nobody stands still for that."""

from __future__ import annotations

from collections.abc import Iterator

from extender.api.meta import Time
from extender.api.operations import Bind
from extender.core.mirror import Mirror
from extender.core.volumes.awaiting import NeverBound, all_bound


class Awaiting:
    """Whoever uses it holds the mirror's lock."""

    def __init__(self) -> None:
        self._until: dict[str, tuple[Bind, Time]] = {}  # uid of the pod -> its binding, and when it is given up

    def add(self, bind: Bind, now: Time) -> None:
        assert bind.awaits is not None
        self._until[bind.uid] = (bind, now + bind.awaits.seconds)

    def next_due(self) -> Time | None:
        """When the first of them is given up."""
        return min((until for _, until in self._until.values()), default=None)

    def over(self, mirror: Mirror, now: Time) -> Iterator[tuple[Bind, str]]:
        """Those that wait no longer, with the reason where the pod cannot be bound so. A pod that is gone is forgotten."""
        for uid, (bind, until) in list(self._until.items()):
            assert bind.awaits is not None
            if not mirror.assumes(bind):
                del self._until[uid]
                continue
            try:
                done = self._is_done(bind, mirror)
                why = "" if done or now < until else f"its claims were not bound within {bind.awaits.seconds:.0f} s"
            except NeverBound as error:
                done, why = False, str(error)
            if done or why:
                del self._until[uid]
                yield bind, why

    def _is_done(self, bind: Bind, mirror: Mirror) -> bool:
        node = mirror.nodes.node[mirror.nodes.rows[bind.node]]
        if node is None:
            raise NeverBound(f"node {bind.node} is gone")
        assert bind.awaits is not None
        return all_bound(bind.awaits.claims, node, mirror.facts)
