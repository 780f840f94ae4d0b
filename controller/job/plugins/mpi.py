"""mpi -- opens the port of sshd on every container and tells the master its workers: MPI_HOST.

Arguments: master, worker (names of tasks), port. Source: volcano ed72c7c,
pkg/controllers/job/plugins/distributed-framework/mpi."""

from __future__ import annotations

from collections.abc import Sequence

from controller.job.plugins.base import PodPlugin, add_env, add_port, all_containers, hosts, task_named
from controller.job.seen import JobSeen
from extender.api.job import TaskSpec
from extender.api.job_plugins import FLAGS, parse_flags
from extender.api.meta import Json


class Mpi(PodPlugin):
    name = "mpi"

    def __init__(self, arguments: Sequence[str]) -> None:
        read = parse_flags(arguments, FLAGS[self.name])
        self.master, self.worker, self.port = str(read["master"]), str(read["worker"]), int(read["port"])

    def decorate(self, seen: JobSeen, task: TaskSpec, index: int, pod: Json) -> None:
        if task.name == self.master:
            worker = task_named(seen.job, self.worker)
            if worker is None:
                return
            add_env(all_containers(pod), {"name": "MPI_HOST", "value": ",".join(hosts(seen.job, worker))})
        for container in all_containers(pod):
            add_port(container, "mpijob-port", self.port)
