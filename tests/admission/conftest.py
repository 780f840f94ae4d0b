"""Sends recorded or written requests through the admission handlers, without a server: `ask(case)` gives the Outcome.

A case holds paths, operation, object, oldObject, existing and flags, as the recorded cases do. The queues `default` and
`root` are always there and Open; a queue without a status is Open, one with an empty status has no state."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
import yaml

from extender.api.errors import Fault
from extender.api.meta import Json, Key, Kind, key_of, uid_of
from extender.cluster.patches import json_patch
from extender.cluster.port import AdmissionRequest
from webhook.admission import answer
from webhook.pods.groups import resource_groups
from webhook.routes import BY_PATH
from webhook.settings import Settings
from webhook.verdict import Deny, Verdict

OPEN = {"state": "Open"}


@dataclass
class Shelf:
    """A ClusterView over plain objects."""

    objects: Sequence[Json] = ()

    def queues(self) -> list[Json]:
        known = {queue["metadata"]["name"]: queue for queue in (_queue("root"), _queue("default", "root"))}
        for obj in self.objects:
            if obj["kind"] == "Queue":
                known[obj["metadata"]["name"]] = {"status": OPEN, **obj}
        return list(known.values())

    def queue(self, name: str) -> Json | None:
        return next((queue for queue in self.queues() if queue["metadata"]["name"] == name), None)

    def children(self, parent: str) -> list[Json]:
        return [queue for queue in self.queues() if queue["spec"].get("parent") == parent]

    def namespace(self, name: str) -> Json | None:
        spaces = (obj for obj in self.objects if obj["kind"] == "Namespace" and obj["metadata"]["name"] == name)
        return next(spaces, None)

    def owner(self, kind: Kind, key: Key, uid: str) -> Json | None:
        found = (obj for obj in self.objects if (obj["kind"], key_of(obj), uid_of(obj)) == (kind.name, key, uid))
        return next(found, None)


def _queue(name: str, parent: str = "") -> Json:
    return {"kind": "Queue", "metadata": {"name": name}, "spec": {"parent": parent}, "status": OPEN}


@dataclass
class Outcome:
    """What came of the paths of a case, one after the other."""

    allowed: bool = True
    denied_by: str = ""
    faults: Sequence[Fault] = ()
    patches: dict[str, list[Json]] = field(default_factory=dict)
    object: Json | None = None


Ask = Callable[[Json], Outcome]


def settings_of(flags: Json) -> Settings:
    conf = flags.get("admission-conf")
    given: dict[str, Any] = {
        "enabled": tuple(BY_PATH),
        "resource_groups": resource_groups(yaml.safe_dump(conf)) if conf is not None else None,
        "queue_allocation_gate": flags.get("feature-gates", {}).get("SchedulingGatesQueueAdmission", False),
    }
    for flag, name in (("max-queue-depth", "max_queue_depth"), ("enable-root-queue-protection", "root_queue_protection"),
                       ("enable-queue-allocated-pods-check", "allocated_pods_check")):  # fmt: skip
        if flag in flags:
            given[name] = flags[flag]
    return Settings(**given)


def ask_path(path: str, case: Json, obj: Json | None) -> Verdict:
    named = obj or case.get("oldObject") or {}
    meta = named.get("metadata", {}) if isinstance(named, dict) else {}
    key = Key(meta.get("namespace", ""), case.get("name") or meta.get("name", "")) if isinstance(meta, dict) else Key("", "")
    request = AdmissionRequest(case["operation"], BY_PATH[path].kind, key, obj, case.get("oldObject"))
    return answer(BY_PATH[path], request, Shelf(case.get("existing", [])), settings_of(case.get("flags", {})))


@pytest.fixture
def ask() -> Ask:
    return outcome


def outcome(case: Json) -> Outcome:
    result = Outcome(object=copy.deepcopy(case.get("object")))
    for path in case["paths"]:
        verdict = ask_path(path, case, result.object)
        if isinstance(verdict, Deny):
            result.allowed, result.denied_by, result.faults = False, path, verdict.faults
            break
        if verdict.patch and result.object is not None:
            result.patches[path] = list(verdict.patch)
            result.object = json_patch(result.object, result.patches[path])
    return result
