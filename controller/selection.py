"""All controllers in one table, and which of them --controllers asks for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from controller.colocation import ColocationController
from controller.cronjob import CronJobController
from controller.garbage import GarbageController
from controller.hypernode import HyperNodeController
from controller.job.controller import JobController
from controller.jobflow import JobFlowController
from controller.jobtemplate import JobTemplateController
from controller.nodeshard import ShardingController
from controller.podgroup import PodGroupController
from controller.queue import QueueController
from controller.reconciler import Controller
from extender.api.errors import ConfError, nearest

ALL: tuple[Callable[[], Controller], ...] = (
    JobController,
    QueueController,
    PodGroupController,
    GarbageController,
    JobFlowController,
    JobTemplateController,
    CronJobController,
    HyperNodeController,
    ColocationController,
    ShardingController,
)
DEFAULT = ("*", "-sharding-controller")  # --controllers


def chosen(words: Sequence[str] = DEFAULT) -> list[Controller]:
    """The controllers that --controllers asks for: the first word about one decides, else "*" or nothing at all.

    Raises ConfError for a name given twice, or one that is none."""
    known = {make().name: make for make in ALL}
    named = [word.lstrip("+-") for word in words if word != "*"]
    for name in named:
        if name not in known:
            raise ConfError(f"--controllers: there is no controller '{name}'{nearest(name, known)}")
        if named.count(name) > 1:
            raise ConfError(f"--controllers: '{name}' is given more than once")
    everything = not words or "*" in words
    return [make() for name, make in known.items() if name in words or f"+{name}" in words
            or (everything and f"-{name}" not in words)]  # fmt: skip
