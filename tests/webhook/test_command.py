"""vc-webhook-manager's command line: upstream's flags, and mistakes that end it before it serves."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from certs import folder
from certs.stock import Stock, restock
from extender.cluster.clock import SystemClock
from extender.cluster.flags import parse
from webhook.cli import PROGRAM, Options, main
from webhook.settings import Settings


def options(*words: str) -> Options:
    return parse(Options(), words, {}, PROGRAM).options


def test_the_defaults_are_those_of_the_settings() -> None:
    assert options().settings() == Settings()


def test_the_flags_of_the_chart() -> None:
    """As volcano's helm chart starts it."""
    given = options(
        "--enabled-admission=/jobs/mutate,/jobs/validate", "--tls-cert-file=/a/tls.crt", "--tls-private-key-file=/a/tls.key",
        "--ca-cert-file=/a/ca.crt", "--admission-conf=/a/conf", "--webhook-namespace=volcano-system",
        "--webhook-service-name=volcano-admission-service", "--enable-healthz=true", "--logtostderr", "--port=8443", "-v=4",
        "2>&1",
    )  # fmt: skip
    given.check()
    assert given.settings().enabled == ("/jobs/mutate", "/jobs/validate")
    assert (given.port, given.enable_healthz, given.logs.verbosity, given.graceful_shutdown_time) == (8443, True, 4, 30.0)


def test_flags_become_settings() -> None:
    given = options("--scheduler-name=a", "--scheduler-name=b", "--max-queue-depth=3", "--enable-root-queue-protection=false",
                    "--enable-queue-allocated-pods-check", "--feature-gates=SchedulingGatesQueueAdmission=true",
                    "--enabled-admission=")  # fmt: skip
    assert given.settings() == Settings(
        enabled=(), scheduler_names=("a", "b"), max_queue_depth=3, root_queue_protection=False, allocated_pods_check=True,
        queue_allocation_gate=True,
    )  # fmt: skip


KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: it
clusters: [{name: it, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: it, user: {token: none}}]
contexts: [{name: it, context: {cluster: it, user: it}}]
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("certs")
    folder.save(made, restock(Stock(), ["localhost"], SystemClock().now()))
    (made / "kubeconfig").write_text(KUBECONFIG)
    (made / "conf.yaml").write_text("resourceGroups: 7\n")
    return made


KUBE = "--kubeconfig={0}/kubeconfig"
URL, TLS = "--webhook-url=https://x", ["--tls-cert-file={0}/tls.crt", "--tls-private-key-file={0}/tls.key"]
MISTAKES = {
    "nobody can reach it": (TLS, 2, "one of --webhook-url, --webhook-namespace and --webhook-service-name is needed"),
    "no certificate": ([URL], 2, "--tls-cert-file and --tls-private-key-file are needed"),
    "a port that is none": ([URL, *TLS, "--port=70000"], 2, "70000 is not between 1 and 65535"),
    "a path that is not served": ([URL, *TLS, "--enabled-admission=/jobs/mutat"], 1, "did you mean '/jobs/mutate'?"),
    "a misspelt flag": ([URL, "--enabled-admisson=x"], 2, "did you mean 'enabled-admission'?"),
    "no certificate there": ([URL, KUBE, "--tls-cert-file=/nowhere", "--tls-private-key-file=/nowhere"], 1, "No such file"),
    "no pair": ([URL, KUBE, "--tls-cert-file={0}/tls.crt", "--tls-private-key-file={0}/ca.key"], 1, "KEY_VALUES_MISMATCH"),
    "no API server": ([URL, *TLS, "--kubeconfig=/nowhere"], 1, "/nowhere: no such file"),
    "a useless configuration": ([URL, KUBE, *TLS, "--admission-conf={0}/conf.yaml"], 1, "resourceGroups: must be a list"),
}


@pytest.mark.parametrize(("words", "status", "message"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_told_at_the_start(
    words: list[str], status: int, message: str, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([word.format(files) for word in words])
    assert ended.value.code == status
    told = capsys.readouterr().err
    assert message in told
    assert "Traceback" not in told
    assert "PROMETHEUS_MULTIPROC_DIR" not in os.environ  # its folder is gone: whoever counts later would fail
