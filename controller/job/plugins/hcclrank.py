"""hcclrank -- numbers the pods of an Ascend job: annotation hccl/rankIndex. It comes last, for it may follow RANK.

Arguments: master, worker (names of tasks). Source: volcano ed72c7c,
pkg/controllers/job/plugins/distributed-framework/hcclrank."""

from __future__ import annotations

from collections.abc import Sequence

from controller.job.plugins.base import PodPlugin, containers, task_named
from controller.job.seen import JobSeen
from extender.api.job import TaskSpec
from extender.api.job_plugins import FLAGS, parse_flags
from extender.api.meta import Json

RANK_INDEX = "hccl/rankIndex"


class HcclRank(PodPlugin):
    name = "hcclrank"
    recorded = False

    def __init__(self, arguments: Sequence[str]) -> None:
        read = parse_flags(arguments, FLAGS[self.name])
        self.master, self.worker = str(read["master"]), str(read["worker"])

    def decorate(self, seen: JobSeen, task: TaskSpec, index: int, pod: Json) -> None:
        notes = pod["metadata"].setdefault("annotations", {})
        if notes.get(RANK_INDEX):
            return
        given = next((env.get("value") for each in containers(pod) for env in each.get("env") or ()
                      if env.get("name") == "RANK"), None)  # fmt: skip
        if given is not None:
            notes[RANK_INDEX] = given
        elif task.name == self.master:
            notes[RANK_INDEX] = str(index)
        elif task.name == self.worker:
            master = task_named(seen.job, self.master)
            notes[RANK_INDEX] = str(index + (master.replicas if master is not None else 0))
