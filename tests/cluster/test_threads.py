"""The embedded cluster is safe among threads."""

from __future__ import annotations

import threading

from extender.api.errors import Conflict
from extender.api.meta import NODE, POD, Json, Key
from extender.cluster.memory import MemoryCluster
from extender.testing.builders import node, pod


def test_of_many_bindings_at_once_one_wins(memory: MemoryCluster) -> None:
    memory.create(POD, pod("p"))
    won: list[str] = []

    def bind(name: str) -> None:
        try:
            memory.bind(Key("default", "p"), name)
            won.append(name)
        except Conflict:
            pass

    run([threading.Thread(target=bind, args=(f"n{i}",)) for i in range(8)])
    assert won == [memory.get(POD, Key("default", "p"))["spec"]["nodeName"]]


def test_every_write_of_every_thread_is_seen_once(memory: MemoryCluster) -> None:
    watch = memory.watch(NODE, memory.list(NODE).resource_version)

    def create(thread: int) -> None:
        for i in range(50):
            memory.create(NODE, node(f"n-{thread}-{i}"))

    run([threading.Thread(target=create, args=(thread,)) for thread in range(8)])
    versions = [int(event.object["metadata"]["resourceVersion"]) for event in watch.poll()]
    assert (len(versions), versions) == (400, sorted(set(versions)))


def test_a_waiting_watch_wakes_up(memory: MemoryCluster) -> None:
    watch = memory.watch(NODE, memory.list(NODE).resource_version)
    seen: list[Json] = []
    waiting = threading.Thread(target=lambda: seen.extend(event.object for event in watch.poll(timeout=30)))
    waiting.start()
    memory.create(NODE, node("n1"))
    waiting.join(timeout=30)
    assert [each["metadata"]["name"] for each in seen] == ["n1"]


def run(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
