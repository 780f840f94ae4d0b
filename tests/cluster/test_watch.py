"""Contract: a watch tells everything after a version, in order and once."""

from __future__ import annotations

import pytest

from extender.api.errors import Gone
from extender.api.meta import CONFIG_MAP, EVENT, NODE, POD, Key
from extender.cluster.clock import VirtualClock
from extender.cluster.memory import MemoryCluster
from extender.cluster.port import Cluster, Watch, WatchEvent
from extender.testing.builders import Built, node, pod
from tests.controlplane.waiting import wait_until


def seen(watch: Watch, at_least: int = 1) -> list[tuple[str, str]]:
    """Types and names of the events, waiting for as many as are asked for; the watch ends with it."""
    events: list[WatchEvent] = []

    def enough() -> bool:
        events.extend(event for event in watch.poll() if event.type != "BOOKMARK")
        return len(events) >= at_least

    wait_until(enough, f"{at_least} events")
    watch.close()
    return [(event.type, event.object["metadata"]["name"]) for event in events]


def test_a_watch_goes_on_where_the_list_ended(cluster: Cluster, ns: str) -> None:
    cluster.create(POD, pod("before", ns))
    watch = cluster.watch(POD, cluster.list(POD, ns).resource_version, ns)
    cluster.create(POD, pod("after", ns))
    assert seen(watch) == [("ADDED", "after")]


def test_events_come_in_order(cluster: Cluster, ns: str) -> None:
    """A pod that is deleted is seen to be on its way first, also where it goes at once."""
    watch = cluster.watch(POD, cluster.list(POD, ns).resource_version, ns)
    cluster.create(POD, pod("p", ns))
    cluster.patch(POD, Key(ns, "p"), {"metadata": {"labels": {"a": "b"}}})
    cluster.delete(POD, Key(ns, "p"))
    assert seen(watch, 4) == [("ADDED", "p"), ("MODIFIED", "p"), ("MODIFIED", "p"), ("DELETED", "p")]


def test_a_config_map_goes_in_one_step(cluster: Cluster, ns: str) -> None:
    cluster.create(CONFIG_MAP, Built(CONFIG_MAP, "c", ns))
    watch = cluster.watch(CONFIG_MAP, cluster.list(CONFIG_MAP, ns).resource_version, ns)
    cluster.delete(CONFIG_MAP, Key(ns, "c"))
    cluster.create(CONFIG_MAP, Built(CONFIG_MAP, "d", ns))
    assert seen(watch, 2) == [("DELETED", "c"), ("ADDED", "d")]


def test_two_watches_see_the_same(cluster: Cluster, ns: str) -> None:
    version = cluster.list(POD, ns).resource_version
    watches = [cluster.watch(POD, version, ns) for _ in range(2)]
    cluster.create(POD, pod("p", ns))
    assert [seen(watch) for watch in watches] == [[("ADDED", "p")]] * 2


def test_a_watch_may_begin_in_the_past(cluster: Cluster, ns: str) -> None:
    version = cluster.list(POD, ns).resource_version
    cluster.create(POD, pod("p", ns))
    assert seen(cluster.watch(POD, version, ns)) == [("ADDED", "p")]


def test_from_nowhere_it_begins_with_what_is_there(cluster: Cluster, ns: str) -> None:
    cluster.create(POD, pod("p", ns))
    assert seen(cluster.watch(POD, "0", ns)) == [("ADDED", "p")]


def test_other_namespaces_are_not_seen(cluster: Cluster, ns: str) -> None:
    watch = cluster.watch(POD, cluster.list(POD, ns).resource_version, ns)
    cluster.create(POD, pod("elsewhere", "default"))
    cluster.delete(POD, Key("default", "elsewhere"))
    cluster.create(POD, pod("here", ns))
    assert seen(watch) == [("ADDED", "here")]


def test_what_begins_to_match_is_added(cluster: Cluster, ns: str) -> None:
    watch = cluster.watch(POD, cluster.list(POD, ns).resource_version, ns, label_selector="a=b")
    cluster.create(POD, pod("p", ns))
    cluster.patch(POD, Key(ns, "p"), {"metadata": {"labels": {"a": "b"}}})
    assert seen(watch) == [("ADDED", "p")]


def test_what_ceases_to_match_is_deleted(cluster: Cluster, ns: str) -> None:
    cluster.create(POD, pod("p", ns))
    watch = cluster.watch(POD, cluster.list(POD, ns).resource_version, ns, field_selector="spec.nodeName=")
    cluster.bind(Key(ns, "p"), "n1")
    assert seen(watch) == [("DELETED", "p")]


def test_the_last_state_comes_with_the_deletion(cluster: Cluster, ns: str) -> None:
    cluster.create(POD, pod("p", ns).labels(a="b"))
    watch = cluster.watch(POD, cluster.list(POD, ns).resource_version, ns)
    cluster.delete(POD, Key(ns, "p"))
    event = next(event for event in watch if event.type == "DELETED")
    watch.close()
    assert event.object["metadata"]["labels"] == {"a": "b"}


def test_a_deletion_has_a_version_of_its_own(cluster: Cluster, ns: str) -> None:
    made = cluster.create(POD, pod("p", ns))
    watch = cluster.watch(POD, cluster.list(POD, ns).resource_version, ns)
    cluster.delete(POD, Key(ns, "p"))
    event = next(event for event in watch if event.type == "DELETED")
    watch.close()
    assert int(event.object["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])


def test_a_write_that_changes_nothing_is_not_seen(cluster: Cluster, ns: str) -> None:
    cluster.create(POD, pod("p", ns).labels(a="b"))
    watch = cluster.watch(POD, cluster.list(POD, ns).resource_version, ns)
    cluster.patch(POD, Key(ns, "p"), {"metadata": {"labels": {"a": "b"}}})
    cluster.patch(POD, Key(ns, "p"), {"metadata": {"labels": {"a": "c"}}})
    assert seen(watch) == [("MODIFIED", "p")]


def test_a_closed_watch_ends(cluster: Cluster, ns: str) -> None:
    watch = cluster.watch(POD, cluster.list(POD, ns).resource_version, ns)
    watch.close()
    assert list(watch) == []


# --- the embedded cluster's own ----------------------------------------------------------------------------------------


def test_a_version_older_than_the_history_is_gone(clock: VirtualClock) -> None:
    cluster = MemoryCluster(clock, history=10)
    old = cluster.list(CONFIG_MAP).resource_version
    for i in range(11):
        cluster.create(CONFIG_MAP, Built(CONFIG_MAP, f"c{i}"))
    with pytest.raises(Gone, match="too old resource version"):
        cluster.watch(CONFIG_MAP, old)


def test_a_watch_that_fell_behind_is_gone(clock: VirtualClock) -> None:
    cluster = MemoryCluster(clock, history=10)
    watch = cluster.watch(CONFIG_MAP, cluster.list(CONFIG_MAP).resource_version)
    for i in range(100):
        cluster.create(CONFIG_MAP, Built(CONFIG_MAP, f"c{i}"))
    with pytest.raises(Gone):
        watch.poll()


def test_what_happens_to_other_kinds_ages_no_history(clock: VirtualClock) -> None:
    cluster = MemoryCluster(clock, history=10)
    old = cluster.list(NODE).resource_version
    for i in range(100):
        cluster.create(CONFIG_MAP, Built(CONFIG_MAP, f"c{i}"))
    cluster.create(NODE, node("n1"))
    assert seen(cluster.watch(NODE, old)) == [("ADDED", "n1")]


def test_a_watch_that_lags_sees_what_is_old_enough(memory: MemoryCluster, clock: VirtualClock) -> None:
    watch = memory.watch(NODE, "0")
    watch.lag = 3.0
    memory.create(NODE, node("n1"))
    clock.sleep(2)
    memory.create(NODE, node("n2"))
    clock.sleep(1)
    assert seen(watch) == [("ADDED", "n1")]


def test_a_list_of_the_past_is_what_a_list_then_answered(memory: MemoryCluster, clock: VirtualClock) -> None:
    memory.create(NODE, node("n1"))
    memory.create(NODE, node("n2"))
    then = memory.list(NODE).objects
    when = clock.now()
    clock.sleep(1)
    memory.delete(NODE, Key("", "n1"))
    memory.patch(NODE, Key("", "n2"), {"spec": {"unschedulable": True}})
    memory.create(NODE, node("n3"))
    past = memory.list_as_of(when, NODE).objects
    assert [(n["metadata"]["name"], n["spec"]) for n in past] == [(n["metadata"]["name"], n["spec"]) for n in then]


def test_events_go_after_an_hour(memory: MemoryCluster, clock: VirtualClock) -> None:
    memory.create(EVENT, Built(EVENT, "e"))
    clock.sleep(3600)
    memory.settle()
    assert memory.list(EVENT).objects == []
