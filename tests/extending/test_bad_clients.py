"""vc-scheduler --extender-only over TLS, and clients that mean no good: it goes on, says so in a word, and keeps nothing."""

from __future__ import annotations

import json
import logging
import os
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import urllib3
from prometheus_client import CollectorRegistry

from extender.actions import ACTIONS
from extender.cluster.clock import SteadyClock
from extender.cluster.in_process import LONGEST_BODY, Listen
from extender.cluster.memory import MemoryCluster
from extender.cluster.tls import TlsFiles
from extender.core import conf
from extender.plugins import PLUGINS
from extender.server import running
from extender.service import Service, Settings
from extender.testing.builders import pod, queue
from tests.controlplane.pki import Authority
from tests.extending.world import machines
from tests.noise import GARBAGE, shout

PATIENCE = 20.0
NAMES = [node["metadata"]["name"] for node in machines(2)]
FILTER = json.dumps({"Pod": pod("x"), "NodeNames": NAMES}).encode()


@dataclass
class Site:
    """The extender's end of the wire, from outside."""

    port: int
    context: ssl.SSLContext
    http: urllib3.PoolManager

    def post(self, verb: str, body: bytes) -> tuple[int, Any]:
        url = f"https://127.0.0.1:{self.port}/extender/v1/{verb}"
        answer = self.http.request("POST", url, body=body, headers={"Content-Type": "application/json"})
        return answer.status, json.loads(answer.data)

    def works(self) -> bool:
        status, answer = self.post("filter", FILTER)
        return status == 200 and answer["NodeNames"] == NAMES

    def raw(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE)

    def secured(self) -> ssl.SSLSocket:
        return self.context.wrap_socket(self.raw(), server_hostname="127.0.0.1")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("tls")
    authority = Authority(folder)
    pair = authority.serving("extender", ["127.0.0.1"])
    clock = SteadyClock()
    cluster = MemoryCluster(clock)
    cluster.load([queue("root"), queue(), *machines(2), pod("x")])
    service = Service(cluster, conf.load(conf.DEFAULT, PLUGINS, ACTIONS), clock, Settings())
    service.feed()
    tls = TlsFiles(str(pair.certificate), str(pair.key)).followed(clock)
    with (
        running(service, Listen(("127.0.0.1", 0), tls, threads=128), CollectorRegistry()) as server,
        urllib3.PoolManager(ca_certs=str(authority.certificate), retries=False, timeout=PATIENCE) as http,
    ):
        yield Site(server.port, ssl.create_default_context(cafile=str(authority.certificate)), http)


@pytest.fixture(autouse=True)
def _no_traceback(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Whatever a client does is no fault of ours."""
    with caplog.at_level(logging.DEBUG):
        yield
    assert [record.getMessage() for record in caplog.records if record.exc_info or record.levelno >= logging.ERROR] == []


@pytest.mark.parametrize("noise", GARBAGE.values(), ids=GARBAGE)
def test_garbage_on_the_tls_port(site: Site, noise: bytes) -> None:
    for _ in range(5):
        with site.raw() as connection:
            shout(connection, noise)
    assert site.works()


def test_slow_clients_hold_nobody_up(site: Site) -> None:
    """Stuck at every step, more of them than there are threads."""
    head = b"POST /extender/v1/filter HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n"
    with ExitStack() as stack:
        for _ in range(40):
            stack.enter_context(site.raw())
            stack.enter_context(site.raw()).sendall(GARBAGE["half a hello"])
            stack.enter_context(site.secured()).sendall(head)
            stack.enter_context(site.secured()).sendall(head + b"\r\n{")
        assert site.works()


def test_long_bodies_leave_nothing_behind(site: Site) -> None:
    """Ten megabytes that are no ExtenderArgs, and more than that."""
    long, too_long = b'"' + b"x" * (LONGEST_BODY - 2) + b'"', b" " * (LONGEST_BODY + 1)
    for body in [long, too_long] * 3:
        site.post("filter", body)
    before = resident()
    said = [[site.post("filter", body) for body in (long, too_long)] for _ in range(15)]
    assert {(status, bool(answer["Error"])) for both in said for status, answer in both} == {(400, True), (413, True)}
    assert resident() - before < 8 * LONGEST_BODY  # of thirty; the allocator holds some of them back, not always as many
    assert site.works()


BAD = {
    "no JSON": ("filter", b"<xml>", 400),
    "half of it": ("filter", FILTER[:40], 400),
    "nested without end": ("filter", b'{"Pod": ' + b"[" * 100_000, 400),
    "another type": ("filter", b'{"Pod": 3, "NodeNames": ["a"]}', 400),
    "names that are none": ("filter", b'{"Pod": {"metadata": {"name": "x"}}, "NodeNames": [1]}', 400),
    "a verb that there is not": ("filtre", FILTER, 404),
    "a verb in capitals": ("Filter", FILTER, 404),
}


@pytest.mark.parametrize(("verb", "body", "status"), BAD.values(), ids=BAD)
def test_what_cannot_be_read_gets_a_status_and_a_line(site: Site, verb: str, body: bytes, status: int) -> None:
    got, answer = site.post(verb, body)
    assert (got, bool(answer["Error"]), "Traceback" in answer["Error"]) == (status, True, False)
    assert site.works()


def test_any_casing_of_the_outer_names_is_read(site: Site) -> None:
    """Go's decoder reads them so."""
    body = json.dumps({"pod": pod("x"), "nodenames": NAMES}).encode()
    assert site.post("filter", body)[1]["NodeNames"] == NAMES


def resident() -> int:
    """Bytes of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
