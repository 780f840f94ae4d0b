"""Nodes from a short text: what is written, what is made of it, what is refused and in which words."""

from __future__ import annotations

from typing import Any

import pytest

from extender.api.errors import UsageError
from extender.ctl import nodes

KUBELETS = {"kubernetes.io/hostname": "node-1", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}


def made(spec: str) -> list[dict[str, Any]]:
    return [found.manifest for found in nodes.from_spec(spec)]


def names(spec: str) -> list[str]:
    return [node["metadata"]["name"] for node in made(spec)]


def test_what_a_node_holds() -> None:
    """Resources as they are written; pods and disk where nothing is said of them; a host name."""
    (node,) = made("cpu=32,memory=128Gi,nvidia.com/gpu=8")
    room = {"pods": "110", "ephemeral-storage": "100Gi", "cpu": "32", "memory": "128Gi", "nvidia.com/gpu": "8"}
    assert node["status"]["allocatable"] == node["status"]["capacity"] == room
    assert node["metadata"] == {"name": "node-1", "labels": KUBELETS}
    assert node["spec"] == {}


def test_labels_zones_and_taints() -> None:
    """Everything else that a pod may look at."""
    (node,) = made("cpu=1,zone=b,label:disk=ssd,taint:dedicated=ml:NoSchedule,taint:spot=NoExecute,pods=20")
    assert node["metadata"]["labels"] == KUBELETS | {"topology.kubernetes.io/zone": "b", "disk": "ssd"}
    assert node["spec"]["taints"] == [
        {"key": "dedicated", "effect": "NoSchedule", "value": "ml"},
        {"key": "spot", "effect": "NoExecute"},
    ]
    assert node["status"]["allocatable"]["pods"] == "20"


NAMES = {
    "one": ("cpu=1", ["node-1"]),
    "several": ("3x cpu=1", ["node-1", "node-2", "node-3"]),
    "with zeros so that they sort": ("10x cpu=1", [f"node-{i:02}" for i in range(1, 11)]),
    "groups are numbered through": ("2x cpu=1; 1x cpu=2", ["node-1", "node-2", "node-3"]),
    "groups with names of their own": ("2x name=a,cpu=1;name=b,cpu=2", ["a-1", "a-2", "b-1"]),
    "without a space": ("2xcpu=1", ["node-1", "node-2"]),
    "spaces do not matter": (" 2 x  cpu=1 , memory=1Gi ; ", ["node-1", "node-2"]),
}


@pytest.mark.parametrize(("spec", "wanted"), NAMES.values(), ids=NAMES)
def test_names(spec: str, wanted: list[str]) -> None:
    assert names(spec) == wanted


WRONG = {
    "empty": (" ; ", "--nodes: empty; write for instance '4x cpu=32,memory=128Gi,nvidia.com/gpu=8'"),
    "no sign": ("4x cpu", "--nodes: 'cpu': write KEY=VALUE, such as cpu=32, joined by ','; groups by ';'"),
    "no value": ("cpu=", "--nodes: 'cpu=': write KEY=VALUE, such as cpu=32, joined by ','; groups by ';'"),
    "no quantity": ("cpu=many", "--nodes: 'cpu=many': 'many' is not a quantity (such as 500m, 2, 1.5Gi, 1e3)"),
    "below zero": ("cpu=-1", "--nodes: 'cpu=-1': must not be below zero"),
    "twice": ("cpu=1,cpu=2", "--nodes: 'cpu=2': cpu is given twice"),
    "a slip": ("cpu=1,memroy=1Gi", "--nodes: 'memroy=1Gi': unknown key 'memroy'; did you mean 'memory'?"),
    "a card in the words of people": ("cpu=1,gpu=8", "--nodes: 'gpu=8': unknown key 'gpu'; did you mean 'nvidia.com/gpu'?"),
    "capital letters": ("CPU=1", "--nodes: 'CPU=1': unknown key 'CPU'; did you mean 'cpu'?"),
    "nothing said of them": ("2x", "--nodes: '2x': say what each has, such as '2x cpu=32,memory=128Gi'"),
    "a number below zero": (
        "-1x cpu=1", "--nodes: '-1x cpu=1': how many must be a whole number with an x behind it, such as '4x cpu=32'",
    ),
    "half a node": (
        "1.5x cpu=1", "--nodes: '1.5x cpu=1': how many must be a whole number with an x behind it, such as '4x cpu=32'",
    ),
    "a number without x": (
        "4 cpu=1", "--nodes: '4 cpu=1': how many must be a whole number with an x behind it, such as '4x cpu=32'",
    ),
    "a blank for a comma": (
        "2x cpu=4 memory=8Gi", "--nodes: 'cpu=4 memory=8Gi': join what a node has by ',', such as cpu=32,memory=128Gi",
    ),
    "memory without a unit": ("cpu=4,memory=8", "--nodes: 'memory=8': that is 8 bytes; write memory=8Gi or the like"),
    "memory in thousandths": ("cpu=4,memory=512m", "--nodes: 'memory=512m': that is 0.512 bytes; write memory=512Gi or the like"),
    "nothing to run on": ("4x zone=a", "--nodes: '4x zone=a': give at least cpu or memory"),
    "none": ("0x cpu=1", "--nodes: '0x cpu=1': 0 nodes"),
    "too many": ("1000000x cpu=1", "--nodes: more than 100,000 nodes"),
    "a taint without effect": (
        "cpu=1,taint:a=b", "--nodes: 'taint:a=b': 'b' is no effect of a taint; known: NoExecute, NoSchedule, PreferNoSchedule",
    ),
    "a bad name": ("cpu=1,name=A_b", "--nodes: 'name=A_b': 'A_b' is no name for a node (lower case letters, digits, '-', '.')"),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "says"), WRONG.values(), ids=WRONG)
def test_what_is_refused(spec: str, says: str) -> None:
    with pytest.raises(UsageError) as refusal:
        made(spec)
    assert str(refusal.value) == says


@pytest.mark.parametrize(("given", "file"), [("4x cpu=32", False), ("nodes.yaml", True), ("-", True), (__file__, True)])
def test_a_file_or_a_spec(given: str, file: bool) -> None:
    """What ends like a manifest or is there is a file."""
    assert nodes.is_file(given) is file
