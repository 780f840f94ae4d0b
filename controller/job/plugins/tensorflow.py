"""tensorflow -- tells every container the cluster and its own place in it: TF_CONFIG.

Arguments: ps, worker, chief, evaluator (names of tasks), port. Source: volcano ed72c7c,
pkg/controllers/job/plugins/distributed-framework/tensorflow."""

from __future__ import annotations

import json
from collections.abc import Sequence

from controller.job.plugins.base import PodPlugin, add_env, containers, host, task_named
from controller.job.seen import JobSeen
from extender.api.job import TaskSpec
from extender.api.job_plugins import FLAGS, parse_flags
from extender.api.meta import Json

ROLES = ("ps", "worker", "chief", "evaluator")


class Tensorflow(PodPlugin):
    name = "tensorflow"

    def __init__(self, arguments: Sequence[str]) -> None:
        read = parse_flags(arguments, FLAGS[self.name])
        self.tasks = {role: str(read[role]) for role in ROLES}
        self.port = int(read["port"])

    def decorate(self, seen: JobSeen, task: TaskSpec, index: int, pod: Json) -> None:
        job = seen.job
        if len(job.spec.tasks) == 1 and job.spec.tasks[0].replicas == 1:
            return
        cluster = {}
        for role, name in self.tasks.items():
            member = task_named(job, name)
            if member is not None and member.replicas > 0:
                cluster[role] = [f"{host(job, member, number)}:{self.port}" for number in range(member.replicas)]
        role = next((role for role, name in self.tasks.items() if name == task.name), task.name)
        text = json.dumps({"cluster": cluster, "task": {"type": role, "index": index}}, separators=(",", ":"))
        add_env(containers(pod), {"name": "TF_CONFIG", "value": text})
