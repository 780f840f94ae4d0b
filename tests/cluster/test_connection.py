"""Where the API server is and who we are: kubeconfigs, contexts, a pod's own credentials. No server is asked."""

from __future__ import annotations

import contextlib
import gc
import select
import socket
import ssl
import struct
import warnings
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from kubernetes.config import incluster_config

from extender.api.errors import ConfError, Unavailable
from extender.api.meta import POD, Json
from extender.cluster.clock import VirtualClock
from extender.cluster.connection import Answer, Connection, loader
from extender.cluster.kubernetes import KubernetesCluster
from extender.cluster.serving import Answer as Served
from extender.cluster.serving import HttpServer
from extender.cluster.tls import TlsFiles
from tests.controlplane.pki import Authority
from tests.daemons.running import PATIENCE


@pytest.fixture(autouse=True)
def outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in a cluster, whatever the machine that runs the tests."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)


@pytest.fixture
def kubeconfig(tmp_path: Path) -> str:
    """Two contexts; the current one is `here`."""
    contexts = {"here": ("https://here.example.test:6443", "one"), "there": ("https://there.example.test/k8s/c-1", "two")}
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "here",
        "clusters": [{"name": name, "cluster": {"server": server}} for name, (server, _) in contexts.items()],
        "users": [{"name": name, "user": {"token": token}} for name, (_, token) in contexts.items()],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}} for name in contexts],
    }  # fmt: skip
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump(config))
    return str(file)


CHOICES = {
    "the current context": ({}, ("https://here.example.test:6443", "Bearer one")),
    "a context by name": ({"context": "there"}, ("https://there.example.test/k8s/c-1", "Bearer two")),
    "another server": ({"master": "https://127.0.0.1:1/"}, ("https://127.0.0.1:1", "Bearer one")),
}


@pytest.mark.parametrize(("choice", "want"), CHOICES.values(), ids=CHOICES)
def test_a_kubeconfig(kubeconfig: str, choice: dict[str, str], want: tuple[str, str]) -> None:
    found = loader(kubeconfig, **choice)()
    assert (found.host, found.auth_settings()["BearerToken"]["value"]) == want


def test_without_a_file_a_pod_is_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("mine")
    (tmp_path / "ca.crt").write_text("a certificate")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    found = loader()()
    assert (found.host, found.auth_settings()["BearerToken"]["value"]) == ("https://10.96.0.1:443", "bearer mine")


def test_a_file_goes_before_that(monkeypatch: pytest.MonkeyPatch, kubeconfig: str) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    assert loader(kubeconfig)().host == "https://here.example.test:6443"


NO_KUBECONFIG = {"no YAML": "a: [", "no mapping": "hello", "empty": "", "a list": "- a", "no text": "\x80",
                 "clusters are no list": "clusters: 3\ncurrent-context: a"}  # fmt: skip


@pytest.mark.parametrize("content", NO_KUBECONFIG.values(), ids=NO_KUBECONFIG)
def test_a_file_that_is_no_kubeconfig_is_named(tmp_path: Path, content: str) -> None:
    file = tmp_path / "config"
    file.write_bytes(content.encode("latin-1"))
    with pytest.raises(ConfError, match=str(file)):
        loader(str(file))()


def test_a_file_of_another_shape_is_told_what_it_should_be(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("hello")
    with pytest.raises(ConfError, match="is no kubeconfig: a kubeconfig is a map, with lists of clusters, users and contexts"):
        loader(str(tmp_path / "config"))()


MISTAKES = {
    "no such file": ("/nowhere", "", "/nowhere: no such file"),
    "no such context": ("", "nowhere", "nowhere"),
}


@pytest.mark.parametrize(("file", "context", "words"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_names_its_place(kubeconfig: str, file: str, context: str, words: str) -> None:
    with pytest.raises(ConfError, match=words):
        loader(file or kubeconfig, context)()


def test_nothing_to_go_by(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What to do is said, not that a file which nobody named is invalid."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setattr("kubernetes.config.KUBE_CONFIG_DEFAULT_LOCATION", f"{tmp_path}/one:{tmp_path}/other")
    with pytest.raises(ConfError, match="there is no kubeconfig: name one with --kubeconfig, or in KUBECONFIG"):
        loader()()


def test_a_server_that_is_not_there_is_given_up_in_time() -> None:
    """Nothing listens on port 1: attempts follow each other at growing intervals, ten seconds at most."""
    clock = VirtualClock(1000.0)
    cluster = KubernetesCluster(Connection(loader(master="http://127.0.0.1:1"), clock), clock=clock)
    with pytest.raises(Unavailable, match=r"the API server at http://127.0.0.1:1 cannot be reached"):
        cluster.list(POD)
    assert 3.0 < clock.now() - 1000.0 <= 10.0


def test_in_an_outage_nobody_waits_anew() -> None:
    clock = VirtualClock(1000.0)
    cluster = KubernetesCluster(Connection(loader(master="http://127.0.0.1:1"), clock), clock=clock)
    with pytest.raises(Unavailable):
        cluster.list(POD)
    clock.sleep(60)
    before = clock.now()
    with pytest.raises(Unavailable):
        cluster.list(POD)
    assert clock.now() == before


class Impostor:
    """What answers for the API server with status 200."""

    host = "https://proxy.example.test"

    def __init__(self, body: bytes) -> None:
        self._body = body

    def exchange(self, *_: object) -> Answer:
        return Answer(200, {}, self._body)


NO_ANSWERS = {"a page": b"<html>sign in</html>", "nothing": b"", "no object": b"[]",
              "an object that is no list": b'{"status": "ok"}',
              "a list without a version": b'{"metadata": {}, "items": [{}]}'}  # fmt: skip


@pytest.mark.parametrize("body", NO_ANSWERS.values(), ids=NO_ANSWERS)
def test_an_answer_that_is_no_api_servers_is_an_error_of_the_cluster(body: bytes) -> None:
    """Which every daemon tries again; anything else would end it."""
    cluster = KubernetesCluster(cast(Connection, Impostor(body)), clock=VirtualClock(1000.0))
    with pytest.raises(Unavailable, match=r"not an API server's|does not know lists of pods"):
        cluster.list(POD)


def test_the_file_is_named_once(tmp_path: Path) -> None:
    """By the client's own words or by ours."""
    (tmp_path / "job.yaml").write_text("kind: Job\n")
    with pytest.raises(ConfError) as told:
        loader(str(tmp_path / "job.yaml"))()
    assert str(told.value).count("job.yaml") == 1


# --- TLS ----------------------------------------------------------------------------------------------------------------


def test_of_a_server_that_is_gone_nothing_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was killed between the connection and the handshake."""
    gc.collect()  # what others have left open is told before
    wrap = ssl.SSLContext.wrap_socket

    def late(context: ssl.SSLContext, wire: socket.socket, **more: Any) -> ssl.SSLSocket:
        peer, _ = server.accept()
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()
        reset = select.poll()
        reset.register(wire, 0)  # whatever is registered, an end is told
        assert reset.poll(PATIENCE * 1000)
        return wrap(context, wire, **more)

    monkeypatch.setattr(ssl.SSLContext, "wrap_socket", late)
    with socket.create_server(("127.0.0.1", 0)) as server, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        connection = Connection(loader(master=f"https://127.0.0.1:{server.getsockname()[1]}"), VirtualClock())
        with pytest.raises(Unavailable, match="the peer is gone"):
            connection.exchange("GET", "/")
        gc.collect()
    assert [str(each.message) for each in told] == []


TRUST: dict[str, tuple[str, Json, str]] = {
    "its authority is ours": ("ours", {}, ""),
    "its authority is another": ("another", {}, "certificate verify failed"),
    "we know none but those of the machine": ("", {}, "certificate verify failed"),
    "it is for another name": ("ours", {"tls-server-name": "elsewhere.example.test"}, "Hostname mismatch"),
    "we do not look": ("another", {"insecure-skip-tls-verify": True}, ""),
}


@pytest.mark.filterwarnings("ignore:Unverified HTTPS request")  # where we do not look
@pytest.mark.parametrize(("authority", "more", "refused"), TRUST.values(), ids=TRUST)
def test_whom_we_talk_to(tmp_path: Path, authority: str, more: Json, refused: str) -> None:
    for name in ("ours", "another"):
        (tmp_path / name).mkdir()
    authorities = {name: Authority(tmp_path / name) for name in ("ours", "another")}
    pair = authorities["ours"].serving("server", ["localhost"])
    page = HttpServer(("127.0.0.1", 0), {"/": lambda _: Served(200, "{}")}, TlsFiles(str(pair.certificate), str(pair.key)))
    trusted = {"certificate-authority": str(authorities[authority].certificate)} if authority else {}
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": f"https://localhost:{page.port}", **trusted, **more}}],
        "users": [{"name": "it", "user": {}}], "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
    }  # fmt: skip
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    connection = Connection(loader(str(tmp_path / "config")), VirtualClock())
    try:
        with pytest.raises(Unavailable, match=refused) if refused else contextlib.nullcontext():
            assert connection.exchange("GET", "/").status == 200
    finally:
        connection.close()
        page.close()
