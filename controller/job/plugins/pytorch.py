"""pytorch -- tells every container where the master listens and which rank it has.

Arguments: master, worker (names of tasks), port, wait-master-enabled, wait-master-timeout, wait-master-image.
Source: volcano ed72c7c, pkg/controllers/job/plugins/distributed-framework/pytorch."""

from __future__ import annotations

from collections.abc import Sequence

from controller.job.plugins.base import PodPlugin, add_env, add_port, containers, host, task_named
from controller.job.seen import JobSeen
from extender.api.job import TaskSpec
from extender.api.job_plugins import FLAGS, parse_flags
from extender.api.meta import Json

WAITER = "wait-for-master"


class Pytorch(PodPlugin):
    name = "pytorch"

    def __init__(self, arguments: Sequence[str]) -> None:
        read = parse_flags(arguments, FLAGS[self.name])
        self.master, self.worker = str(read["master"]), str(read["worker"])
        self.port, self.timeout = int(read["port"]), int(read["wait-master-timeout"])
        self.waits, self.image = bool(read["wait-master-enabled"]), str(read["wait-master-image"])

    def decorate(self, seen: JobSeen, task: TaskSpec, index: int, pod: Json) -> None:
        job = seen.job
        master, worker = task_named(job, self.master), task_named(job, self.worker)
        if master is None:
            return
        address = host(job, master, 0)
        if self.waits and task.name == self.worker:
            self._wait(pod, address)
        world = master.replicas + (worker.replicas if worker is not None else 0)
        variables = [
            {"name": "MASTER_ADDR", "value": address},
            {"name": "MASTER_PORT", "value": str(self.port)},
            {"name": "WORLD_SIZE", "value": str(world)},
        ]
        if task.name in (self.master, self.worker):
            variables.append({"name": "RANK", "value": "0" if task.name == self.master else str(index + 1)})
        for container in containers(pod):
            add_port(container, "pytorchjob-port", self.port)
        add_env(containers(pod), *variables)

    def _wait(self, pod: Json, address: str) -> None:
        """A worker that starts before its master listens would give up; so it looks every two seconds."""
        waiting = pod["spec"].setdefault("initContainers", [])
        if any(each.get("name") == WAITER for each in waiting):
            return
        script = (
            f"left={self.timeout}\n"
            f"until nc -z {address} {self.port} 2>/dev/null || (: < /dev/tcp/{address}/{self.port}) 2>/dev/null; do\n"
            '  if [ "$left" -le 0 ]; then echo "the master does not answer"; exit 1; fi\n'
            "  left=$((left - 2))\n"
            "  sleep 2\n"
            "done\n"
        )
        waiting.append({"name": WAITER, "image": self.image, "command": ["sh", "-c", script]})
