"""The service over HTTP on loopback: a kube-scheduler that we play, clients that misbehave."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import urllib3
from prometheus_client import CollectorRegistry

from extender.actions import ACTIONS
from extender.api.errors import NotFound
from extender.api.meta import POD, Json, Key
from extender.cluster.clock import SteadyClock
from extender.cluster.in_process import Listen, Server
from extender.cluster.memory import MemoryCluster
from extender.core import conf
from extender.plugins import PLUGINS
from extender.server import AT_ONCE, at_once, create_app, running
from extender.service import Service, Settings
from extender.testing.builders import node, pod, queue
from tests.extending.world import gang, machines

LONGEST = 200_000  # bytes of a body, in these tests
CONF = conf.load(conf.DEFAULT, PLUGINS, ACTIONS)


class Wire:
    """kube-scheduler's end of the wire."""

    def __init__(self, server: Server, cluster: MemoryCluster, service: Service) -> None:
        self.port, self.cluster, self.service = server.port, cluster, service
        self.http = urllib3.PoolManager(maxsize=64, retries=False, timeout=30.0)

    def post(self, verb: str, body: object) -> tuple[int, Any]:
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        url = f"http://127.0.0.1:{self.port}/extender/v1/{verb}"
        answer = self.http.request("POST", url, body=sent, headers={"Content-Type": "application/json"})
        return answer.status, json.loads(answer.data)

    def get(self, path: str) -> tuple[int, bytes]:
        answer = self.http.request("GET", f"http://127.0.0.1:{self.port}{path}")
        return answer.status, answer.data

    def pod(self, name: str) -> Json:
        return self.cluster.get(POD, Key("default", name))

    def place(self, name: str) -> list[str]:
        names = [node["metadata"]["name"] for node in machines(2)]
        _, answer = self.post("filter", {"Pod": self.pod(name), "NodeNames": names})
        found: list[str] = answer["NodeNames"]
        return found

    def bind(self, name: str, on: str) -> str:
        uid = self.pod(name)["metadata"]["uid"]
        _, answer = self.post("bind", {"PodName": name, "PodNamespace": "default", "PodUID": uid, "Node": on})
        error: str = answer["Error"]
        return error

    def schedule(self, name: str) -> str:
        """One pod through filter and bind; what bind said."""
        found = self.place(name)
        return self.bind(name, found[0]) if found else "no node"

    def asked(self) -> int:
        """Members that wait for the rest of their gang."""
        return sum(seat.asked for held in list(self.service.extender.books) for seat in list(held.seats.values()))

    def node_of(self, name: str) -> str:
        return str(self.pod(name)["spec"].get("nodeName", ""))


def wait_until(holds: Callable[[], bool]) -> None:
    """Until another thread has come so far."""
    while not holds():
        threading.Event().wait(0.005)


def world(objects: Sequence[Json], settings: Settings) -> Iterator[Wire]:
    clock = SteadyClock()
    cluster = MemoryCluster(clock)
    cluster.load([queue("root"), queue(), *objects])
    service = Service(cluster, CONF, clock, settings)
    service.feed()
    with running(service, Listen(("127.0.0.1", 0), threads=64, longest_body=LONGEST), CollectorRegistry()) as server:
        wire = Wire(server, cluster, service)
        yield wire
        wire.http.clear()


@pytest.fixture
def wire() -> Iterator[Wire]:
    yield from world([*machines(2), *gang("g", 8), pod("x")], Settings())


@pytest.fixture
def impatient() -> Iterator[Wire]:
    yield from world([*machines(2), *gang("g", 8)], Settings(barrier=0.2))


def test_a_gang_is_bound_when_all_have_asked(wire: Wire) -> None:
    with ThreadPoolExecutor(8) as pool:
        errors = list(pool.map(wire.schedule, [f"g-{i}" for i in range(8)]))
    assert errors == [""] * 8
    assert sorted(wire.node_of(f"g-{i}") for i in range(8)) == ["n0"] * 4 + ["n1"] * 4
    assert not wire.service._gates


def test_a_bind_waits_for_the_rest_and_then_gives_up(impatient: Wire) -> None:
    assert "could not start whole" in impatient.schedule("g-0")
    assert not impatient.service._gates
    assert impatient.node_of("g-0") == ""


def test_a_bind_that_comes_again_is_a_success(wire: Wire) -> None:
    assert [wire.bind("x", "n0"), wire.bind("x", "n0")] == ["", ""]


def test_a_bind_to_another_node_is_an_error(wire: Wire) -> None:
    wire.bind("x", "n0")
    assert "already assigned to node" in wire.bind("x", "n1")


def test_a_bind_of_a_pod_that_is_gone_is_an_error(wire: Wire) -> None:
    request = {"PodName": "gone", "PodNamespace": "default", "PodUID": "u", "Node": "n0"}
    status, answer = wire.post("bind", request)
    assert (status, "not found" in answer["Error"]) == (200, True)


def test_waiting_binds_do_not_keep_others_from_being_answered(wire: Wire) -> None:
    """Seven members wait; a foreign pod goes through filter and bind meanwhile."""
    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(wire.schedule, f"g-{i}") for i in range(7)]
        while len([1 for held in list(wire.service.extender.books) for seat in list(held.seats.values()) if seat.asked]) < 7:
            threading.Event().wait(0.01)
        meanwhile, last = wire.schedule("x"), wire.schedule("g-7")
    assert [meanwhile, last, *(each.result() for each in waiting)] == [""] * 9


def test_why_a_gang_waits(wire: Wire) -> None:
    wire.cluster.delete(POD, Key("default", "g-7"), grace_seconds=0)
    wait_until(lambda: len(wire.service.extender.mirror.tasks.rows) == 8)
    wire.place("g-0")
    status, told = wire.get("/explain?group=default/g")
    assert (status, json.loads(told)["reason"]) == (200, "NotEnoughTasks")


NOT_THERE = {"/explain?group=default/none": 404, "/explain?group=g": 400, "/explain": 400}


@pytest.mark.parametrize(("path", "status"), NOT_THERE.items())
def test_explaining_what_is_not_there(wire: Wire, path: str, status: int) -> None:
    assert wire.get(path)[0] == status


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/metrics"])
def test_pages(wire: Wire, path: str) -> None:
    assert wire.get(path)[0] == 200


BAD = {
    "no JSON": ("filter", b"<xml>", 400),
    "no pod": ("prioritize", b"{}", 400),
    "a verb that there is not": ("filtre", b"{}", 404),
    "too long": ("filter", b" " * (LONGEST + 1), 413),
    "an empty body": ("bind", b"", 400),
    "another path": ("extra/filters", b"{}", 404),
    "garbage for preempt": ("preempt", b'{"Pod": {}, "NodeNameToMetaVictims": {"n": {"Pods": [{"UID": 3}]}}}', 400),
}


@pytest.mark.parametrize(("verb", "body", "status"), BAD.values(), ids=BAD)
def test_bad_requests_get_a_status_and_a_word(wire: Wire, verb: str, body: bytes, status: int) -> None:
    """And the service goes on."""
    got, answer = wire.post(verb, body)
    assert (got, bool(answer["Error"]), wire.place("x")) == (status, True, ["n0", "n1"])


def test_other_methods_are_refused(wire: Wire) -> None:
    assert wire.get("/extender/v1/filter")[0] == 405


def test_silent_clients_hold_nobody_up(wire: Wire) -> None:
    """More of them than there are threads."""
    silent = [socket.create_connection(("127.0.0.1", wire.port)) for _ in range(100)]
    for client in silent[::2]:
        client.sendall(b"POST /filter HTTP/1.1\r\nContent-Length: 1000\r\n\r\n{")
    assert wire.place("x") == ["n0", "n1"]
    for client in silent:
        client.close()


def test_before_the_lists_have_come_nothing_is_decided() -> None:
    """An Error where kube-scheduler reads one, of an answer with status 200 only; else 503. /readyz fails."""
    cluster = MemoryCluster(SteadyClock())
    client = create_app(Service(cluster, CONF, SteadyClock()), CollectorRegistry()).test_client()
    answers = [client.post(f"/{verb}", json={}) for verb in ("filter", "prioritize", "bind", "preempt")]
    assert [answer.status_code for answer in answers] == [200, 503, 200, 503]
    assert {answer.get_json()["Error"] for answer in answers} == {"node cache not synced"}
    assert client.get("/readyz").status_code == 500


def test_a_pod_that_the_watch_has_not_brought_is_waited_for() -> None:
    """And then told as an error, after which kube-scheduler asks again."""
    cluster = MemoryCluster(SteadyClock())
    cluster.load([queue("root"), queue(), node("n0").cpu(4), *gang("g", 1)])
    service = Service(cluster, CONF, SteadyClock())
    service.feed()
    late = dict(cluster.get(POD, Key("default", "g-0")))
    late["metadata"] = late["metadata"] | {"name": "late", "uid": "late"}
    reply = service.answer("filter", json.dumps({"Pod": late, "NodeNames": ["n0"]}).encode())
    assert "not in the cache yet" in json.loads(reply.body)["Error"]


def test_the_service_makes_the_first_queues() -> None:
    cluster = MemoryCluster(SteadyClock())
    service = Service(cluster, CONF, SteadyClock())
    service.start()
    assert service.lagging() == []
    with pytest.raises(NotFound):
        cluster.get(POD, Key("default", "none"))


ANSWERED_BY = {
    "a short question is the loop's": (b"POST /extender/v1/filter HTTP/1.1\r\n\r\n", True),
    "likewise at the root": (b"POST /prioritize HTTP/1.1\r\n\r\n", True),
    "a bind may wait for its gang": (b"POST /bind HTTP/1.1\r\n\r\n", False),
    "a search for victims takes its time": (b"POST /preempt HTTP/1.1\r\n\r\n", False),
    "so does what is long": (b"POST /filter HTTP/1.1\r\n\r\n" + b" " * AT_ONCE, False),
    "a page is no question": (b"GET /filter HTTP/1.1\r\n\r\n", False),
}


@pytest.mark.parametrize(("request_", "by_loop"), ANSWERED_BY.values(), ids=ANSWERED_BY)
def test_who_answers(request_: bytes, by_loop: bool) -> None:
    assert at_once(bytearray(request_)) is by_loop
