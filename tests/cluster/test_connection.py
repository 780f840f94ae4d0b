"""Where the API server is and who we are: kubeconfigs, contexts, a pod's own credentials. No server is asked."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
import yaml
from kubernetes.config import incluster_config

from extender.api.errors import ConfError, Unavailable
from extender.api.meta import POD
from extender.cluster.clock import VirtualClock
from extender.cluster.connection import Answer, Connection, loader
from extender.cluster.kubernetes import KubernetesCluster


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
