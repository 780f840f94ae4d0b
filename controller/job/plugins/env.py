"""env -- tells every container the index of its pod within the task: VC_TASK_INDEX, and VK_TASK_INDEX as of old.

Source: volcano ed72c7c, pkg/controllers/job/plugins/env."""

from __future__ import annotations

from collections.abc import Sequence

from controller.job.plugins.base import PodPlugin, add_env, all_containers
from controller.job.seen import JobSeen
from extender.api.job import TaskSpec
from extender.api.meta import Json

VARIABLES = ("VK_TASK_INDEX", "VC_TASK_INDEX")


class Env(PodPlugin):
    name = "env"

    def __init__(self, arguments: Sequence[str]) -> None:
        """It has no arguments."""

    def decorate(self, seen: JobSeen, task: TaskSpec, index: int, pod: Json) -> None:
        add_env(all_containers(pod), *({"name": name, "value": str(index)} for name in VARIABLES))
