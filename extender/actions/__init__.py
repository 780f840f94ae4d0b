"""ACTIONS: every action name of scheduler.conf. The only registration."""

from __future__ import annotations

from extender.actions import allocate, backfill, enqueue, preempt, reclaim
from extender.core.conf import Action

ACTIONS: dict[str, Action] = {
    action.name: action
    for action in (
        enqueue.ACTION,
        allocate.ACTION,
        backfill.ACTION,
        preempt.ACTION,
        reclaim.ACTION,
    )
}

# Names that upstream knows and this version does not have yet: skipped with a warning.
LATER = ("shuffle", "gangpreempt", "gangreclaim")
