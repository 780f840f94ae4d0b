"""A webhook on an embedded cluster: its application without a server (`client`), reviews to ask it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from flask.testing import FlaskClient

from extender.api.meta import NAMESPACE, QUEUE, Json
from extender.cluster.clock import VirtualClock
from extender.cluster.memory import MemoryCluster
from tests.webhook.reviews import queue
from webhook.app import Site, create_app
from webhook.errands import Errands
from webhook.metrics import Metrics
from webhook.routes import BY_PATH
from webhook.settings import Settings
from webhook.watched import WatchedView


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(1_736_121_600.0)


@pytest.fixture
def memory(clock: VirtualClock) -> MemoryCluster:
    cluster = MemoryCluster(clock)
    asks = {"name": "batch", "labels": {"pumice.io/schedule": "true"}}
    cluster.load([queue("root"), queue("default", parent="root"), {"apiVersion": "v1", "kind": "Namespace", "metadata": asks}])
    return cluster


@pytest.fixture
def view(memory: MemoryCluster, clock: VirtualClock) -> WatchedView:
    """Not fed yet."""
    return WatchedView(memory, clock, [QUEUE, NAMESPACE])


@pytest.fixture
def outcomes() -> list[str]:
    """What became of the errands."""
    return []


@pytest.fixture
def errands(memory: MemoryCluster, clock: VirtualClock, outcomes: list[str]) -> Errands:
    """Without its thread: `run_one` does one."""
    return Errands(memory, clock, outcomes.append)


@pytest.fixture
def site(view: WatchedView, errands: Errands) -> Site:
    settings = Settings(enabled=tuple(BY_PATH))
    return Site(lambda: settings, view, missing=lambda: view.missing, take=errands.take, metrics=Metrics())


@pytest.fixture
def client(site: Site, view: WatchedView) -> FlaskClient:
    """Of a webhook that has read its cluster."""
    view.step(QUEUE)
    view.step(NAMESPACE)
    return create_app(site, tuple(BY_PATH)).test_client()


@pytest.fixture
def ask(client: FlaskClient) -> Callable[..., Json]:
    """The `response` of a review."""

    def answer(path: str, body: Json) -> Json:
        got = client.post(path, json=body)
        assert got.status_code == 200, got.text
        assert got.content_type == "application/json"
        answered: Json = got.get_json()
        assert (answered["apiVersion"], answered["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
        return dict(answered["response"])

    return answer
