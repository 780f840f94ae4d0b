"""The adapter among faults: answers lost, requests refused, watches cut, a server that is killed and comes again."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from extender.api.errors import ClusterError, Conflict, Denied, Gone, TooManyRequests, Unavailable
from extender.api.meta import CONFIG_MAP, EVENT, POD, Json, Key
from extender.cluster.clock import SystemClock
from extender.cluster.connection import Connection, loader
from extender.cluster.following import Follower
from extender.cluster.kubernetes import KubernetesCluster, connect
from extender.cluster.port import Watch
from extender.testing.builders import Built, pod
from tests.controlplane.plane import API_SERVER, Plane
from tests.controlplane.proxy import FaultProxy, Refusal, every
from tests.controlplane.waiting import wait_until


@pytest.fixture
def proxy(plane: Plane) -> Iterator[FaultProxy]:
    with FaultProxy(plane) as running:
        yield running


@pytest.fixture
def faulty(proxy: FaultProxy) -> Iterator[KubernetesCluster]:
    """The API server through the proxy."""
    cluster = connect(str(proxy.kubeconfig))
    yield cluster
    cluster.close()


@pytest.fixture
def ns(new_namespace: Callable[[], str]) -> str:
    return new_namespace()


def config_map(name: str, ns: str) -> Json:
    return Built(CONFIG_MAP, name, ns)


def names_seen(watch: Watch, count: int) -> list[str]:
    names: list[str] = []

    def enough() -> bool:
        names.extend(event.object["metadata"]["name"] for event in watch.poll())
        return len(names) >= count

    wait_until(enough, f"{count} events")
    return names


# --- requests -----------------------------------------------------------------------------------------------------------


def test_what_the_server_turns_away_unread_is_sent_again(faulty: KubernetesCluster, proxy: FaultProxy, ns: str) -> None:
    proxy.refuse = every(3, {"POST"}, Refusal(429))
    for i in range(12):
        faulty.create(CONFIG_MAP, config_map(f"c{i}", ns))
    assert (proxy.refused, len(faulty.list(CONFIG_MAP, ns).objects)) == (5, 13)  # kube-root-ca.crt is there, too


def test_a_creation_of_unknown_outcome_is_not_repeated(faulty: KubernetesCluster, proxy: FaultProxy, ns: str) -> None:
    proxy.refuse = every(1, {"POST"}, Refusal(500, reached=True))
    with pytest.raises(ClusterError, match="refused by the proxy"):
        faulty.create(CONFIG_MAP, config_map("c", ns))
    assert (proxy.refused, faulty.get(CONFIG_MAP, Key(ns, "c"))["metadata"]["name"]) == (1, "c")


def test_a_merge_patch_is(faulty: KubernetesCluster, proxy: FaultProxy, ns: str) -> None:
    faulty.create(CONFIG_MAP, config_map("c", ns))
    proxy.refuse = once(Refusal(500, reached=True))
    assert faulty.patch(CONFIG_MAP, Key(ns, "c"), {"data": {"a": "1"}})["data"] == {"a": "1"}


def test_a_binding_whose_answer_was_lost_is_done(faulty: KubernetesCluster, proxy: FaultProxy, ns: str) -> None:
    uid = faulty.create(POD, pod("p", ns))["metadata"]["uid"]
    proxy.refuse = once(Refusal(500, reached=True))
    faulty.bind(Key(ns, "p"), "nowhere", uid=uid)
    assert (proxy.refused, faulty.get(POD, Key(ns, "p"))["spec"]["nodeName"]) == (1, "nowhere")


def test_a_binding_that_somebody_else_forestalled_is_a_conflict(
    faulty: KubernetesCluster, proxy: FaultProxy, kubernetes: KubernetesCluster, ns: str
) -> None:
    kubernetes.create(POD, pod("p", ns))
    kubernetes.bind(Key(ns, "p"), "elsewhere")
    proxy.refuse = once(Refusal(500))
    with pytest.raises(Conflict, match='pod p is already assigned to node "elsewhere"'):
        faulty.bind(Key(ns, "p"), "nowhere")


def test_an_eviction_that_may_not_be_is_not_tried_again(faulty: KubernetesCluster, proxy: FaultProxy, ns: str) -> None:
    faulty.create(POD, pod("p", ns))
    proxy.refuse = every(1, {"POST"}, Refusal(429))
    with pytest.raises(TooManyRequests):
        faulty.evict(Key(ns, "p"))
    assert proxy.refused == 1


def test_a_server_that_asks_for_too_much_patience_gets_none(faulty: KubernetesCluster, proxy: FaultProxy, ns: str) -> None:
    proxy.refuse = every(1, {"GET"}, Refusal(429, retry_after=3600))
    with pytest.raises(TooManyRequests):
        faulty.list(CONFIG_MAP, ns)


def once(refusal: Refusal) -> Callable[[object], Refusal | None]:
    left = [refusal]
    return lambda _: left.pop() if left else None


# --- lists and watches --------------------------------------------------------------------------------------------------


def test_a_long_list_comes_in_pages(plane: Plane, ns: str) -> None:
    cluster = KubernetesCluster(Connection(loader(str(plane.kubeconfig)), SystemClock()), page=4)
    for i in range(10):
        cluster.create(CONFIG_MAP, config_map(f"c{i}", ns))
    listed = [obj["metadata"]["name"] for obj in cluster.list(CONFIG_MAP, ns).objects]
    cluster.close()
    assert listed == [*(f"c{i}" for i in range(10)), "kube-root-ca.crt"]


def test_a_watch_that_is_cut_goes_on_without_a_gap(faulty: KubernetesCluster, proxy: FaultProxy, ns: str) -> None:
    watch = faulty.watch(CONFIG_MAP, faulty.list(CONFIG_MAP, ns).resource_version, ns)
    seen = []
    for i in range(3):
        faulty.create(CONFIG_MAP, config_map(f"before-{i}", ns))
        seen += names_seen(watch, 1)
        assert proxy.cut_watches() == 1
        faulty.create(CONFIG_MAP, config_map(f"while-{i}", ns))
        seen += names_seen(watch, 1)
    watch.close()
    assert seen == [f"{when}-{i}" for i in range(3) for when in ("before", "while")]


def test_a_version_from_long_ago_is_gone(plane: Plane, kubernetes: KubernetesCluster, ns: str) -> None:
    """Events are not cached by the API server, so that it knows of them what etcd does."""
    version = kubernetes.list(EVENT, ns).resource_version
    for i in range(3):
        kubernetes.create(CONFIG_MAP, config_map(f"c{i}", ns))
    plane.forget_the_past()
    watch = kubernetes.watch(EVENT, version, ns)
    with pytest.raises(Gone, match="too old"):
        wait_until(watch.poll, "an answer")
    watch.close()


def test_who_follows_is_right_after_the_server_was_killed(plane: Plane, kubernetes: KubernetesCluster, ns: str) -> None:
    """What it saw in the end is what is there, each object added and removed once."""
    follower = Follower(kubernetes, CONFIG_MAP)
    there: dict[Key, str] = {}

    def seen() -> dict[Key, str]:
        for event in follower.poll():
            key = Key(event.object["metadata"]["namespace"], event.object["metadata"]["name"])
            assert (key in there) == (event.type != "ADDED"), f"{event.type} {key}"
            if event.type == "DELETED":
                del there[key]
            else:
                there[key] = event.object["metadata"]["resourceVersion"]
        return there

    seen()
    kubernetes.create(CONFIG_MAP, config_map("a", ns))
    kubernetes.create(CONFIG_MAP, config_map("b", ns))
    wait_until(lambda: Key(ns, "b") in seen(), "the watch")
    plane.kill(API_SERVER)
    with pytest.raises(Unavailable):
        kubernetes.get(CONFIG_MAP, Key(ns, "a"))
    plane.restart(API_SERVER)
    kubernetes.delete(CONFIG_MAP, Key(ns, "a"))
    kubernetes.create(CONFIG_MAP, config_map("c", ns))
    wait_until(lambda: Key(ns, "c") in seen() and Key(ns, "a") not in there, "the watch to go on")
    follower.close()
    assert {key.name for key in there if key.namespace == ns} == {"b", "c", "kube-root-ca.crt"}


# --- who we are ---------------------------------------------------------------------------------------------------------


def test_a_service_account_may_do_what_it_was_given(plane: Plane, ns: str) -> None:
    cluster = connect(str(plane.kubeconfig_of_service_account(ns, "default")))
    with pytest.raises(Denied, match=f'User "system:serviceaccount:{ns}:default" cannot list resource "configmaps"'):
        cluster.list(CONFIG_MAP, ns)
    cluster.close()


def test_a_watch_says_that_it_is_not_allowed(plane: Plane, ns: str) -> None:
    cluster = connect(str(plane.kubeconfig_of_service_account(ns, "default")))
    watch = cluster.watch(CONFIG_MAP, "1", ns)
    with pytest.raises(Denied, match="cannot watch resource"):
        wait_until(watch.poll, "an answer")
    watch.close()
    cluster.close()


def test_a_token_that_is_not_taken_any_more_is_fetched_anew(plane: Plane, ns: str, tmp_path: Path) -> None:
    """An exec plugin that first has an old token and then a new one."""
    token = tmp_path / "token"
    token.write_text("old")
    plugin = tmp_path / "plugin"
    credential = '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "%s"}}\\n'
    plugin.write_text(f"#!/bin/sh\nprintf '{credential}' \"$(cat {token})\"\n")
    plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)
    api = "client.authentication.k8s.io/v1"
    kubeconfig = plane.write_kubeconfig("exec", {
        "exec": {"apiVersion": api, "command": str(plugin), "interactiveMode": "Never"}})  # fmt: skip
    cluster = connect(str(kubeconfig))
    with pytest.raises(ClusterError, match="Unauthorized"):
        cluster.list(CONFIG_MAP, ns)
    token.write_text(plane.token_of(ns, "default"))
    with pytest.raises(Denied, match="system:serviceaccount"):
        cluster.list(CONFIG_MAP, ns)
    cluster.close()
