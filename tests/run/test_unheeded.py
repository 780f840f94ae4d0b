"""What nobody acts upon is told, so that no limit is believed in that does not hold."""

from __future__ import annotations

import pytest

from tests.run.conftest import Command

_TASK = "{name: w, replicas: 1, %s template: {spec: {containers: [{name: main, image: app, resources: {limits: {cpu: 1}}}]}}}"
_JOB = "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: train}\nspec: {%s tasks: [%s]}\n"
_QUEUE = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: %s}\nspec: {%s}\n"
_POD = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: main, image: app}]}\n"
_TREE = """
actions: "enqueue, allocate"
tiers: [{plugins: [{name: gang}, {name: predicates}, {name: capacity, enableHierarchy: %s}]}]
"""
_SIDE_BY_SIDE = "queues stand side by side: only the plugin capacity with enableHierarchy: true makes a tree of them"

UNHEEDED = {
    "the network": (
        _JOB % ("networkTopology: {mode: hard, highestTierAllowed: 1},", _TASK % ""), "",
        "Job train: spec.networkTopology: network topology is not considered in this version: pods may come to be on any nodes",
    ),
    "NUMA nodes": (
        _JOB % ("", _TASK % "topologyPolicy: best-effort,"), "",
        "Job train: spec.tasks[0].topologyPolicy: NUMA nodes are not considered in this version: "
        "pods may come to be on any nodes",
    ),
    "a share that another plugin reads": (
        _QUEUE % ("q", "deserved: {cpu: 2}") + _POD, "",
        "Queue q: spec.deserved: only the plugin capacity acts upon it, and the configuration has it not",
    ),
    "a resource that is none": (
        _QUEUE % ("q", "capability: {cpus: 2}") + _POD, "",
        "Queue q: spec.capability: no node has a resource 'cpus'; did you mean 'cpu'?",
    ),
    "no cpu at all, which is no limit": (
        _QUEUE % ("q", "capability: {cpu: '0', memory: 1Gi, nvidia.com/gpu: 0}") + _POD, "",
        "Queue q: spec.capability.cpu: 0 of cpu is no limit at all, as in Volcano; to keep jobs out of a queue close it "
        "(a Command CloseQueue)",
    ),
    "a parent where there is no tree": (
        _QUEUE % ("q", "parent: p") + "---\n" + _QUEUE % ("p", "weight: 1") + _POD, "", f"Queue q: spec.parent: {_SIDE_BY_SIDE}",
    ),
    "a parent where the plugin has its tree off": (
        _QUEUE % ("q", "parent: p") + "---\n" + _QUEUE % ("p", "weight: 1") + _POD, _TREE % "false",
        f"Queue q: spec.parent: {_SIDE_BY_SIDE}",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "conf", "says"), UNHEEDED.values(), ids=UNHEEDED)
def test_what_nobody_acts_upon_is_told(pumice: Command, text: str, conf: str, says: str) -> None:
    assert _warnings(pumice, text, conf) == [f"warning: f.yaml: document 1: {says}"]


@pytest.mark.parametrize("nothing", ["0", "'0'", "0m", "'0.0'"])
def test_what_is_no_limit_is_not_shown_as_one(pumice: Command, nothing: str) -> None:
    """Of other resources 0 is one."""
    queue = _QUEUE % ("q", f"capability: {{cpu: {nothing}, nvidia.com/gpu: 0}}") + _POD
    ran = pumice("run", "f.yaml", files={"f.yaml": queue})
    assert "spec.capability.cpu: 0 of cpu is no limit at all" in ran.err
    assert [line.split()[:4] for line in ran.out.splitlines() if line.startswith(" q ")] == [["q", "1", "gpu", "0"]]


HEEDED = {
    "policies that ask for nothing": (_JOB % ("", _TASK % "topologyPolicy: none,"), ""),
    "the root": (_QUEUE % ("q", "parent: root, capability: {cpu: 2, nvidia.com/gpu: 1, hugepages-2Mi: 1Gi}") + _POD, ""),
    "a tree": (_QUEUE % ("q", "parent: p, capability: {cpu: 1}") + "---\n" + _QUEUE % ("p", "weight: 1") + _POD, _TREE % "true"),
}


@pytest.mark.parametrize(("text", "conf"), HEEDED.values(), ids=HEEDED)
def test_what_is_acted_upon_is_not(pumice: Command, text: str, conf: str) -> None:
    assert _warnings(pumice, text, conf) == []


def _warnings(pumice: Command, text: str, conf: str) -> list[str]:
    words = ("--conf", "scheduler.conf") if conf else ()
    ran = pumice("run", "f.yaml", *words, files={"f.yaml": text, "scheduler.conf": conf})
    assert ran.fault == ""
    return [line for line in ran.err.splitlines() if line.startswith("warning: ")]
