"""What follows the cluster and its files while the webhook answers."""

from __future__ import annotations

import threading
from base64 import b64decode
from pathlib import Path

import pytest

from extender.api.errors import ConfError, Unavailable
from extender.api.meta import MUTATING_WEBHOOKS, NAMESPACE, QUEUE, REPLICA_SET, VALIDATING_WEBHOOKS, Json, Key, Kind
from extender.cluster.clock import VirtualClock
from extender.cluster.from_files import LOOK_SECONDS, FromFiles
from extender.cluster.memory import MemoryCluster
from extender.cluster.port import Listing
from tests.webhook.reviews import queue
from webhook.manifests import configurations
from webhook.routes import BY_PATH
from webhook.serving import read_groups
from webhook.trust import PATIENCE, keep_published, publish_all, read_authority
from webhook.watched import OWNER_SECONDS, WatchedView

# --- the cluster ------------------------------------------------------------------------------------------------------------


def test_queues_come_change_and_go(memory: MemoryCluster, view: WatchedView) -> None:
    view.step(QUEUE)
    assert view.queue("team") is None
    memory.create(QUEUE, queue("team", parent="default"))
    view.step(QUEUE)
    assert [child["metadata"]["name"] for child in view.children("default")] == ["team"]
    memory.patch(QUEUE, Key("", "team"), {"spec": {"parent": "root"}})
    view.step(QUEUE)
    assert view.children("default") == ()
    memory.delete(QUEUE, Key("", "team"))
    view.step(QUEUE)
    assert view.queue("team") is None
    assert {each["metadata"]["name"] for each in view.queues()} == {"root", "default"}


def test_what_is_missing_is_named_until_it_has_come(view: WatchedView) -> None:
    assert list(view.missing) == [QUEUE, NAMESPACE]
    view.step(QUEUE)
    assert list(view.missing) == [NAMESPACE]
    view.step(NAMESPACE)
    assert list(view.missing) == []


class Failing(MemoryCluster):
    failures = 3

    def list(self, kind: Kind, namespace: str = "", label_selector: str = "", field_selector: str = "") -> Listing:
        if self.failures:
            self.failures -= 1
            raise Unavailable("not now")
        return super().list(kind, namespace, label_selector, field_selector)


class Steps(threading.Event):
    """Is set after so many pauses, which it notes."""

    def __init__(self, limit: int = 3) -> None:
        super().__init__()
        self.limit, self.pauses = limit, list[float | None]()

    def wait(self, timeout: float | None = None) -> bool:
        self.pauses.append(timeout)
        if len(self.pauses) >= self.limit:
            self.set()
        return self.is_set()


def test_a_cluster_that_cannot_be_reached_is_asked_again_and_again(clock: VirtualClock, caplog: pytest.LogCaptureFixture) -> None:
    """With longer pauses each time."""
    stop = Steps()
    WatchedView(Failing(clock), clock, [QUEUE]).follow(QUEUE, stop)
    assert [round(pause or 0, 1) for pause in stop.pauses] == pytest.approx([0.5, 1.0, 2.0], rel=0.21)
    assert "cannot be followed" in caplog.text


class Counting(MemoryCluster):
    asked = 0

    def get(self, kind: Kind, key: Key) -> Json:
        self.asked += kind == REPLICA_SET
        return super().get(kind, key)


def test_an_owner_is_read_once_for_all_its_pods(clock: VirtualClock) -> None:
    cluster = Counting(clock)
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "main", "image": "example.test/app:1"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    meta = {"name": "web", "namespace": "default", "uid": "u"}
    cluster.load([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta, "spec": spec}])
    view, before = WatchedView(cluster, clock, []), cluster.asked
    for _ in range(5):
        assert view.owner(REPLICA_SET, Key("default", "web"), "u") is not None
    assert view.owner(REPLICA_SET, Key("default", "web"), "another") is None
    assert view.owner(REPLICA_SET, Key("default", "gone"), "u") is None
    assert cluster.asked - before == 3
    clock.sleep(OWNER_SECONDS + 1)
    view.owner(REPLICA_SET, Key("default", "web"), "u")
    assert cluster.asked - before == 4


# --- files ------------------------------------------------------------------------------------------------------------------


def test_an_admission_configuration_may_come_later(tmp_path: Path, clock: VirtualClock) -> None:
    file = tmp_path / "conf.yaml"
    groups = FromFiles("conf", [file], lambda: read_groups(str(file)), clock)
    assert groups() is None
    file.write_text("resourceGroups:\n- {resourceGroup: gpu, schedulerName: volcano}\n")
    clock.sleep(LOOK_SECONDS)
    assert [group.name for group in groups() or ()] == ["gpu"]
    file.write_text("resourceGroups: 7\n")
    clock.sleep(LOOK_SECONDS)
    assert [group.name for group in groups() or ()] == ["gpu"]


# --- the authority ------------------------------------------------------------------------------------------------------------

PATHS = ["/jobs/mutate", "/jobs/validate"]
BUNDLE = b"-----BEGIN CERTIFICATE-----\n"


@pytest.fixture
def configured(memory: MemoryCluster) -> MemoryCluster:
    for made in configurations(routes=[BY_PATH[path] for path in PATHS]):
        memory.create(MUTATING_WEBHOOKS if made["kind"].startswith("Mut") else VALIDATING_WEBHOOKS, made)
    return memory


def told(cluster: MemoryCluster) -> set[bytes]:
    found = [*cluster.list(MUTATING_WEBHOOKS).objects, *cluster.list(VALIDATING_WEBHOOKS).objects]
    return {b64decode(webhook["clientConfig"].get("caBundle", "")) for each in found for webhook in each["webhooks"]}


def test_the_authority_gets_into_the_configurations(configured: MemoryCluster) -> None:
    assert publish_all(configured, PATHS, BUNDLE) == []
    assert told(configured) == {BUNDLE}


def test_nothing_is_written_where_it_is_there_already(configured: MemoryCluster) -> None:
    publish_all(configured, PATHS, BUNDLE)
    before = configured.list(MUTATING_WEBHOOKS)
    publish_all(configured, PATHS, BUNDLE)
    assert configured.list(MUTATING_WEBHOOKS) == before


def test_a_configuration_that_is_missing_is_waited_for(
    memory: MemoryCluster, clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """And told about after five minutes."""
    stop = Steps(limit=2)
    keep_published(memory, PATHS, lambda: BUNDLE, clock, stop)
    assert (stop.pauses, caplog.text) == ([1.0, 1.0], "")

    class Late(Steps):
        def wait(self, timeout: float | None = None) -> bool:
            clock.sleep(PATIENCE)
            return super().wait(timeout)

    keep_published(memory, PATHS, lambda: BUNDLE, clock, Late(limit=3))
    assert caplog.text.count("no such webhook configuration") == 1


def test_an_authority_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("nonsense")
    with pytest.raises(ConfError, match="holds no certificate"):
        read_authority(str(tmp_path / "ca.crt"))
