"""What the scheduler believes, as one JSON object with named parts: for whoever asks why something is as it is.

Names, amounts and states only. Neither specs nor annotations of pods are in it, for they may hold secrets."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import orjson

from extender.api.meta import Json, Time, format_time
from extender.cluster.version import build
from extender.core import status as st
from extender.core.axis import Axis
from extender.loop import Loop


def state(loop: Loop, conf: str, now: Time) -> Json:
    """Call it from the loop's own thread."""
    mirror = loop.mirror
    return {
        "at": format_time(now),
        "build": build(),
        "schedulerNames": sorted(mirror.scheduler_names),
        "configuration": conf,
        "notListed": [str(kind) for kind in loop.lagging()],
        "nodes": _nodes(loop),
        "queues": _queues(loop),
        "jobs": _jobs(loop),
        "tasks": _tasks(loop),
        "session": _session(loop),
        "backoffs": {uid: {"pod": str(each.failed.pod), "node": each.failed.node, "failures": each.failures, "until": each.until}
                     for uid, each in loop.reservations.failed.items()},
        "unreadable": {f"{kind} {key}": str(error) for (kind, key), error in mirror.unreadable.items()},
    }  # fmt: skip


def write(dumped: Json, folder: str, now: Time) -> Path:
    """`<folder>/snapshot-<unix seconds>.json`, for its owner only; never through a link that somebody else has put there.

    It gets its name when all of it is there: whoever waits for the file reads no half of it. Raises OSError."""
    path = Path(folder) / f"snapshot-{int(now)}.json"
    unfinished = path.with_name(f".{path.name}")
    unfinished.unlink(missing_ok=True)
    file = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        with os.fdopen(file, "wb") as stream:
            stream.write(orjson.dumps(dumped, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS))
        unfinished.replace(path)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise
    return path


def _amounts(axis: Axis, row: Any) -> dict[str, str]:
    return {name: axis.text(i, float(row[i])) for i, name in enumerate(axis.names[: len(row)]) if row[i]}


def _nodes(loop: Loop) -> Json:
    mirror, table = loop.mirror, loop.mirror.nodes
    return {
        name: {
            "exists": bool(table.exists[row]),
            "allocatable": _amounts(mirror.axis, table.allocatable[row]),
            "used": _amounts(mirror.axis, table.used[row]),
            "releasing": _amounts(mirror.axis, table.releasing[row]),
            "tasks": len(table.tasks[row]),
        }
        for name, row in sorted(table.rows.items())
    }


def _queues(loop: Loop) -> Json:
    jobs = Counter(loop.mirror.jobs.queue[row] for row in loop.mirror.jobs.rows.values())
    return {
        name: {
            "state": facts.queue.status.state,
            "parent": facts.queue.spec.parent,
            "weight": facts.queue.spec.weight,
            "allocated": facts.queue.status.allocated,
            "jobs": jobs[name],
        }
        for name, facts in sorted(loop.mirror.queues.items())
    }


def _jobs(loop: Loop) -> Json:
    mirror, table = loop.mirror, loop.mirror.jobs
    return {
        str(key): {
            "podGroup": table.group[row] is not None,
            "queue": table.queue[row],
            "phase": st.PHASES[table.phase[row]],
            "minAvailable": int(table.min_available[row]),
            "priority": int(table.priority[row]),
            "tasks": {name: int(table.counts[row, code]) for code, name in enumerate(st.STATUS_NAMES) if table.counts[row, code]},
            "allocated": _amounts(mirror.axis, table.allocated[row]),
        }
        for key, row in sorted(table.rows.items())
    }


def _tasks(loop: Loop) -> Json:
    table, nodes, jobs = loop.mirror.tasks, loop.mirror.nodes, loop.mirror.jobs
    return {
        str(key): {
            "status": st.STATUS_NAMES[table.status[row]],
            "node": nodes.name[table.node[row]] if table.node[row] >= 0 else "",
            "job": str(jobs.key[table.job[row]]) if table.job[row] >= 0 else "",
        }
        for key, row in sorted(table.rows.items())
    }


def _session(loop: Loop) -> Json | None:
    if loop.last is None:
        return None
    cycle = loop.last
    return {
        "number": cycle.number,
        "at": format_time(cycle.at),
        "operations": Counter(type(each).__name__ for each in cycle.result.operations),
        "failures": [{"operation": type(each.operation).__name__, "error": str(each.error)} for each in cycle.failures],
        "waiting": [{"job": each.job, "reason": each.reason.value, "message": each.message} for each in cycle.result.waiting],
    }
