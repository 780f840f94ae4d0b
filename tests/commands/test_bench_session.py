"""`pumice bench session`: what it tells of pods that found no node, and that it drops no figure."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from extender.ctl.pumice import bench

SESSION = {"bound", "waiting", "snapshot_seconds", "session_seconds", "pods_per_second"}
ALWAYS = {"nodes", "pods", "mirror_seconds", "peak_mebibytes", "mirror_bytes_per_node", "mirror_bytes_per_pod"}


def told(words: str) -> str:
    ran = CliRunner().invoke(bench, f"session {words}")
    assert ran.exit_code == 0, ran.exception
    return ran.stdout


def test_why_pods_found_no_node() -> None:
    """A node has 32 CPU, and gangs are let in until the cluster is full."""
    figures = json.loads(told("--nodes 1 --gangs 5 --size 10 -o json"))
    assert (figures["bound"], figures["waiting"]) == (30, {"NotAdmitted": 20})
    assert figures["first_waiting"] == "default/gang-3: the cluster taken 1.2 times: cpu 30 admitted + 10 asked > limit 38.4"


def test_that_all_found_one_is_told_too() -> None:
    lines = told("--nodes 1 --gangs 1 --size 10").splitlines()
    assert [line.split() for line in lines if line.startswith("waiting")] == [["waiting", "none"]]


@pytest.mark.parametrize(("words", "names"), [("", ALWAYS | SESSION), ("--idle", ALWAYS | {"idle_cycle_milliseconds"})])
def test_a_figure_of_nothing_is_a_figure(words: str, names: set[str]) -> None:
    """A cluster this small may leave the resident memory as it is."""
    assert json.loads(told(f"--nodes 1 --gangs 1 --size 1 {words} -o json")).keys() == names
