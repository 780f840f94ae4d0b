"""Plugins of a Job as admission knows them: their names, and the task without which they cannot build a pod.

Difference from volcano ed72c7c: ray without its head task is refused, as mpi without its master; let in, such a job never gets
a pod and waits until it is given up."""

from __future__ import annotations

from collections.abc import Mapping

from extender.api.checks import Faults
from extender.api.errors import Fault, nearest
from extender.api.job_plugins import MPI, PLUGINS, RAY, Flags, parse_flags
from extender.api.meta import Json

_ROLES: Mapping[str, tuple[str, Flags]] = {"mpi": ("master", MPI), "ray": ("head", RAY)}  # the role it needs, its flags


def plugin_faults(plugins: Json, tasks: list[Json], path: str) -> Faults:
    for name in plugins:
        if name not in PLUGINS:
            yield Fault(f"{path}.{name}", f"no plugin '{name}'{nearest(name, PLUGINS)}")
    for name, (role, known) in _ROLES.items():
        if name in plugins:
            task = parse_flags(plugins[name], known)[role]
            if all(other.get("name") != task for other in tasks):
                yield Fault(f"{path}.{name}", f"no task '{task}' for the {name} {role}: name a task so, or give --{role}=<task>")
