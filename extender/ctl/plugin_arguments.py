"""Arguments of job plugins that nobody reads: flags stop at the first word that is wrong, and no pod tells of it.

Volcano lets them in, and so do we; here a person is at hand who can mend them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from extender.api.errors import nearest
from extender.api.job_plugins import FLAGS, ROLES, Flags, parse_flags, unread_words
from extender.api.meta import kind_of
from extender.ctl.arranging import JOB_SPECS
from extender.ctl.found import Found


def unread_arguments(found: Found) -> Iterator[str]:
    """A line for each plugin with such arguments, and for each role that is given to a task which is none."""
    spec: Any = found.manifest
    path = JOB_SPECS.get(kind_of(found.manifest), ())
    for part in path:
        spec = spec.get(part) if isinstance(spec, dict) else None
    plugins = spec.get("plugins") if path and isinstance(spec, dict) else None
    for name, words in plugins.items() if isinstance(plugins, dict) else ():
        if name in FLAGS and isinstance(words, list) and all(isinstance(word, str) for word in words):
            for wrong in _wrong(words, FLAGS[name], spec.get("tasks")):
                yield f"{found.where}: {found.subject}: {'.'.join(path)}.plugins.{name}: {wrong}"


def _wrong(words: list[str], known: Flags, tasks: Any) -> Iterator[str]:
    rest = unread_words(words, known)
    if rest:
        more = ", nor is what follows" if len(rest) > 1 else ""
        name = rest[0].lstrip("-").partition("=")[0]
        yield f"'{rest[0]}' is not understood{more}" + ("" if name in known else nearest(name, known))
    names = [task.get("name") for task in tasks if isinstance(task, dict)] if isinstance(tasks, list) else []
    for role, task in parse_flags(words, known).items():
        if role in ROLES and task != known[role] and task not in names:
            yield f"--{role}={task}: there is no task '{task}'"
