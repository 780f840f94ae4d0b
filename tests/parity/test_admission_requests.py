"""Generated requests as the reference's own admission handlers answered them (volcano ed72c7c), verdict by verdict.

Only requests on which we mean to agree were kept: the differences are listed in docs/differences.md. `queues` are there besides
`default` and `root`, which are Open."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from extender.api.decode import decode
from extender.api.meta import Json, Key, Kind
from extender.cluster.port import AdmissionRequest
from webhook.admission import answer
from webhook.routes import BY_PATH
from webhook.settings import Settings
from webhook.shapes import QUEUE
from webhook.verdict import Allow

RECORDED = [json.loads(line) for line in Path(__file__).with_name("admission_requests.jsonl").read_text().splitlines()]


class Queues:
    """A ClusterView of queues only."""

    def __init__(self, listed: Sequence[Json]) -> None:
        always = [{"metadata": {"name": name}, "spec": {"parent": parent}, "status": {"state": "Open"}}
                  for name, parent in (("default", "root"), ("root", ""))]  # fmt: skip
        self._queues: list[Json] = [decode(queue, QUEUE)[0] for queue in (*always, *listed)]

    def queues(self) -> Sequence[Json]:
        return self._queues

    def queue(self, name: str) -> Json | None:
        return next((queue for queue in self._queues if queue["metadata"]["name"] == name), None)

    def children(self, parent: str) -> Sequence[Json]:
        return [queue for queue in self._queues if queue["spec"].get("parent") == parent]

    def namespace(self, name: str) -> Json | None:
        return {"metadata": {"name": name}}

    def owner(self, kind: Kind, key: Key, uid: str) -> Json | None:
        return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {**key._asdict(), "uid": uid}}


@pytest.mark.parametrize("entry", RECORDED, ids=[f"{number:03}{entry['path']}" for number, entry in enumerate(RECORDED)])
def test_the_verdict_is_that_of_the_reference(entry: Json) -> None:
    route = BY_PATH[entry["path"]]
    settings = Settings(
        max_queue_depth=entry.get("maxQueueDepth", 5),
        root_queue_protection=entry.get("rootQueueProtection", True),
        allocated_pods_check=entry.get("allocatedPodsCheck", False),
    )
    request = AdmissionRequest(
        entry["operation"], route.kind, Key("default", entry["name"]), entry.get("object"), entry.get("oldObject")
    )
    verdict = answer(route, request, Queues(entry.get("queues", ())), settings)
    assert isinstance(verdict, Allow) is entry["allowed"], verdict
