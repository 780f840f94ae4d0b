"""Stories: a whole cluster on a virtual clock, what happens to it second by second, and what must have come of it.

    python -m extender.testing.scenario FILE...      play stories and print what does not hold

One YAML file is one story: config, objects, steps, expect (tests/scenarios/*.yaml show all of it). What the components see is
in faults.py, what is recorded in tape.py, what is judged in expectations.py."""

from __future__ import annotations

import datetime as dt
import re
import sys
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

import yaml
from prometheus_client import CollectorRegistry

from extender import local
from extender.actions import ACTIONS
from extender.api import labels
from extender.api.errors import NotFound, PumiceError
from extender.api.meta import KINDS, POD, Json, Key, Kind, annotations_of, format_time, key_of, kind_of, uid_of
from extender.cluster.clock import Clock, VirtualClock
from extender.cluster.kubelet import Kubelet
from extender.cluster.memory import MemoryCluster
from extender.cluster.port import Cluster
from extender.core import conf
from extender.local import Local
from extender.plugins import PLUGINS
from extender.server import create_app
from extender.testing import cases, expectations
from extender.testing.faults import Fault, Slow, Trouble, View
from extender.testing.played import Played, kind_named
from extender.testing.tape import Tape
from webhook.routes import ROUTES
from webhook.settings import Settings as AdmissionSettings

START = dt.datetime(2025, 1, 6, tzinfo=dt.UTC).timestamp()
_MARK = re.compile(r"\{i(?:(//|%)(\d+))?\}")
_UID = re.compile(r"\$uid\(([^)]*)\)")


def expand(entry: Json) -> Iterator[Json]:
    """`{repeat: N, object: {...}}` stands for N objects with {i}, {i%K}, {i//K} worked out in every string."""
    if "repeat" not in entry:
        yield entry
        return
    for i in range(entry["repeat"]):
        yield filled(entry["object"], i)


def filled(value: Any, i: int) -> Any:
    if isinstance(value, str):
        return _MARK.sub(lambda mark: str(_worked_out(i, mark.group(1), mark.group(2))), value)
    if isinstance(value, Mapping):
        return {filled(key, i): filled(inner, i) for key, inner in value.items()}
    return [filled(inner, i) for inner in value] if isinstance(value, list) else value


def _worked_out(i: int, operator: str | None, by: str | None) -> int:
    if operator is None or by is None:
        return i
    return i // int(by) if operator == "//" else i % int(by)


def out_of_scope(case: Mapping[str, Any]) -> str | None:
    """What the story needs that there is nothing for yet; None where it can be played."""
    strange = [name for name in case["config"]["components"] if name not in local.KNOWN]
    listed = case["config"].get("scheduler") or {"actions": "", "tiers": []}
    strange += [name for part in listed["actions"].split(",") if (name := part.strip()) and name not in ACTIONS]
    strange += [p["name"] for tier in listed["tiers"] for p in tier["plugins"] if p["name"] not in PLUGINS]
    return f"no {', '.join(sorted(set(strange)))}" if strange else None


class Story:
    """Plays one case. After `play` all is in `played`."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        self.case = case
        config = case["config"]
        self._clock = VirtualClock(_start(config.get("start")))
        self._slow, self._trouble = Slow(), Trouble()
        kubelet = config.get("kubelet") or {}
        self.local = Local(
            _conf(config.get("scheduler")),
            self._clock,
            components=config["components"],
            admission=AdmissionSettings(enabled=tuple(route.path for route in ROUTES)),
            view=self._view,
            carry_out=self._slow,
            kubelet=partial(_kubelet, kubelet),
        )
        self.played = Played(case, self.local, Tape(self.local.cluster), self._trouble)
        self._recreate = bool((config.get("harness") or {}).get("recreateEvicted"))
        self._seen_deletions = 0

    def _view(self, component: str, cluster: Cluster) -> Cluster:
        assert isinstance(cluster, MemoryCluster)
        return View(component, cluster, self._trouble)

    # --- the course of things -------------------------------------------------------------------------------------------

    def play(self) -> Played:
        expectations.prepare(self.played, self.case["expect"])
        self._load()
        steps = self.case["steps"]
        end = max([0, *(step["at"] + step.get("advance", 0) for step in steps)])
        asked = {check["at"] for entry in self.case["expect"].get("invariants", ()) for check in entry.values()
                 if isinstance(check, Mapping) and "at" in check}  # fmt: skip
        self.local.start()
        for second in range(int(end) + 1):
            for number, step in enumerate(steps):
                if int(step["at"]) == second:
                    self._do(step, str(step.get("id", number)))
            self._recreate_evicted()
            self._slow.arrive(self._clock.now())
            self.local.work()
            self._take_down(second, second in asked)
            self._clock.advance_to(self.local.started + second + 1)
        return self.played

    def _load(self) -> None:
        objects = [obj for entry in self.case["objects"] for obj in expand(entry)]
        for age, obj in zip(reversed(range(len(objects))), objects, strict=True):
            obj = self.resolved(obj)
            obj["metadata"].setdefault("creationTimestamp", format_time(self.local.started - age))
            self.local.load([obj])

    def _take_down(self, second: int, asked: bool) -> None:
        played = self.played
        played.tape.listen()
        groups: dict[str, set[str]] = {}
        for pod in self.local.cluster.list(POD).objects:
            name = annotations_of(pod).get(labels.GROUP_NAME)
            if name and pod["spec"].get("nodeName"):
                groups.setdefault(name, set()).add(key_of(pod).name)
        played.bound_after.append({name: frozenset(pods) for name, pods in groups.items()})
        if asked:
            played.at[second] = self.local.objects()
            if self.local.manager is not None:
                played.queue_depth[second] = self.local.manager.queue_length()

    # --- steps ----------------------------------------------------------------------------------------------------------

    def _do(self, step: Json, name: str) -> None:
        try:
            self._take_step(self.resolved(step), name)
        except PumiceError as error:
            self.played.refused[name] = error
        else:
            self.played.accepted.append(name)
        if local.CONTROLLERS not in self.local.components:
            self.local.open_queues()

    def _take_step(self, step: Json, name: str) -> None:
        cluster = self.local.cluster
        if "create" in step:
            for obj in expand(step["create"]):
                cluster.create(kind_of(obj), obj)
        elif "delete" in step:
            kind, key = self._target(step["delete"])
            cluster.delete(kind, key, grace_seconds=step["delete"].get("gracePeriodSeconds"))
        elif "patch" in step:
            self._patch(step["patch"])
        elif "restart" in step:
            for component in step["restart"]:
                self.local.restart(component)
        elif "fault" in step:
            self._trouble.faults.append(Fault(**step["fault"]))
        elif "slow" in step:
            self._slow.slow(**step["slow"])
        elif "http" in step:
            self.played.responses[name] = self._ask(step["http"])
        elif "delayWatch" in step:
            self._trouble.delay(step["delayWatch"]["kind"], step["delayWatch"]["seconds"])
        elif "advance" not in step:
            raise ValueError(f"a step of no known type: {', '.join(step)}")

    def _ask(self, request: Json) -> Any:
        """What the extender answers, as it would over the wire."""
        service = self.local.extender
        assert service is not None, f"no {request['component']} runs"
        service.feed()
        app = create_app(service, CollectorRegistry())
        return app.test_client().post(f"/{request['verb']}", json=request["body"]).get_json()

    def _target(self, named: Json) -> tuple[Kind, Key]:
        kind = kind_named(named["kind"])
        return kind, Key(named.get("namespace", "default") if kind.namespaced else "", named["name"])

    def _patch(self, patch: Json) -> None:
        kind, key = self._target(patch)
        keys = [key_of(obj) for obj in self.local.cluster.list(kind, key.namespace).objects]
        matching = [each for each in keys if fnmatchcase(each.name, key.name)]
        if not matching:
            raise NotFound(f"no {kind} {key.name} to patch")
        for each in matching:
            subresource = patch.get("subresource", "")
            self.local.cluster.patch(kind, each, patch["merge"], subresource=subresource if kind.status_subresource else "")

    def resolved(self, value: Any) -> Any:
        """`$uid(Kind/namespace/name)` replaced by the uid of that object."""
        if isinstance(value, str):
            return _UID.sub(lambda mark: self.uid(mark.group(1)), value)
        if isinstance(value, Mapping):
            return {key: self.resolved(inner) for key, inner in value.items()}
        return [self.resolved(inner) for inner in value] if isinstance(value, list) else value

    def uid(self, path: str) -> str:
        kind_name, *rest = path.split("/")
        key = Key(rest[0], rest[1]) if len(rest) == 2 else Key("", rest[0])
        for kind in (kind for kind in KINDS if kind.name == kind_name):
            try:
                return uid_of(self.local.cluster.get(kind, key))
            except NotFound:
                continue
        return f"$uid({path})"

    def _recreate_evicted(self) -> None:
        """harness.recreateEvicted: what the scheduler evicted and is gone comes again, a second later."""
        if not self._recreate:
            return
        evicted = {write.uid for write in self.played.evictions()}
        moments = self.played.tape.moments[POD]
        for moment in moments[self._seen_deletions :]:
            if moment.type == "DELETED" and uid_of(moment.object) in evicted:
                self.local.cluster.create(POD, _afresh(moment.object))
        self._seen_deletions = len(moments)


def _afresh(pod: Json) -> Json:
    """The manifest from which the pod was made."""
    metadata = {name: value for name, value in pod["metadata"].items() if name in ("name", "namespace", "labels", "annotations")}
    spec = {name: value for name, value in pod["spec"].items() if name != "nodeName"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _start(text: Any) -> float:
    if text is None:
        return START
    moment = text if isinstance(text, dt.datetime) else dt.datetime.fromisoformat(str(text).replace("Z", "+00:00"))
    return (moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)).timestamp()


def _conf(listed: Json | None) -> conf.Conf:
    text = yaml.safe_dump(listed) if listed else conf.DEFAULT
    return conf.load(text, PLUGINS, ACTIONS, source="config.scheduler")


def _kubelet(listed: Json, cluster: Cluster, clock: Clock) -> Kubelet:
    return Kubelet(cluster, clock, complete_after=listed.get("completeAfter"), not_ready=listed.get("notReady") or ())


def judge(case: Mapping[str, Any]) -> list[str]:
    """Play the story; what does not hold."""
    story = Story(case)
    played = story.play()
    return list(expectations.faults(played, story.resolved(case["expect"])))


def _verdict(case: Mapping[str, Any]) -> tuple[str, list[str]]:
    lacking = out_of_scope(case)
    if lacking:
        return "skipped", [lacking]
    faults = judge(case)
    return "differs" if faults else "holds", faults


if __name__ == "__main__":
    sys.exit(cases.tell(sys.argv[1:], _verdict))
