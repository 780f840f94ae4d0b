"""What must have come of a story: `faults` says which entries of its `expect` do not hold, in words.

Every entry is a row of CHECKS (of `expect`) or INVARIANTS (of `expect.invariants`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from extender.api import labels, quantity
from extender.api.errors import Invalid
from extender.api.meta import (
    HYPER_NODE,
    NODE,
    POD,
    POD_GROUP,
    QUEUE,
    Json,
    annotations_of,
    key_of,
    labels_of,
    uid_of,
)
from extender.testing import paths
from extender.testing.played import Played, kind_named
from extender.testing.tape import phase_of

Faults = Iterator[str]
_REAL = ("wall", "rss")  # measures of a real process, which is not what is played here


def faults(played: Played, expect: Mapping[str, Any]) -> Faults:
    """Each entry that does not hold."""
    yield from _steps(played, expect)
    for name, wanted in expect.items():
        if name in CHECKS:
            yield from (f"{name}: {fault}" for fault in CHECKS[name](played, wanted))
        elif name not in ("denied", "allowed", "invariants"):
            yield f"{name}: there is no such expectation"
    for entry in expect.get("invariants", ()):
        for name, wanted in entry.items():
            if name in INVARIANTS:
                yield from (f"{name}: {fault}" for fault in INVARIANTS[name](played, wanted))
            elif not name.startswith(_REAL):
                yield f"{name}: there is no such invariant"
    yield from (f"over its limit: {what}: {how}" for what, how in played.tape.over.items())


def prepare(played: Played, expect: Mapping[str, Any]) -> None:
    """Before the story: what must hold at every moment is watched from the beginning."""
    for entry in expect.get("invariants", ()):
        if "nodeFits" in entry:
            played.tape.watched_nodes = None if entry["nodeFits"] == "*" else frozenset(entry["nodeFits"])
        for name, limits in entry.get("queueWithin", {}).items():
            played.tape.queue_limits[name] = {resource: quantity.nanos(text) for resource, text in limits.items()}


# --- steps ----------------------------------------------------------------------------------------------------------------


def _steps(played: Played, expect: Mapping[str, Any]) -> Faults:
    denied = {entry["step"]: entry for entry in expect.get("denied", ())}
    for step, error in played.refused.items():
        if step not in denied:
            yield f"step {step} was refused: {error}"
    for step, entry in denied.items():
        refusal = played.refused.get(step)
        if refusal is None:
            yield f"denied: step {step} was accepted"
        elif not re.search(entry["matches"], str(refusal)):
            yield f"denied: step {step}: want a message that matches {entry['matches']!r}, got {refusal}"
        elif isinstance(refusal, Invalid) and not any(paths.related(entry["field"], fault.path) for fault in refusal.faults):
            yield f"denied: step {step}: want {entry['field']} at fault, got {', '.join(f.path for f in refusal.faults)}"


# --- the end --------------------------------------------------------------------------------------------------------------


def _bound(played: Played, wanted: Mapping[str, str]) -> Faults:
    for name, node in wanted.items():
        on = [_node(pod) for pod in played.named(POD, name)]
        if not on or not all(on) or (node != "*" and set(on) != {node}):
            yield f"{name}: want it on {node}, got {on or 'no such pod'}"


def _unbound(played: Played, wanted: list[str]) -> Faults:
    for name in wanted:
        on = [_node(pod) for pod in played.named(POD, name)]
        if not on or any(on):
            yield f"{name}: want it without a node, got {on or 'no such pod'}"


def _evicted(played: Played, wanted: list[str]) -> Faults:
    got = sorted({write.key.name for write in played.evictions()})
    if got != sorted(set(wanted)):
        yield f"want {sorted(wanted)}, got {got}"


def _phases(kind: str) -> Callable[[Played, Mapping[str, str]], Faults]:
    def check(played: Played, wanted: Mapping[str, str]) -> Faults:
        for name, phase in wanted.items():
            got = [phase_of(obj) or "Pending" for obj in played.named(kind_named(kind), name)]
            if got != [phase]:
                yield f"{name}: want {phase}, got {got}"

    return check


def _queues(played: Played, wanted: Mapping[str, Mapping[str, Any]]) -> Faults:
    for name, fields in wanted.items():
        status = next(iter(played.named(QUEUE, name)), {}).get("status") or {}
        for key, value in fields.items():
            if key == "allocated":
                shown = status.get("allocated") or {}
                for resource, amount in value.items():
                    if quantity.nanos(shown.get(resource, "0")) != quantity.nanos(amount):
                        yield f"{name}: allocated {resource}: want {amount}, got {shown.get(resource, '0')}"
            elif status.get(key, 0) != value:
                yield f"{name}: {key}: want {value}, got {status.get(key, 0)}"


def _responses(played: Played, wanted: list[Mapping[str, Any]]) -> Faults:
    for check in wanted:
        if check["call"] not in played.responses:
            yield f"{check['call']}: there was no answer"
        elif (fault := paths.fault(played.responses[check["call"]], check)) is not None:
            yield f"{check['call']}: {fault}"


CHECKS: dict[str, Callable[[Played, Any], Faults]] = {
    "bound": _bound,
    "unbound": _unbound,
    "evicted": _evicted,
    "podgroups": _phases("PodGroup"),
    "jobs": _phases("Job"),
    "queues": _queues,
    "responses": _responses,
}


# --- invariants -----------------------------------------------------------------------------------------------------------


def _every_moment(played: Played, wanted: Any) -> Faults:
    """nodeFits and queueWithin are judged by the tape; `faults` tells."""
    del played, wanted
    return iter(())


def _gang_atomic(played: Played, groups: list[str]) -> Faults:
    seen = {key_of(m.object).name: m.object for m in played.tape.moments[POD_GROUP]}
    for pattern in groups:
        if not any(fnmatchcase(name, pattern) for name in seen):
            yield f"no PodGroup {pattern}"
    for name in (name for name in seen if _any(name, groups)):
        least = int((seen[name].get("spec") or {}).get("minMember") or 1)
        before: frozenset[str] = frozenset()
        for second, after in enumerate(each.get(name, frozenset()) for each in played.bound_after):
            if not before and 0 < len(after) < least:
                yield f"{name}: {len(after)} of {least} bound after second {second}: {sorted(after)}"
            before = after


def _task_gang(played: Played, wanted: Mapping[str, Mapping[str, int]]) -> Faults:
    for name, roles in wanted.items():
        role_of = {key_of(m.object).name: annotations_of(m.object).get(labels.TASK_SPEC, "") for m in played.tape.moments[POD]}
        for second, bound in enumerate(each.get(name, frozenset()) for each in played.bound_after):
            for role, least in roles.items() if bound else ():
                have = sum(role_of[pod] == role for pod in bound)
                if have < least:
                    yield f"{name}: {have} of {least} {role} bound after second {second}"


def _count(what: str, got: int, wanted: Mapping[str, Any]) -> Faults:
    limits: dict[str, Callable[[int, int], bool]] = {"equals": int.__eq__, "atMost": int.__le__, "atLeast": int.__ge__}
    for name, holds in limits.items():
        if name in wanted and not holds(got, wanted[name]):
            yield f"{what}: want {name} {wanted[name]}, got {got}"


def _evicted_count(played: Played, wanted: Mapping[str, Any]) -> Faults:
    evicted = [write for write in played.evictions() if _any(write.key.name, wanted["of"])]
    return _count(str(wanted["of"]), len(evicted), wanted)


def _bound_count(played: Played, wanted: Mapping[str, Any]) -> Faults:
    return _count(str(wanted["of"]), sum(bool(_node(pod)) for pod in played.pods(wanted["of"])), wanted)


def _never_bound(played: Played, pods: list[str]) -> Faults:
    for name in pods:
        if times := played.tape.bound(name):
            yield f"{name} was bound at second {played.second(times[0]):g}"


def _never_evicted(played: Played, pods: list[str]) -> Faults:
    for write in played.evictions():
        if _any(write.key.name, pods):
            yield f"{write.key.name} was evicted at second {played.second(write.at):g}"


def _bound_when(holds: Callable[[float, float], bool], words: str) -> Callable[[Played, Mapping[str, float]], Faults]:
    def check(played: Played, wanted: Mapping[str, float]) -> Faults:
        for name, second in wanted.items():
            times = played.tape.bound(name)
            if not times or not holds(played.second(times[-1]), second):
                got = f"second {played.second(times[-1]):g}" if times else "never"
                yield f"{name}: want it bound {words} second {second}, got {got}"

    return check


def _same_domain(played: Played, wanted: Mapping[str, Any]) -> Faults:
    on = {_node(pod) for pod in played.pods(wanted["pods"])}
    hypernodes = {key_of(obj).name: obj for obj in played.cluster.list(HYPER_NODE).objects}
    tier = [name for name, obj in hypernodes.items() if obj["spec"].get("tier") == wanted["hypernodeTier"]]
    if not any(on <= _nodes_below(played, hypernodes, name) for name in tier):
        yield f"want {wanted['pods']} below one HyperNode of tier {wanted['hypernodeTier']}, got {sorted(on)}"


def _nodes_below(played: Played, hypernodes: Mapping[str, Json], name: str) -> set[str]:
    below: set[str] = set()
    nodes = played.cluster.list(NODE).objects
    for member in hypernodes[name]["spec"].get("members") or () if name in hypernodes else ():
        selector = member["selector"]
        exact = str((selector.get("exactMatch") or {}).get("name") or "")
        if member["type"] == "HyperNode":
            below |= _nodes_below(played, hypernodes, exact)
        elif exact:
            below.add(exact)
        elif pattern := (selector.get("regexMatch") or {}).get("pattern"):
            below |= {key_of(node).name for node in nodes if re.search(pattern, key_of(node).name)}
        elif wanted := (selector.get("labelMatch") or {}).get("matchLabels"):
            below |= {key_of(node).name for node in nodes if wanted.items() <= labels_of(node).items()}
    return below


def _distinct(played: Played, wanted: Mapping[str, Any]) -> Faults:
    key = wanted["by"].removeprefix("annotation:")
    values = [annotations_of(pod).get(key) for pod in played.pods(wanted["pods"])]
    if len(set(values)) < len(values) or None in values:
        yield f"{key}: {values}"


def _phase_never(played: Played, wanted: Mapping[str, Any]) -> Faults:
    seen = played.tape.phases(kind_named(wanted["kind"]), wanted["name"])
    for i, (at, phase) in enumerate(seen):
        until = seen[i + 1][0] if i + 1 < len(seen) else float("inf")
        if phase in wanted["phases"] and played.second(until) > wanted["from"]:
            yield f"{wanted['name']} showed {phase} from second {played.second(at):g}"


def _phase_seen(played: Played, wanted: Mapping[str, Any]) -> Faults:
    seen = [phase for _, phase in played.tape.phases(kind_named(wanted["kind"]), wanted["name"])]
    rest = iter(seen)
    if not all(phase in rest for phase in wanted["phases"]):
        yield f"{wanted['name']}: want {wanted['phases']} in this order, got {seen}"


def _created_count(played: Played, wanted: Mapping[str, Any]) -> Faults:
    kind = kind_named(wanted["kind"])
    made = [w for w in played.trouble.writes if w.call == "create" and w.kind == kind and _any(w.key.name, wanted["of"])]
    return _count(f"{kind} {wanted['of']}", len(made), wanted)


def _created_not_before(played: Played, wanted: Mapping[str, float]) -> Faults:
    for name, second in wanted.items():
        made = played.tape.added(POD, name)
        if made and played.second(made[0].at) < second:
            yield f"{name}: want it not before second {second}, got second {played.second(made[0].at):g}"


def _exists(played: Played, wanted: list[Mapping[str, str]]) -> Faults:
    return (f"no {e['kind']} {e['name']}" for e in wanted if not played.named(kind_named(e["kind"]), e["name"]))


def _absent(played: Played, wanted: list[Mapping[str, str]]) -> Faults:
    return (f"{e['kind']} {e['name']} is there" for e in wanted if played.named(kind_named(e["kind"]), e["name"]))


def _same_uid(played: Played, wanted: Mapping[str, str]) -> Faults:
    kind = kind_named(wanted["kind"])
    uids: dict[str, list[str]] = {}
    for moment in played.tape.moments[kind]:
        if fnmatchcase(key_of(moment.object).name, wanted["name"]):
            uids.setdefault(key_of(moment.object).name, []).append(uid_of(moment.object))
    if not uids or not played.named(kind, wanted["name"]):
        yield f"no {kind} {wanted['name']} at the end"
    for name, seen in uids.items():
        if len(set(seen)) > 1:
            yield f"{kind} {name} was made {len(set(seen))} times"


def _field(played: Played, wanted: Mapping[str, Any]) -> Faults:
    found = played.named(kind_named(wanted["kind"]), wanted["name"], wanted.get("at"))
    if not found:
        yield f"no {wanted['kind']} {wanted['name']}"
    for obj in found:
        fault = paths.fault(obj, wanted)
        if fault:
            yield f"{wanted['kind']} {key_of(obj).name}: {fault}"


def _writes_at_most(played: Played, wanted: Mapping[str, Any]) -> Faults:
    low, high = wanted["from"], wanted["to"]
    writes = [w for w in played.trouble.writes if w.kind.name in wanted["kinds"] and low <= played.second(w.at) <= high]
    if len(writes) > wanted["max"]:
        first = ", ".join(f"{w.component} {w.call} {w.kind}/{w.key.name}" for w in writes[:5])
        yield f"want {wanted['max']} at most, got {len(writes)}: {first} ..."


def _queue_depth(played: Played, wanted: Mapping[str, Any]) -> Faults:
    got = played.queue_depth.get(wanted["at"])
    if got is None or got > wanted["max"]:
        yield f"want {wanted['max']} at most at second {wanted['at']}, got {got}"


INVARIANTS: dict[str, Callable[[Played, Any], Faults]] = {
    "nodeFits": _every_moment,
    "queueWithin": _every_moment,
    "gangAtomic": _gang_atomic,
    "taskGang": _task_gang,
    "evictedCount": _evicted_count,
    "boundCount": _bound_count,
    "neverBound": _never_bound,
    "neverEvicted": _never_evicted,
    "boundBy": _bound_when(lambda got, limit: got <= limit, "by"),
    "boundNotBefore": _bound_when(lambda got, limit: got >= limit, "not before"),
    "sameDomain": _same_domain,
    "distinct": _distinct,
    "phaseNever": _phase_never,
    "phaseSeen": _phase_seen,
    "createdCount": _created_count,
    "createdNotBefore": _created_not_before,
    "exists": _exists,
    "absent": _absent,
    "sameUid": _same_uid,
    "field": _field,
    "fieldAt": _field,
    "writesAtMost": _writes_at_most,
    "queueDepth": _queue_depth,
}


def _node(pod: Json) -> str:
    return str(pod["spec"].get("nodeName") or "")


def _any(name: str, patterns: str | list[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in ([patterns] if isinstance(patterns, str) else patterns))
