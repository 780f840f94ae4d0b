"""What a job plugin is. Each is one file: its arguments, the objects it wants beside the pods, what it adds to a pod."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from controller.job.seen import JobSeen, pod_name
from extender.api.job import Job, TaskSpec
from extender.api.meta import Json, Key, Kind, owner_reference


class Plugin(Protocol):
    """One plugin of one job, its arguments read. All of it is pure, and safe to run again."""

    name: str

    def __init__(self, arguments: Sequence[str]) -> None: ...

    def belongings(self, job: Key) -> Sequence[tuple[Kind, Key]]:
        """The objects the job needs beside its pods."""

    def objects(self, seen: JobSeen) -> Iterable[Json]:
        """The same, whole. Existing ones are aligned by `align`."""

    def align(self, stored: Json, wanted: Json) -> Json | None:
        """A merge patch for an object that exists, or None to leave it."""

    def decorate(self, seen: JobSeen, task: TaskSpec, index: int, pod: Json) -> None:
        """Add to a new pod. May raise PumiceError: then no pod of the job can be made."""

    @property
    def recorded(self) -> bool:
        """Listed in status.controlledResources."""


class PodPlugin:
    """A plugin that only adds to pods."""

    name = ""
    recorded = True

    def belongings(self, job: Key) -> Sequence[tuple[Kind, Key]]:
        return ()

    def objects(self, seen: JobSeen) -> Iterable[Json]:
        return ()

    def align(self, stored: Json, wanted: Json) -> Json | None:
        return None


def host(job: Job, task: TaskSpec, index: int) -> str:
    """The name under which pod `index` of a task is found: <hostname>.<subdomain>."""
    spec = task.template.get("spec") or {}
    return f"{host_name(job, task, index)}.{spec.get('subdomain') or job.metadata.name}"


def host_name(job: Job, task: TaskSpec, index: int) -> str:
    return str((task.template.get("spec") or {}).get("hostname") or pod_name(job, task, index))


def hosts(job: Job, task: TaskSpec) -> list[str]:
    """Of all pods of a task; a template that fixes the host name has just one."""
    fixed = bool((task.template.get("spec") or {}).get("hostname"))
    return [host(job, task, index) for index in range(min(task.replicas, 1) if fixed else task.replicas)]


def task_named(job: Job, name: str) -> TaskSpec | None:
    return next((task for task in job.spec.tasks if task.name == name), None)


def owned(seen: JobSeen, belonging: tuple[Kind, Key], content: Mapping[str, object]) -> Json:
    """An object that goes with the job."""
    kind, key = belonging
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": {"name": key.name, "namespace": key.namespace, "ownerReferences": [owner_reference(seen.raw)]},
        **content,
    }


def containers(pod: Json) -> Iterator[Json]:
    """Ordinary ones."""
    yield from pod["spec"].get("containers") or ()


def all_containers(pod: Json) -> Iterator[Json]:
    yield from containers(pod)
    yield from pod["spec"].get("initContainers") or ()


def add_env(each: Iterable[Json], *variables: Json) -> None:
    for container in each:
        container.setdefault("env", []).extend(dict(variable) for variable in variables)


def add_volume(pod: Json, volume: Json, mount: Json) -> None:
    pod["spec"].setdefault("volumes", []).append(volume)
    for container in all_containers(pod):
        container.setdefault("volumeMounts", []).append(dict(mount))


def add_port(container: Json, name: str, number: int) -> None:
    """Unless the number is declared already."""
    ports = container.setdefault("ports", [])
    if all(port.get("containerPort") != number for port in ports):
        ports.append({"name": name, "containerPort": number, "protocol": "TCP"})


MakeKeys = Callable[[], tuple[str, str]]
