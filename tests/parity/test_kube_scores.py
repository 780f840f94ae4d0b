"""Verdicts and points equal those of kube-scheduler itself, on questions that were recorded from it."""

from __future__ import annotations

import gzip
from pathlib import Path

import orjson
import pytest

from extender.api.meta import Json
from extender.ctl.score import answer_line

HEADER, *RECORDED = [
    orjson.loads(line) for line in gzip.decompress(Path(__file__).with_name("kube_scores.jsonl.gz").read_bytes()).splitlines()
]
IDS = [entry["question"]["id"] for entry in RECORDED]


def in_order(answer: Json) -> Json:
    """Several reasons of one plugin come in no order (the source walks a Go map)."""
    verdicts = {node: {**verdict, "reasons": sorted(verdict.get("reasons", ()))} for node, verdict in answer["filter"].items()}
    return {**answer, "filter": verdicts}


def test_the_record_names_its_source() -> None:
    assert HEADER["source"] == "k8s.io/kubernetes v1.36.1"
    assert len(RECORDED) == 200


@pytest.mark.parametrize("entry", RECORDED, ids=IDS)
def test_the_answer_is_that_of_kube_scheduler(entry: Json) -> None:
    """Which nodes pass, who refuses the others and why, every scorer's points, weights and totals."""
    mine = answer_line(orjson.dumps(entry["question"]))
    assert in_order(mine) == in_order(entry["answer"])


SCORERS = (
    "TaintToleration", "NodeAffinity", "NodeResourcesFit", "PodTopologySpread", "InterPodAffinity",
    "NodeResourcesBalancedAllocation", "ImageLocality",
)  # fmt: skip
FILTERS = (
    "PreFilter", "NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit",
    "PodTopologySpread", "InterPodAffinity", "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone",
)  # fmt: skip


@pytest.mark.parametrize("plugin", FILTERS)
def test_every_filter_refuses_something_in_the_record(plugin: str) -> None:
    """So that the comparison above says something about it."""
    refusing = [e for e in RECORDED if any(v.get("plugin") == plugin for v in e["answer"]["filter"].values())]
    assert len(refusing) >= 5


@pytest.mark.parametrize("plugin", SCORERS)
def test_every_scorer_tells_nodes_apart_in_the_record(plugin: str) -> None:
    telling = [e for e in RECORDED if len(set(e["answer"]["score"].get(plugin, {}).values())) > 1]
    assert len(telling) >= 10
