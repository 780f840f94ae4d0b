"""schedule(snapshot, conf, now, rng) -> Result: the whole of a session, pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from extender.api.meta import Time
from extender.api.operations import Operation
from extender.core.closing import close
from extender.core.conf import Conf
from extender.core.reasons import Waiting
from extender.core.reservations import Reservations
from extender.core.session import Session
from extender.core.snapshot import Snapshot


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """What to do, in this order, and why the rest waits."""

    operations: list[Operation]
    waiting: list[Waiting]
    session: Session


def schedule(
    snapshot: Snapshot,
    conf: Conf,
    now: Time,
    rng: np.random.Generator | None = None,
    reservations: Reservations | None = None,
) -> Result:
    """Open a session, run the configured actions, close it."""
    ssn = Session(snapshot, conf, now, rng if rng is not None else np.random.default_rng(0), reservations)
    for entry in conf.actions:
        entry.action.run(ssn, entry.args)
    waiting = close(ssn)
    return Result(ssn.operations, waiting, ssn)
