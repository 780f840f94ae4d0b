"""Stories from bug reports that play at admission: schema and webhooks together, on the embedded cluster."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from extender.api.errors import ClusterError, Denied, Invalid
from extender.api.meta import QUEUE, Json, Key, Kind, kind_of
from extender.cluster.clock import VirtualClock
from extender.cluster.memory import MemoryCluster
from extender.testing.cases import load
from webhook.admission import WebhookAdmission
from webhook.routes import BY_PATH, ROUTES
from webhook.settings import Settings

OPEN = {"state": "Open"}
OURS = {route.kind.name: route.kind for route in ROUTES}


def world(objects: list[Json]) -> MemoryCluster:
    """The objects are there, and every path is served."""
    cluster = MemoryCluster(VirtualClock())
    have = [_queue("root"), _queue("default"), *objects]
    cluster.load([obj if obj["kind"] != "Queue" else {"status": OPEN, **obj} for obj in have])
    cluster.admission = WebhookAdmission(cluster, Settings(enabled=tuple(BY_PATH)))
    return cluster


def _queue(name: str) -> Json:
    return {"apiVersion": QUEUE.api_version, "kind": "Queue", "metadata": {"name": name}, "spec": {}}


def take(cluster: MemoryCluster, step: Json) -> None:
    if "create" in step:
        cluster.create(kind_of(step["create"]), step["create"])
    elif "patch" in step:
        cluster.patch(*_target(step["patch"]), step["patch"]["merge"])
    else:
        cluster.delete(*_target(step["delete"]))


def _target(named: Json) -> tuple[Kind, Key]:
    return OURS[named["kind"]], Key(named.get("namespace", ""), named["name"])


def value_at(obj: Any, path: str) -> Any:
    for name, index in re.findall(r"(\w+)|\[(\d+)\]", path):
        obj = obj[name] if name else obj[int(index)]
    return obj


@pytest.mark.cases("reports", "BR-0[34]*.yaml")
def test_stories_of_the_webhooks(case: Path) -> None:
    story = load(case)
    if story["area"] != "webhook":
        pytest.skip("not a story of the webhooks")
    cluster, answers = world(story["objects"]), {}
    for step in story["steps"]:
        try:
            take(cluster, step)
        except (Denied, Invalid) as error:
            answers[step["id"]] = str(error)
    assert sorted(answers) == sorted(entry["step"] for entry in story["expect"]["denied"]), answers
    for entry in story["expect"]["denied"]:
        message = answers[entry["step"]]
        assert re.search(entry["matches"], message), message
        fields = re.findall(r"(?:metadata|spec|status)[\w.\[\]/-]*", message)
        assert any(field.startswith(entry["field"]) or entry["field"].startswith(field) for field in fields), message
    for entry in story["expect"].get("invariants", []):
        check = entry["field"]
        found = cluster.get(OURS[check["kind"]], Key("default", check["name"]))
        assert value_at(found, check["path"]) == check["equals"], check


def test_a_refusal_reads_like_the_real_server() -> None:
    """kubectl and operators know these words."""
    cluster = world([])
    with pytest.raises(ClusterError, match=r'admission webhook "validatequeue.volcano.sh" denied the request: metadata.name: '):
        cluster.delete(QUEUE, Key("", "default"))
