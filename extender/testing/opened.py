"""A session opened over built objects, for tests of single plugins: what a plugin answers, and what it makes of events.

ssn = opened(node("n").cpu(8), queue("q"), podgroup("g").queue("q"), task("t", "g").cpu(2), plugins="proportion")
assert plugin(ssn, "proportion").allocatable(ssn, queue_row(ssn, "q"), request(ssn, cpu=2), 9) == 4"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import yaml

from extender.actions import ACTIONS
from extender.api import meta
from extender.api.meta import Json, Key, Time
from extender.core.axis import IntR
from extender.core.conf import load
from extender.core.mirror import Mirror
from extender.core.plugin import Plugin
from extender.core.session import Session
from extender.core.snapshot import Snapshot
from extender.plugins import PLUGINS


def opened(*objects: Json, plugins: str | Iterable[Json], now: Time = 0.0) -> Session:
    """All plugins in one tier: their names with commas, or whole entries as in scheduler.conf."""
    mirror = Mirror()
    for obj in objects:
        mirror.apply(meta.kind_of(obj), "ADDED", obj)
    assert not mirror.unreadable, mirror.unreadable
    entries = [{"name": name.strip()} for name in plugins.split(",")] if isinstance(plugins, str) else list(plugins)
    conf = load(yaml.safe_dump({"actions": "allocate", "tiers": [{"plugins": entries}]}), PLUGINS, ACTIONS)
    return Session(Snapshot.build(mirror), conf, now, np.random.default_rng(0))


def plugin(ssn: Session, name: str) -> Any:
    """The plugin of that name, with its own methods."""
    return next(made for made in ssn.plugins if made.name == name)


def queue_row(ssn: Session, name: str) -> int:
    return ssn.queues.rows[name]


def job_row(ssn: Session, name: str, namespace: str = "default") -> int:
    return ssn.jobs.rows[Key(namespace, name)]


def task_row(ssn: Session, name: str, namespace: str = "default") -> int:
    return ssn.tasks.rows[Key(namespace, name)]


def request(ssn: Session, **resources: int | str) -> IntR:
    """(R,) of one task; gpu stands for nvidia.com/gpu."""
    named = {"nvidia.com/gpu" if name == "gpu" else name: amount for name, amount in resources.items()}
    return ssn.axis.quantities({**named, "pods": 1})


def state(made: Plugin[Any]) -> dict[str, Any]:
    """A copy of every array that a plugin holds, to compare with later."""
    return {name: value.copy() for name, value in vars(made).items() if isinstance(value, np.ndarray)}
