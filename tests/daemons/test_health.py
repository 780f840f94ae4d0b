"""Probes and metrics over loopback: the API server's words, and no client that can hold the server up."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from prometheus_client import CollectorRegistry, Counter

from extender.cluster.health import Health, metrics_page
from extender.cluster.serving import Answer, HttpServer, Page, Request
from extender.cluster.tls import TlsFiles

Serve = Callable[..., HttpServer]


class Said(NamedTuple):
    status: int
    body: str
    content_type: str


@pytest.fixture
def serve() -> Iterator[Serve]:
    with ExitStack() as stack:

        def start(
            pages: Mapping[str, Page], tls: TlsFiles | None = None, connections: int = 8, longest: float = 10.0
        ) -> HttpServer:
            server = HttpServer(("127.0.0.1", 0), pages, tls, connections=connections, longest=longest)
            stack.callback(server.close)
            return server

        yield start


def ask(server: HttpServer, path: str, *, method: str = "GET", accept: str = "", tls: ssl.SSLContext | None = None) -> Said:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    if tls is not None:
        connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=10, context=tls)
    try:
        connection.request(method, path, headers={"Accept": accept} if accept else {})
        answer = connection.getresponse()
        return Said(answer.status, answer.read().decode(), answer.headers.get("Content-Type", ""))
    finally:
        connection.close()


def sick() -> str | None:
    return "nodes have not been listed"


def broken() -> str | None:
    raise KeyError("x")


@pytest.fixture
def health() -> Health:
    health = Health()
    health.alive["loop"] = lambda: None
    health.ready["synced"] = sick
    return health


PROBES: dict[str, tuple[str, int, str]] = {
    "healthz": ("/healthz", 200, "ok"),
    "healthz of the reference's probes": ("/healthz/ping", 200, "ok"),
    "livez": ("/livez", 200, "ok"),
    "with a slash": ("/livez/", 200, "ok"),
    "verbose": ("/livez?verbose", 200, "[+]ping ok\n[+]loop ok\nlivez check passed\n"),
    "verbose with a value": ("/livez?verbose=1", 200, "[+]ping ok\n[+]loop ok\nlivez check passed\n"),
    "a check that fails": ("/readyz", 500, "[+]ping ok\n[-]synced failed: nodes have not been listed\nreadyz check failed\n"),
    "left out": ("/readyz?exclude=synced", 200, "ok"),
    "left out and verbose": ("/readyz?verbose&exclude=synced", 200, "[+]ping ok\n[+]synced excluded: ok\nreadyz check passed\n"),
    "one check": ("/readyz/ping", 200, "ok"),
    "one check that fails": ("/readyz/synced", 500, "internal server error: nodes have not been listed\n"),
    "no such check": ("/readyz/etcd", 404, "404 page not found\n"),
    "no such page": ("/config", 404, "404 page not found\n"),
    "nothing": ("/", 404, "404 page not found\n"),
}


@pytest.mark.parametrize(("path", "status", "body"), PROBES.values(), ids=PROBES)
def test_probes(serve: Serve, health: Health, path: str, status: int, body: str) -> None:
    """As the API server answers them."""
    assert ask(serve(health.pages()), path)[:2] == (status, body)


def test_a_check_that_breaks_is_a_check_that_fails(serve: Serve, health: Health) -> None:
    health.alive["broken"] = broken
    assert ask(serve(health.pages()), "/livez/broken")[:2] == (500, "internal server error: KeyError: 'x'\n")


def test_head_has_no_body(serve: Serve, health: Health) -> None:
    assert ask(serve(health.pages()), "/healthz", method="HEAD")[:2] == (200, "")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "BREW"])
def test_nothing_can_be_written(serve: Serve, health: Health, method: str) -> None:
    assert ask(serve(health.pages()), "/healthz", method=method).status == 501


def test_a_page_that_breaks_says_no_more_than_that(serve: Serve) -> None:
    def page(_: Request) -> Answer:
        raise RuntimeError("with a secret")

    assert ask(serve({"/x": page}), "/x")[:2] == (500, "internal error\n")


@pytest.fixture
def registry() -> CollectorRegistry:
    registry = CollectorRegistry()
    Counter("volcano_binds", "Pods bound.", registry=registry).inc(3)
    return registry


def test_metrics_as_text(serve: Serve, registry: CollectorRegistry) -> None:
    said = ask(serve({"/metrics": metrics_page(registry)}), "/metrics")
    assert ("volcano_binds_total 3.0" in said.body, said.content_type.startswith("text/plain")) == (True, True)


def test_metrics_as_openmetrics(serve: Serve, registry: CollectorRegistry) -> None:
    accept = "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"
    said = ask(serve({"/metrics": metrics_page(registry)}), "/metrics", accept=accept)
    assert (said.body.endswith("# EOF\n"), said.content_type.startswith("application/openmetrics-text")) == (True, True)


def test_slow_clients_hold_nobody_up(serve: Serve, health: Health) -> None:
    """More of them than there are threads: the newest client is served, the oldest is cut."""
    server = serve(health.pages(), connections=4)
    with ExitStack() as stack:
        slow = [stack.enter_context(socket.create_connection(("127.0.0.1", server.port), 10)) for _ in range(12)]
        for each in slow:
            each.sendall(b"GET /heal")
        answers = [ask(server, "/healthz").status for _ in range(3)]
        first = slow[0].recv(100)
    assert (answers, first) == ([200] * 3, b"")


def test_a_connection_ends_in_time(serve: Serve, health: Health) -> None:
    """Whoever sends a byte now and then is cut all the same."""
    server = serve(health.pages(), longest=0.2)
    with socket.create_connection(("127.0.0.1", server.port), 10) as slow:
        slow.sendall(b"GET /heal")
        assert slow.recv(100) == b""


GARBAGE = {
    "no words": b"\x00\x01\x02\xff\r\n\r\n",
    "no method": b" / \r\n\r\n",
    "a long path": b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
    "many headers": b"GET /healthz HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % i for i in range(200)) + b"\r\n",
    "a bad address": b"GET http://[x HTTP/1.1\r\n\r\n",
}


@pytest.mark.parametrize("sent", GARBAGE.values(), ids=GARBAGE)
def test_garbage_does_no_harm(serve: Serve, health: Health, sent: bytes, caplog: pytest.LogCaptureFixture) -> None:
    server = serve(health.pages())
    with socket.create_connection(("127.0.0.1", server.port), 10) as client:
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        while client.recv(4096):
            pass
    assert (ask(server, "/healthz").status, "Traceback" in caplog.text) == (200, False)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    """A certificate for 127.0.0.1 that is its own authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("127.0.0.1"), x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    folder: Path = tmp_path_factory.mktemp("tls")
    (folder / "tls.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "tls.key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )  # fmt: skip
    return TlsFiles(str(folder / "tls.crt"), str(folder / "tls.key"), str(folder / "tls.crt"))


def client_context(pair: TlsFiles, *, shown: bool = False) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=pair.certificate)
    context.check_hostname = False
    if shown:
        context.load_cert_chain(pair.certificate, pair.key)
    return context


@pytest.mark.parametrize("shown", [False, True], ids=["without a client certificate", "with one"])
def test_tls(serve: Serve, health: Health, pair: TlsFiles, shown: bool) -> None:
    server = serve(health.pages(), pair)
    assert ask(server, "/healthz", tls=client_context(pair, shown=shown)).body == "ok"


def test_handshakes_that_do_not_go_on_hold_nobody_up(serve: Serve, health: Health, pair: TlsFiles) -> None:
    server = serve(health.pages(), pair, connections=2)
    with ExitStack() as stack:
        for _ in range(6):
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port), 10))
        assert ask(server, "/healthz", tls=client_context(pair)).body == "ok"


def test_a_handshake_ends_in_time(serve: Serve, health: Health, pair: TlsFiles) -> None:
    server = serve(health.pages(), pair, longest=0.2)
    with socket.create_connection(("127.0.0.1", server.port), 10) as slow:
        slow.sendall(b"\x16\x03\x01")
        assert slow.recv(100) == b""


def test_plain_words_on_the_tls_port_do_no_harm(serve: Serve, health: Health, pair: TlsFiles) -> None:
    server = serve(health.pages(), pair)
    with socket.create_connection(("127.0.0.1", server.port), 10) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
        while client.recv(4096):
            pass
    assert ask(server, "/healthz", tls=client_context(pair)).body == "ok"
