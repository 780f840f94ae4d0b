"""/explain: why a job waits, out of the last session's own account.

    GET /explain                       every job that waits, one line each
    GET /explain?job=default/train     one job, by its own name or its PodGroup's; `default` where no namespace is given
    GET /explain?pod=default/web-7     the job of a pod
    ...&format=json                    the same for programs, with the numbers (or Accept: application/json)

Asked from any thread: it reads what the last session handed over, and never waits for the one that runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

import orjson

from extender.api.grouping import without_uid
from extender.api.meta import Json, Key, format_time
from extender.cluster.serving import Answer, Page, Request
from extender.core import status as st
from extender.core.reasons import Waiting
from extender.core.session import Session
from extender.loop import Cycle, Loop


def explain_page(loop: Loop) -> Page:
    def page(request: Request) -> Answer:
        as_json = request.query.get("format", [""])[-1] == "json" or "application/json" in request.accept
        last = loop.last
        if last is None:
            nothing = {"message": "no session yet: lists are missing, or another one leads"}
            return _answer(HTTPStatus.SERVICE_UNAVAILABLE, nothing, as_json)
        return _explained(last, request.query, as_json)

    return page


def _explained(last: Cycle, query: Mapping[str, list[str]], as_json: bool) -> Answer:
    about = {"session": last.number, "at": format_time(last.at)}
    named = next(((word, query[word][-1]) for word in ("job", "pod") if query.get(word)), None)
    if named is None:
        waiting = [_waits(each) for each in last.result.waiting]
        return _answer(HTTPStatus.OK, {**about, "waiting": waiting}, as_json)
    sort, key = named[0], _key(named[1])
    ssn = last.result.session
    asked = _job_of(ssn, key) if sort == "pod" else key
    found = _find(last.result.waiting, asked) if asked is not None else None
    if found is not None:
        return _answer(HTTPStatus.OK, {**about, **_waits(found)}, as_json)
    job = _row(ssn, asked) if asked is not None else None
    if job is None:
        unknown = f"session {last.number} knows no {'pod of ours' if sort == 'pod' else 'job or PodGroup'} {key}"
        return _answer(HTTPStatus.NOT_FOUND, {**about, "message": unknown}, as_json)
    return _answer(HTTPStatus.OK, {**about, **_placed(ssn, job)}, as_json)


def _key(text: str) -> Key:
    namespace, slash, name = text.partition("/")
    return Key(namespace, name) if slash else Key("default", text)


def _is(group: Key, asked: Key) -> bool:
    return group == asked or without_uid(group) == str(asked)


def _find(waiting: Iterable[Waiting], asked: Key) -> Waiting | None:
    return next((each for each in waiting if _is(Key(*each.job.split("/", 1)), asked)), None)


def _row(ssn: Session, asked: Key) -> int | None:
    rows = ssn.jobs.rows
    return next((rows[key] for key in list(rows) if _is(key, asked) and rows.get(key, -1) in range(len(ssn.job_counts))), None)


def _job_of(ssn: Session, pod: Key) -> Key | None:
    """The group of a pod; of one without, the pod itself, as sessions call it."""
    task = ssn.tasks.rows.get(pod, -1)
    job = int(ssn.tasks.job[task]) if 0 <= task < len(ssn.tasks.job) else -1
    return ssn.jobs.key[job] if job >= 0 else None


def _waits(each: Waiting) -> Json:
    return {"job": without_uid(Key(*each.job.split("/", 1))), "podgroup": each.job, "waits": True, "reason": str(each.reason),
            "message": each.message, "numbers": each.numbers}  # fmt: skip


def _placed(ssn: Session, job: int) -> Json:
    counts, key = ssn.job_counts[job], ssn.job_key(job)
    tasks = int(counts.sum())
    placed = tasks - int(counts[[st.PENDING, st.PIPELINED]].sum())
    return {"job": without_uid(key), "podgroup": str(key), "waits": False,
            "message": f"{placed} of {tasks} pods have a node" if tasks else "it is let in, and has no pods yet"}  # fmt: skip


def _answer(status: HTTPStatus, said: Json, as_json: bool) -> Answer:
    if as_json:
        options = orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS
        return Answer(status, orjson.dumps(said, option=options) + b"\n", "application/json")
    lines = [_line(each) for each in said["waiting"]] or ["nothing waits"] if "waiting" in said else [_line(said)]
    return Answer(status, "\n".join(lines) + "\n")


def _line(said: Mapping[str, Any]) -> str:
    if "job" not in said:
        return str(said["message"])
    if not said["waits"]:
        return f"{said['job']} does not wait: {said['message']}"
    return f"{said['job']} waits: {said['message']} [{said['reason']}]"
