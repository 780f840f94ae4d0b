"""Plugins of a Job as admission knows them: their names, and the task without which they cannot build a pod.

Difference from volcano ed72c7c: ray without its head task is refused, as mpi without its master; let in, such a job never gets
a pod and waits until it is given up."""

from __future__ import annotations

from collections.abc import Mapping

from extender.api.errors import Fault, nearest
from extender.api.meta import Json
from webhook.checks import Faults

PLUGINS = ("env", "svc", "ssh", "tensorflow", "mpi", "pytorch", "ray", "hcclrank")

Flags = Mapping[str, str | int]
# plugin: the role it needs, and its flags with their defaults (controllers' pkg/controllers/job/plugins)
_ROLES: Mapping[str, tuple[str, Flags]] = {
    "mpi": ("master", {"master": "master", "worker": "worker", "port": 22}),
    "ray": ("head", {"head": "head", "worker": "worker", "headContainer": "head", "workerContainer": "worker", "port": 6379,
                     "dashboardPort": 8265, "clientPort": 10001}),
}  # fmt: skip


def plugin_faults(plugins: Json, tasks: list[Json], path: str) -> Faults:
    for name in plugins:
        if name not in PLUGINS:
            yield Fault(f"{path}.{name}", f"no plugin '{name}'{nearest(name, PLUGINS)}")
    for name, (role, known) in _ROLES.items():
        if name in plugins:
            task = read_flags(plugins[name], known)[role]
            if all(other.get("name") != task for other in tasks):
                yield Fault(f"{path}.{name}", f"no task '{task}' for the {name} {role}: name a task so, or give --{role}=<task>")


def read_flags(arguments: list[str], known: Flags) -> dict[str, str | int]:
    """-name=value or --name value, as Go's flag package reads them: it stops at the first word it cannot use."""
    values, words = dict(known), iter(arguments)
    for word in words:
        name, equals, value = word.lstrip("-").partition("=")
        if len(word) - len(word.lstrip("-")) not in (1, 2) or name not in known:
            break
        following = value if equals else next(words, None)
        if following is None or (isinstance(known[name], int) and not _is_integer(following)):
            break
        values[name] = following
    return values


def _is_integer(text: str) -> bool:
    try:
        int(text, 0)
    except ValueError:
        return False
    return True
