"""HyperNodes found from node labels."""

from __future__ import annotations

import pytest

from controller.discovery import Level, levels, reconcile
from extender.api.errors import InvalidObject
from extender.api.meta import Json
from extender.api.operations import Create, Delete, Patch

TWO = (Level("dc", 1, "rack"), Level("dc", 2, "zone"))


def configured(text: str) -> Json:
    return {"data": {"volcano-controller.conf": text}}


SOURCE = """
networkTopologyDiscovery:
- source: label
  enabled: {enabled}
  config:
    networkTopologyTypes:
      dc: [{{nodeLabel: zone}}, {{nodeLabel: rack}}, {{nodeLabel: kubernetes.io/hostname}}]
      a-name-that-is-much-too-long: [{{nodeLabel: zone}}, {{nodeLabel: x}}]
      twice: [{{nodeLabel: zone}}, {{nodeLabel: zone}}]
"""


def test_levels_go_up_from_the_node() -> None:
    """What cannot be used is passed over."""
    assert levels(configured(SOURCE.format(enabled="true"))) == [list(TWO)]


def test_discovery_that_is_switched_off() -> None:
    """What was found stays."""
    assert levels(configured(SOURCE.format(enabled="false"))) is None


def test_an_unknown_source() -> None:
    """Is named."""
    with pytest.raises(InvalidObject, match="'lable' is no source"):
        levels(configured("networkTopologyDiscovery: [{source: lable}]"))


def node(name: str, **labels: str) -> Json:
    return {"metadata": {"name": name, "labels": labels}}


def found(nodes: list[Json], known: list[Json]) -> dict[str, list[str]]:
    """Names by what is done; a new HyperNode by its label's value."""
    done: dict[str, list[str]] = {"make": [], "align": [], "delete": []}
    for stage in reconcile([TWO], nodes, known).stages:
        for operation in stage.operations:
            match operation:
                case Create(object=obj):
                    done["make"].append(obj["metadata"]["labels"][obj["spec"]["tierName"]])
                case Patch(key=key):
                    done["align"].append(key.name)
                case Delete(key=key):
                    done["delete"].append(key.name)
    return done


def rack(name: str, value: str, *members: str, source: str = "label") -> Json:
    listed = [{"type": "Node", "selector": {"exactMatch": {"name": member}}} for member in members]
    labels = {"rack": value, "volcano.sh/network-topology-source": source}
    return {"metadata": {"name": name, "labels": labels, "uid": "u"}, "spec": {"tier": 1, "tierName": "rack", "members": listed}}


KEPT = rack("hypernode-dc-tier1-abcde", "r1", "n1")
CASES = {
    "a node climbs level by level": ([node("n1", rack="r1", zone="z1")], [], (["r1", "z1"], [], [])),
    "until it lacks a label": ([node("n1", zone="z1")], [], ([], [], [])),
    "what is there stays as it is": ([node("n1", rack="r1")], [KEPT], ([], [], [])),
    "and keeps its name when members change": ([node("n2", rack="r1")], [KEPT], ([], [KEPT["metadata"]["name"]], [])),
    "what is found no more goes": ([], [KEPT], ([], [], [KEPT["metadata"]["name"]])),
    "those of others are not touched": ([], [rack("theirs", "r1", "n1", source="ufm")], ([], [], [])),
}


@pytest.mark.parametrize(("nodes", "known", "want"), CASES.values(), ids=CASES)
def test_what_is_done(nodes: list[Json], known: list[Json], want: tuple[list[str], list[str], list[str]]) -> None:
    """(made, aligned, deleted)."""
    assert tuple(found(nodes, known).values()) == want
