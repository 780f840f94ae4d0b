"""ray -- starts a Ray head and its workers, and a Service in front of the head.

Arguments: head, worker (names of tasks), headContainer, workerContainer, port, dashboardPort, clientPort.
Source: volcano ed72c7c, pkg/controllers/job/plugins/distributed-framework/ray."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from controller.job.plugins.base import PodPlugin, add_port, containers, host, owned, task_named
from controller.job.seen import JobSeen
from extender.api import labels as names
from extender.api.errors import InvalidObject
from extender.api.job import TaskSpec
from extender.api.job_plugins import FLAGS, parse_flags
from extender.api.meta import SERVICE, Json, Key, Kind


class Ray(PodPlugin):
    name = "ray"

    def __init__(self, arguments: Sequence[str]) -> None:
        read = parse_flags(arguments, FLAGS[self.name])
        self.head, self.worker = str(read["head"]), str(read["worker"])
        self.container = {self.head: str(read["headContainer"]), self.worker: str(read["workerContainer"])}
        self.ports = {"gcs": int(read["port"]), "dashboard": int(read["dashboardPort"]), "client-server": int(read["clientPort"])}

    def belongings(self, job: Key) -> Sequence[tuple[Kind, Key]]:
        return ((SERVICE, Key(job.namespace, f"{job.name}-head-svc")),)

    def objects(self, seen: JobSeen) -> Iterable[Json]:
        job, namespace = seen.key.name, seen.key.namespace
        (service,) = self.belongings(seen.key)
        ports = [{"name": name, "port": port, "protocol": "TCP", "targetPort": name} for name, port in self.ports.items()]
        selector = {names.JOB_NAME: job, names.JOB_NAMESPACE: namespace, names.TASK_SPEC: self.head}
        yield owned(seen, service, {"spec": {"type": "ClusterIP", "selector": selector, "ports": ports}})

    def decorate(self, seen: JobSeen, task: TaskSpec, index: int, pod: Json) -> None:
        head = task_named(seen.job, self.head)
        if head is None:
            raise InvalidObject(f"the ray plugin needs a head task, and there is no task '{self.head}'", path="spec.plugins.ray")
        for container in containers(pod):
            if container.get("name") != self.container.get(task.name):
                continue
            if task.name == self.head:
                for name, port in self.ports.items():
                    add_port(container, name, port)
                container["command"] = ["sh", "-c", self._head_command()]
            else:
                address = f"{host(seen.job, head, 0)}:{self.ports['gcs']}"
                container["command"] = ["sh", "-c", f"ray start --block --address={address}"]

    def _head_command(self) -> str:
        return (
            f"ray start --head --block --dashboard-host=0.0.0.0 --port={self.ports['gcs']} "
            f"--dashboard-port={self.ports['dashboard']} --ray-client-server-port={self.ports['client-server']}"
        )
