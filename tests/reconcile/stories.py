"""Plays the recorded stories about controllers (cases/README.md, "Controller stories") and says what came out otherwise.

Where they are played is a Stage: a whole cluster in memory (world.py), or one namespace of a real one."""

from __future__ import annotations

import copy
import json
import re
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from extender.api.errors import ClusterError, InvalidObject, NotFound
from extender.api.meta import (
    HYPER_NODE,
    JOB,
    POD,
    Json,
    Kind,
    key_of,
    labels_of,
)
from tests.reconcile.comparing import compare, compare_discovered, compare_events, compare_objects, compare_phases, kind_named
from tests.reconcile.stage import Stage
from tests.reconcile.world import World, reported


def play(story: Json) -> list[str]:
    """The differences between what was recorded and what happens in memory.

    Pods that report in one step may be seen one by one or all at once: either way of the recording is right."""
    one_by_one = play_on(World(), story, together=False)
    return one_by_one and min(one_by_one, play_on(World(), story, together=True), key=len)


def play_on(stage: Stage, story: Json, *, together: bool = True) -> list[str]:
    """The differences after the first step that has any: what comes of them says nothing more."""
    story = copy.deepcopy(story)
    for obj in story["objects"]:
        if obj["kind"] == "Queue" and obj["metadata"]["name"] in ("root", "default"):
            continue
        _try(lambda obj=obj: stage.create(obj))
        stage.react()
    found: list[str] = []
    for number in range(len(story["steps"]) + 1):
        wait = 0.0
        if number:
            step = story["steps"][number - 1]
            wait = float(step.get("wait", 0))
            refused = not _try(lambda step=step: _step(stage, step, together))
            if refused != bool(story["result"]["afterSteps"][number - 1].get("refused")):
                found.append(f"afterSteps[{number - 1}]: refused {refused}")
        stage.settle(wait, partial(_as_recorded, stage, story, number))
        found += _differences(stage, story, number)
        if found:
            break
    return found


def _as_recorded(stage: Stage, story: Json, number: int) -> bool:
    return not _differences(stage, story, number)


def _differences(stage: Stage, story: Json, number: int) -> list[str]:
    """Between what was recorded after so many steps and what is there now."""
    result, better = story["result"], story.get("better") or {}
    varies = tuple(story.get("varies") or ())
    views = [result["afterObjects"], *result["afterSteps"]]
    where, expected = f"afterSteps[{number - 1}]" if number else "afterObjects", views[number]
    last = number == len(views) - 1
    found = [f"{where}.{line}" for line in compare(stage, expected, better if last else {}, where, varies)]
    if any("discovered" in view for view in views):
        found += [f"{where}.{line}" for line in compare_discovered(stage, expected)]
    mended = {f"Job/{name}" for name, job in _jobs(better).items() if "phase" in job}
    if number == _listed_after(result, len(views) - 1) and result.get("objects") and not mended:
        found += compare_objects(stage, result["objects"], better, varies)
    if last:
        phases = {name: seen for name, seen in result.get("phasesSeen", {}).items() if name not in mended}
        found += compare_phases(stage, phases, varies)
        if "events" in result and "events" not in varies and not mended:
            found += compare_events(stage, result["events"])
    return found


def _listed_after(result: Json, steps: int) -> int:
    """After how many steps the full view was taken."""
    when = str(result.get("listedAfter", "end"))
    known = {"objects": 0, "end": steps}
    return known[when] if when in known else int(re.sub(r"\D", "", when))


def _jobs(better: Json) -> Json:
    jobs = better.get("jobs")
    return jobs if isinstance(jobs, dict) else {}


def _try(act: Any) -> bool:
    try:
        act()
    except ClusterError:
        return False
    except InvalidObject as error:
        if "no such kind" not in str(error):
            raise
    return True


def _step(stage: Stage, step: Json, together: bool) -> None:
    if "create" in step:
        stage.create(_resolved(stage, step["create"]))
    elif "untilSecond" in step:
        now = stage.clock.now()
        stage.settle_until(now + (step["untilSecond"] - now) % 60)
    elif "advance" in step:
        stage.settle_until(stage.clock.now() + step["advance"])
    elif "podStatus" in step:
        said = step["podStatus"]
        for pod in _matching(stage, POD, said["name"]):
            if pod["spec"].get("nodeName") and pod["status"].get("phase") != "Succeeded":
                status = reported(pod, said["phase"], said.get("exitCode"), said.get("restartCount", 0), said.get("ready", True))
                with suppress(NotFound):  # who has gone meanwhile reports nothing
                    stage.cluster.patch(POD, key_of(pod), {"status": status}, subresource="status")
                if not together:
                    stage.react()
    elif "delete" in step:
        named = step["delete"]
        kind = kind_named(named["kind"], named)
        for obj in _matching(stage, kind, _named(stage, named["name"])):
            grace = 0 if kind == POD else None
            stage.cluster.delete(kind, key_of(obj), propagation=named.get("propagationPolicy", "Background"), grace_seconds=grace)
    elif "patch" in step:
        named = step["patch"]
        kind = kind_named(named["kind"], named)
        for obj in _matching(stage, kind, named["name"]):
            if "json" in named:
                stage.cluster.json_patch(kind, key_of(obj), named["json"], subresource=named.get("subresource", ""))
            else:
                stage.cluster.patch(kind, key_of(obj), named["merge"], subresource=named.get("subresource", ""))
    else:
        raise AssertionError(f"a step that is not known: {step}")


def _named(stage: Stage, glob: str) -> str:
    """With the HyperNode of a label in the place of $hypernode(label=value)."""
    found = re.fullmatch(r"\$hypernode\(([^=]*)=([^)]*)\)", glob)
    if not found:
        return glob
    hyper_nodes = stage.cluster.list(HYPER_NODE).objects
    return str(next(obj["metadata"]["name"] for obj in hyper_nodes if labels_of(obj).get(found[1]) == found[2]))


def _resolved(stage: Stage, obj: Json) -> Json:
    """With the names of jobs in the place of $job(glob)."""
    text = json.dumps(obj)
    for glob in re.findall(r"\$job\(([^)]*)\)", text):
        text = text.replace(f"$job({glob})", _matching(stage, JOB, glob)[0]["metadata"]["name"])
    return dict(json.loads(text))


def _matching(stage: Stage, kind: Kind, glob: str) -> list[Json]:
    return [obj for obj in stage.cluster.list(kind).objects if fnmatchcase(obj["metadata"]["name"], glob)]
