"""What a story recorded and what is there, side by side: the short view of cases/README.md, and the full one."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from typing import Any

from extender.api import quantity
from extender.api.labels import CLOSED_BY_PARENT, JOB_VERSION
from extender.api.meta import (
    COMMAND,
    CONFIG_MAP,
    CRON_JOB,
    EVENT,
    HYPER_NODE,
    JOB,
    JOB_FLOW,
    JOB_TEMPLATE,
    KINDS,
    NETWORK_POLICY,
    POD,
    POD_GROUP,
    PVC,
    QUEUE,
    SECRET,
    SERVICE,
    Json,
    Kind,
    annotations_of,
    labels_of,
)
from tests.reconcile.stage import Stage

COUNTS = ("pending", "running", "succeeded", "failed", "terminating", "unknown", "retryCount", "minAvailable")
STOPPED = ("Aborting", "Aborted", "Completing", "Completed", "Terminating", "Terminated", "Failed", "Restarting")
LOST = ("succeeded", "failed", "tasks")  # what the reference's kill no longer counts
OTHERS = (SERVICE, CONFIG_MAP, SECRET, NETWORK_POLICY, PVC)
TOKENS = "kube-api-access"  # the volume that Kubernetes adds for the service account
UNKEPT = {"kube-root-ca.crt"}
_UID = re.compile(r"\$uid\((\w+)/(?:([^/()]*)/)?([^/()]+)\)")
_HOLE = re.compile(r"\$(uid\(|hash|random|r\d*|m\b|time)")
_GENERATED = re.compile(r"\$(hash|random|r\d*|m\+1|m)")


# --- the short view ---------------------------------------------------------------------------------------------------------


def compare(stage: Stage, expected: Json, better: Json, where: str, varies: tuple[str, ...]) -> Iterator[str]:
    ours = _short(stage)
    for part in ("jobs", "pods", "podgroups", "others", "queues", "commands", "jobflows", "cronjobs", "hypernodes"):
        path = f"{where}.{part}"
        if path in varies:
            continue
        want, have = _as_map(expected.get(part)), _as_map(ours.get(part))
        if part == "others" and isinstance(better.get(part), str):
            want = {name.removesuffix("/2"): True for name in want}
        if isinstance(better.get(part), str) and part != "others":
            continue
        if "discovered" in expected and part == "hypernodes":
            continue
        if part == "queues":
            have = {name: state for name, state in have.items() if name in want}
        pairs = _pair(stage, want, have)
        for name, wanted, had in pairs:
            if f"{path}.{name}" in varies:
                continue
            if part == "jobs" and wanted is not None and had is not None:
                improved = better.get("jobs", {}).get(name) if isinstance(better.get("jobs"), dict) else None
                yield from _compare_job(stage, f"{part}.{name}", wanted, had, improved, f"{path}.{name}", varies)
            elif not _same(stage, wanted, had):
                yield f"{part}.{name}: wanted {wanted}, is {had}"


def _as_map(part: Json | list[str] | None) -> Json:
    return dict.fromkeys(part, True) if isinstance(part, list) else part or {}


def _same(stage: Stage, want: Any, have: Any) -> bool:
    """Equal, generated parts of names apart."""
    if isinstance(want, dict) and isinstance(have, dict):
        return want.keys() == have.keys() and all(_same(stage, want[name], have[name]) for name in want)
    if isinstance(want, list) and isinstance(have, list):
        return len(want) == len(have) and all(_same(stage, *pair) for pair in zip(want, have, strict=True))
    if isinstance(want, str) and isinstance(have, str) and _HOLE.search(want) and want != have:
        return bool(re.fullmatch(_pattern(stage, want), have))
    return bool(want == have)


def compare_discovered(stage: Stage, expected: Json) -> Iterator[str]:
    """The HyperNodes found, by tier and label."""
    ours = [
        {
            "metadata": {"name": obj["metadata"]["name"], "labels": labels_of(obj)},
            "spec": obj["spec"],
            "status": obj.get("status") or {},
        }
        for obj in stage.cluster.list(HYPER_NODE).objects
    ]
    ours.sort(key=lambda obj: (obj["spec"]["tier"], sorted(obj["metadata"]["labels"].items())))
    if not _same(stage, expected.get("discovered") or [], ours):
        yield f"discovered: wanted {expected.get('discovered')}, is {ours}"


def _compare_job(stage: Stage, name: str, want: Json, have: Json, better: Json | None, path: str,
                 varies: tuple[str, ...]) -> Iterator[str]:  # fmt: skip
    want = {**want, **(better or {})}
    stopped = set(STOPPED) & set(stage.seen.phases[name.replace("jobs.", "Job/", 1)])
    for field in ("phase", *COUNTS, "tasks", "version"):
        if f"{path}.{field}" in varies and field not in (better or {}):
            continue
        if (field == "tasks" and better) or (field == "version" and stopped):
            continue
        if field in LOST and field not in want and want.get("phase") in STOPPED:
            continue
        if (want.get(field) or 0) != (have.get(field) or 0):
            yield f"{name}.{field}: wanted {want.get(field)}, is {have.get(field)}"


def _pair(stage: Stage, want: Json, have: Json) -> Iterator[tuple[str, Any, Any]]:
    """By name; generated parts of names match whatever is there."""
    left = dict(have)
    for name, value in sorted(want.items(), key=lambda item: "$" in item[0]):
        pattern = re.compile(_pattern(stage, name))
        candidates = [each for each in sorted(left) if pattern.fullmatch(each)]
        best = next((each for each in candidates if left[each] == value), candidates[0] if candidates else None)
        yield name, value, left.pop(best) if best is not None else None
    for name, value in left.items():
        yield name, None, value


def _pattern(stage: Stage, name: str) -> str:
    text = _UID.sub(lambda found: f"\0{_uid_pattern(stage, found[1], found[3])}\0", name)
    parts = text.split("\0")
    return "".join(part if odd % 2 else _GENERATED.sub("[a-z0-9-]+", _escaped(part)) for odd, part in enumerate(parts))


def _escaped(text: str) -> str:
    return re.escape(text).replace("\\$", "$").replace("$m\\+1", "$m+1")


def _uid_pattern(stage: Stage, kind: str, name: str) -> str:
    glob = re.compile(_GENERATED.sub("[a-z0-9]+", _escaped(name)))
    uids = [
        re.escape(obj["metadata"]["uid"])
        for each in KINDS if each.name == kind
        for obj in stage.cluster.list(each).objects if glob.fullmatch(obj["metadata"]["name"])
    ]  # fmt: skip
    return f"(?:{'|'.join(uids)})" if uids else "[0-9a-f-]+"


def _short(stage: Stage) -> Json:
    maps = ("jobs", "pods", "podgroups", "queues", "jobflows", "cronjobs", "hypernodes")
    view: Json = {**{name: {} for name in maps}, "others": [], "commands": []}
    for job in stage.cluster.list(JOB).objects:
        status = job.get("status") or {}
        tasks = {task: state["phase"] for task, state in (status.get("taskStatusCount") or {}).items()}
        view["jobs"][job["metadata"]["name"]] = {
            "phase": (status.get("state") or {}).get("phase"), "version": status.get("version"), "tasks": tasks,
            **{name: status.get(name) for name in COUNTS},
        }  # fmt: skip
    for pod in stage.cluster.list(POD).objects:
        words = [f"{pod['status'].get('phase')}{_ordinal(stage, POD, pod)}"]
        words += ["unbound"] if not pod["spec"].get("nodeName") else []
        words += ["terminating"] if pod["metadata"].get("deletionTimestamp") else []
        view["pods"][pod["metadata"]["name"]] = " ".join(words)
    for group in stage.cluster.list(POD_GROUP).objects:
        phase = (group.get("status") or {}).get("phase")
        view["podgroups"][group["metadata"]["name"]] = f"{phase}{_ordinal(stage, POD_GROUP, group)}"
    for kind in OTHERS:
        for obj in stage.cluster.list(kind, "default").objects:
            if obj["metadata"]["name"] not in UNKEPT:
                view["others"].append(f"{kind.name}/{obj['metadata']['name']}{_ordinal(stage, kind, obj)}")
    for queue in stage.cluster.list(QUEUE).objects:
        shown = {"state": (queue.get("status") or {}).get("state"), "parent": queue["spec"].get("parent"),
                 "closedByParent": annotations_of(queue).get(CLOSED_BY_PARENT)}  # fmt: skip
        view["queues"][queue["metadata"]["name"]] = {name: value for name, value in shown.items() if value is not None}
    for flow in stage.cluster.list(JOB_FLOW).objects:
        status = dict(flow.get("status") or {})
        lists = {name: names for name, names in status.items() if name.endswith("Jobs")}
        view["jobflows"][flow["metadata"]["name"]] = {"phase": (status.get("state") or {}).get("phase"), **lists}
    for cron in stage.cluster.list(CRON_JOB).objects:
        status = cron.get("status") or {}
        times = {name: "$time" for name in ("lastScheduleTime", "lastSuccessfulTime") if name in status}
        active = [each["name"] for each in status.get("active") or ()]
        view["cronjobs"][cron["metadata"]["name"]] = {"active": active, **times}
    for hyper in stage.cluster.list(HYPER_NODE).objects:
        count = (hyper.get("status") or {}).get("nodeCount")
        view["hypernodes"][hyper["metadata"]["name"]] = {"nodeCount": count} if count else {}
    view["commands"] = [command["metadata"]["name"] for command in stage.cluster.list(COMMAND).objects]
    return view


def _ordinal(stage: Stage, kind: Kind, obj: Json) -> str:
    born = stage.seen.born[f"{kind.name}/{obj['metadata']['name']}"]
    number = born.index(obj["metadata"]["uid"]) + 1
    return f"/{number}" if number > 1 else ""


# --- phases, events, objects --------------------------------------------------------------------------------------------------


def compare_phases(stage: Stage, expected: Json, varies: tuple[str, ...]) -> Iterator[str]:
    for name, phases in expected.items():
        kind = name.partition("/")[0]
        if kind not in ("Job", "Queue", "JobFlow") or f"phasesSeen.{name}" in varies:
            continue
        pattern = re.compile(_pattern(stage, name))
        if all(stage.seen.phases[each] != phases for each in list(stage.seen.phases) if pattern.fullmatch(each)):
            yield f"phasesSeen.{name}: wanted {phases}, was {stage.seen.phases[name]}"


def compare_events(stage: Stage, expected: list[str]) -> Iterator[str]:
    ours = {
        f"{event['involvedObject']['kind']}/{event['involvedObject']['name']} {event['type']} {event['reason']}"
        for event in stage.cluster.list(EVENT).objects
        if (event.get("source") or {}).get("component") == "vc-controller-manager"
    }
    wanted = set(expected)
    known = {line: next((each for each in ours if re.fullmatch(_pattern(stage, line), each)), line) for line in wanted}
    wanted = set(known.values())
    for line in sorted(wanted ^ ours):
        if not line.endswith(" PodGroupPending"):  # whether a group is ever seen waiting is the scheduler's pace
            yield f"events: {'missing' if line in wanted else 'too many'} {line}"


def compare_objects(stage: Stage, expected: list[Json], better: Json, varies: tuple[str, ...]) -> Iterator[str]:
    for number, want in enumerate(expected):
        if any(path == "objects" or path == f"objects[{number}]" for path in varies):
            continue
        name = want["metadata"]["name"]
        kind = kind_named(want["kind"], want)
        if kind not in (JOB, POD, POD_GROUP, QUEUE, JOB_FLOW, JOB_TEMPLATE, CRON_JOB, *OTHERS):
            continue
        pattern = re.compile(_pattern(stage, name))
        have = [obj for obj in stage.cluster.list(kind).objects if pattern.fullmatch(obj["metadata"]["name"])]
        path = f"objects[{number}] {want['kind']}/{name}"
        if not have:
            yield f"{path}: missing"
            continue
        plain = _plain(want, kind)
        lines = (list(_within(stage, plain, _plain(each, kind), path, number, varies, bool(better))) for each in have)
        yield from min(lines, key=len)


def _plain(obj: Json, kind: Kind) -> Json:
    """Without what is not recorded; lists of named things as maps."""
    obj = copy.deepcopy(obj)
    meta = obj["metadata"]
    keep: Json = {"metadata": {name: meta[name] for name in ("labels", "annotations", "ownerReferences") if name in meta}}
    for each in keep["metadata"].get("ownerReferences", ()):
        each.pop("uid", None)
        each.pop("apiVersion", None)
    if kind == SECRET:
        return {**keep, "keys": obj.get("keys") or sorted(obj["data"]), "type": obj.get("type")}
    if kind == JOB:
        status = obj.get("status") or {}
        conditions = [each if isinstance(each, str) else each["status"] for each in status.get("conditions", ())]
        state = {"phase": (status.get("state") or {}).get("phase")}
        return {"status": {**status, "state": state, "conditions": conditions}}
    if kind in (JOB_FLOW, JOB_TEMPLATE):
        return {"status": obj.get("status") or {}}
    if kind == CRON_JOB:
        return keep
    if kind == QUEUE:
        return {"spec": obj["spec"], "status": {"state": (obj.get("status") or {}).get("state")}, **keep}
    keep |= {name: obj[name] for name in ("spec", "data") if name in obj}
    if kind == POD:
        if "tolerations" in keep["spec"]:  # Kubernetes adds these two to every pod
            added = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
            keep["spec"]["tolerations"] = [each for each in keep["spec"]["tolerations"] if each.get("key") not in added]
        for each in (*keep["spec"].get("containers", ()), *keep["spec"].get("initContainers", ())):
            each["env"] = {env["name"]: env for env in each.get("env", ())}
            mounts = (mount for mount in each.get("volumeMounts", ()) if not mount["name"].startswith(TOKENS))
            each["volumeMounts"] = {mount["mountPath"]: mount for mount in mounts}
        volumes = [volume for volume in keep["spec"].get("volumes", ()) if not volume["name"].startswith(TOKENS)]
        keep["spec"]["volumes"] = sorted(volumes, key=lambda volume: volume["name"])
    return keep


EXACT = ("labels", "annotations", "data", "env", "volumeMounts", "minResources", "minTaskMember", "taskStatusCount",
         "controlledResources", "networkTopology")  # fmt: skip


def _within(stage: Stage, want: Any, have: Any, path: str, number: int, varies: tuple[str, ...], better: bool) -> Iterator[str]:
    """Everything in `want` is in `have`; maps of EXACT names are the same."""
    dotted = re.sub(r"^objects\[\d+\] \S+?\.", f"objects[{number}].", path)
    if dotted in varies or (better and path.endswith((".taskStatusCount", ".succeeded", ".failed"))):
        return
    if isinstance(want, dict):
        if not isinstance(have, dict):
            yield f"{path}: wanted {want}, is {have}"
            return
        pairs = _pair(stage, want, have)
        exact = path.rsplit(".", 1)[-1] in EXACT
        for name, wanted, had in pairs:
            if wanted is None:
                if exact:
                    yield f"{path}.{name}: not wanted, is {had}"
                continue
            if (name == "version" and "Job/" in path) or name == JOB_VERSION:
                continue
            yield from _within(stage, wanted, had, f"{path}.{name}", number, varies, better)
    elif isinstance(want, list):
        if not isinstance(have, list) or len(want) != len(have):
            yield f"{path}: wanted {want}, is {have}"
            return
        for index, (wanted, had) in enumerate(zip(want, have, strict=True)):
            yield from _within(stage, wanted, had, f"{path}[{index}]", number, varies, better)
    elif isinstance(want, str) and _HOLE.search(want):
        if not isinstance(have, str) or (want != "$time" and not re.fullmatch(_pattern(stage, want), have)):
            yield f"{path}: wanted {want}, is {have}"
    elif want != have and not (".resources." in path and quantity.nanos(want) == quantity.nanos(have)):
        yield f"{path}: wanted {want!r}, is {have!r}"


def kind_named(name: str, named: Mapping[str, Any]) -> Kind:
    version = named.get("apiVersion")
    found = [kind for kind in KINDS if kind.name == name and (version is None or kind.api_version == version)]
    return next((kind for kind in found if kind.group.endswith("volcano.sh")), found[0])
