"""Plugins of a Job as admission knows them: their names, and the arguments it must read."""

from __future__ import annotations

from extender.api.errors import Fault, nearest
from extender.api.meta import Json
from webhook.checks import Faults

PLUGINS = ("env", "svc", "ssh", "tensorflow", "mpi", "pytorch", "ray", "hcclrank")
_MPI_FLAGS = {"master": "master", "worker": "worker", "port": "22"}


def plugin_faults(plugins: Json, tasks: list[Json], path: str) -> Faults:
    for name in plugins:
        if name not in PLUGINS:
            yield Fault(f"{path}.{name}", f"no plugin '{name}'{nearest(name, PLUGINS)}")
    if "mpi" in plugins:
        master = flags(plugins["mpi"], _MPI_FLAGS)["master"]
        if all(task.get("name") != master for task in tasks):
            yield Fault(f"{path}.mpi", f"no task '{master}' for the mpi master: name a task so, or give --master=<task>")


def flags(arguments: list[str], defaults: dict[str, str]) -> dict[str, str]:
    """Text flags as Go's flag package reads them: -name=value, --name value; it stops at the first word it cannot place."""
    values, words = dict(defaults), iter(arguments)
    for word in words:
        name, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or len(word) - len(word.lstrip("-")) > 2 or name not in values:
            break
        following = value if equals else next(words, None)
        if following is None:
            break
        values[name] = following
    return values
