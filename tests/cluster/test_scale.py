"""The embedded cluster is fast, and safe among threads."""

from __future__ import annotations

import threading
import time

from extender.api.errors import Conflict
from extender.api.meta import JOB, NODE, POD, Json, Key
from extender.cluster.memory import MemoryCluster
from extender.testing.builders import Built, node, pod


def test_a_thousand_jobs_take_no_time(memory: MemoryCluster) -> None:
    template = {"spec": {"containers": [{"name": "main", "image": "example.test/app:1"}]}}
    tasks = [{"name": f"t{i}", "replicas": 4, "template": template} for i in range(4)]
    started = time.perf_counter()
    for i in range(1000):
        memory.create(JOB, Built(JOB, f"j{i}") | {"spec": {"tasks": tasks, "minAvailable": 4}})
    assert time.perf_counter() - started < 5


def test_ten_thousand_pods_take_little(memory: MemoryCluster) -> None:
    memory.load(node(f"n{i}").cpu(64) for i in range(1000))
    started = time.perf_counter()
    for i in range(10_000):
        memory.create(POD, pod(f"p{i}").cpu(1))
        memory.bind(Key("default", f"p{i}"), f"n{i % 1000}")
    assert time.perf_counter() - started < 10


def test_an_idle_cluster_settles_for_nothing(memory: MemoryCluster) -> None:
    """Not a write, and not one look at ten thousand objects."""
    memory.load(pod(f"p{i}").cpu(1) for i in range(10_000))
    memory.settle()
    started = time.perf_counter()
    for _ in range(100):
        memory.settle()
    assert time.perf_counter() - started < 1


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
