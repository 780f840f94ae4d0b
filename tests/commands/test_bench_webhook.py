"""`pumice bench webhook`: its parts, and a short measurement of the webhook itself."""

from __future__ import annotations

import json
import shutil
import stat
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner

from certs import folder
from certs.stock import Stock, restock
from extender.api.errors import PumiceError
from extender.api.meta import JOB, MUTATING_WEBHOOKS, NAMESPACE, POD, VALIDATING_WEBHOOKS
from extender.cluster.clock import SystemClock
from extender.cluster.kubernetes import KubernetesCluster
from extender.ctl import bench_webhook
from extender.ctl.bench_webhook import Stage, lines
from extender.ctl.measuring import load
from extender.ctl.measuring.child import free_ports
from extender.ctl.measuring.reviews import PATH, Sent, Target, by_threads, by_wrk, review
from tests.controlplane.plane import Plane
from webhook.review import read, request_of
from webhook.routes import BY_PATH


def test_the_review_is_one_that_the_webhook_reads() -> None:
    asked = request_of(read(review()), BY_PATH[PATH.partition("?")[0]])
    assert (asked.kind, asked.key.name, asked.dry_run) == (JOB, "train", False)


def test_a_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without wrk, which not everybody has. No review fails, not even while the certificate is replaced."""
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(bench_webhook, "RENEW_EVERY", 0.2)
    ran = CliRunner().invoke(bench_webhook.webhook, "--seconds 1 --rate 100 --connections 2 --workers 1 --renew -o json")
    assert ran.exit_code == 0, ran.output
    assert "wrk is not on PATH" in ran.stderr
    stages = orjson.loads(ran.stdout)
    assert [stage["name"] for stage in stages] == ["full speed, no wrk", "100/s", "100/s, renewing"]
    assert [stage["sent"]["failures"] for stage in stages] == [0, 0, 0]
    assert stages[1]["sent"]["reviews"] == pytest.approx(100, abs=1)
    assert stages[2]["renewals"] >= 1


def program(where: Path, says: str) -> str:
    """Stands in for wrk."""
    made = where / "wrk"
    made.write_text(f"#!/bin/sh\ncat <<'END'\n{says}\nEND\nexit 3\n")
    made.chmod(made.stat().st_mode | stat.S_IXUSR)
    return str(made)


def test_what_wrk_tells(tmp_path: Path) -> None:
    told = {"reviews": 900, "seconds": 2.0, "failures": 4, "milliseconds": [1.5, 9.0]}
    wrk = program(tmp_path, f"Running 2s test\n\n{json.dumps(told)}")
    assert by_wrk(wrk, Target(1, tmp_path / "ca.crt", "localhost"), 8, 2.0, tmp_path) == Sent(900, 2.0, 4, (1.5, 9.0))
    assert "AdmissionReview" in (tmp_path / "review.lua").read_text()


def test_a_wrk_that_fails_is_told(tmp_path: Path) -> None:
    with pytest.raises(PumiceError, match=r"wrk ended with 3:\nunable to connect"):
        by_wrk(program(tmp_path, "unable to connect"), Target(1, tmp_path / "ca.crt", "localhost"), 8, 2.0, tmp_path)


def test_a_wrk_that_got_no_answer_is_told(tmp_path: Path) -> None:
    told = {"reviews": 0, "seconds": 1.0, "failures": 0, "milliseconds": [0.0, 0.0]}
    with pytest.raises(PumiceError, match="no review was answered: 0 failures, or --seconds are too few for so many"):
        by_wrk(program(tmp_path, json.dumps(told)), Target(1, tmp_path / "ca.crt", "localhost"), 900, 1.0, tmp_path)


@pytest.mark.parametrize("option", ["connections", "seconds", "rate", "workers", "objects", "rounds"])
def test_more_than_makes_sense_is_a_fault_of_the_option(option: str) -> None:
    ran = CliRunner().invoke(bench_webhook.webhook, f"--{option} 10000000")
    assert (ran.exit_code, f"Invalid value for '--{option}'" in ran.stderr) == (2, True)


def test_a_webhook_that_does_not_answer_is_told(tmp_path: Path) -> None:
    folder.save(tmp_path, restock(Stock(), ["localhost"], SystemClock().now()))
    with pytest.raises(PumiceError, match="no review was answered: ConnectionRefusedError"):
        by_threads(Target(free_ports(1)[0], tmp_path / "ca.crt", "localhost"), 1, 1.0)


def test_the_table() -> None:
    stages = [Stage("full speed", Sent(4000, 2.0, 0, (1.234, 5.0)), 217.4), Stage("500/s", Sent(10, 1.0, 3, (1.0, 2.0)), None, 2)]
    rows = [line.split() for line in lines(stages)]
    assert ["reviews", "a", "second", "2,000", "10"] in rows
    assert ["CPU", "a", "review,", "us", "217", "-"] in rows
    assert ["failures", "0", "3"] in rows


def test_what_creating_costs(plane: Plane, kubernetes: KubernetesCluster) -> None:
    """Jobs and pods with webhooks and without; then nothing is left, the webhooks least of all."""
    words = [f"--kubeconfig={plane.kubeconfig}", "--objects=8", "--rounds=1", "-o", "json"]
    ran = CliRunner().invoke(bench_webhook.webhook, words)
    assert ran.exit_code == 0, ran.exception
    made = orjson.loads(ran.stdout)
    assert [each["what"] for each in made] == ["jobs", "foreign pods", "our pods", "jobs of 10 pods", "jobs of 100 pods"]
    assert all(each["share"] == pytest.approx(each["with_webhooks"] / each["without"]) for each in made)
    for kind in (JOB, POD, NAMESPACE, MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS):
        left = kubernetes.list(kind, label_selector=load.OURS).objects
        assert [obj for obj in left if "deletionTimestamp" not in obj["metadata"]] == []
