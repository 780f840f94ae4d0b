"""kube-scheduler's filters, rule by rule: who refuses a node, and in which words."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
import pytest

from extender.api.meta import Json
from extender.ctl.score import answer_line
from extender.testing.builders import NodeBuilder, PodBuilder, node, pod

PASSES = ""
UNSCHEDULABLE = "NodeUnschedulable: node(s) were unschedulable"
NAME = "NodeName: node(s) didn't match the requested node name"
TAINT = "TaintToleration: node(s) had untolerated taint(s)"
AFFINITY = "NodeAffinity: node(s) didn't match Pod's node affinity/selector"
PORTS = "NodePorts: node(s) didn't have free ports for the requested pod ports"
ALONE = "InterPodAffinity: node(s) didn't match pod affinity rules"
CROWDED = "InterPodAffinity: node(s) didn't match pod anti-affinity rules"
UNWELCOME = "InterPodAffinity: node(s) didn't satisfy existing pods anti-affinity rules"
SKEWED = "PodTopologySpread: node(s) didn't match pod topology spread constraints"
KEYLESS = f"{SKEWED} (missing required label)"
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
ANYWHERE: Json = {}


def big(name: str = "n1", zone: str = "") -> NodeBuilder:
    made = node(name).cpu(16).memory("64Gi")
    return made.zone(zone) if zone else made


def verdicts(asked: PodBuilder, nodes: Sequence[NodeBuilder], running: Sequence[Json] = (), objects: Sequence[Json] = ()) -> Json:
    """Node -> "" where it passes, else the plugin and its reasons."""
    question = {"id": "q", "nodes": list(nodes), "pods": list(running), "objects": list(objects), "pod": asked}
    answer = answer_line(orjson.dumps(question))
    assert "error" not in answer
    return {
        name: PASSES if verdict["ok"] else f"{verdict['plugin']}: {', '.join(verdict.get('reasons', ()))}"
        for name, verdict in answer["filter"].items()
    }


def choosy(*expressions: tuple[str, ...], name: str = "") -> PodBuilder:
    """A pod with a required node affinity of one term."""
    term: Json = {"matchExpressions": [{"key": key, "operator": op, "values": values} for key, op, *values in expressions]}
    if name:
        term["matchFields"] = [{"key": "metadata.name", "operator": "In", "values": [name]}]
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return pod().with_("spec.affinity.nodeAffinity", affinity)


def near(kind: str, topology_key: str, **term: object) -> Json:
    """A required term of podAffinity or podAntiAffinity."""
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": topology_key, **term}]}}


def friendly(topology_key: str, **term: object) -> PodBuilder:
    return pod().with_("spec.affinity", near("podAffinity", topology_key, **term))


def shy(topology_key: str, **term: object) -> PodBuilder:
    return pod().with_("spec.affinity", near("podAntiAffinity", topology_key, **term))


def spread(topology_key: str, max_skew: int = 1, **more: object) -> list[Json]:
    chosen: Json = {"labelSelector": {"matchLabels": {"app": "web"}}, **more}
    return [{"topologyKey": topology_key, "maxSkew": max_skew, "whenUnsatisfiable": "DoNotSchedule", **chosen}]


def web(name: str = "w", on: str = "") -> PodBuilder:
    made = pod(name).labels(app="web")
    return made.on(on) if on else made


def namespace(name: str, **labels: str) -> Json:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def host_port(number: int, address: str = "", protocol: str = "") -> list[Json]:
    return [{"name": "c", "ports": [{"containerPort": 80, "hostPort": number, "hostIP": address, "protocol": protocol}]}]


def with_port(number: int, address: str = "", protocol: str = "", on: str = "") -> PodBuilder:
    made = pod("holder" if on else "asked").with_("spec.containers", host_port(number, address, protocol))
    return made.on(on) if on else made


NODE_ALONE = {
    "a node without anything against it": (big(), pod(), PASSES),
    "a cordoned node": (big().unschedulable(), pod(), UNSCHEDULABLE),
    "a cordoned node, tolerated": (big().unschedulable(), pod().tolerate("node.kubernetes.io/unschedulable"), PASSES),
    "the node that is named": (big("n1"), pod().with_("spec.nodeName", "n1"), PASSES),
    "another node than the named one": (big("n1"), pod().with_("spec.nodeName", "n2"), NAME),
    "a taint": (big().taint("gpu"), pod(), TAINT),
    "a taint that is tolerated": (big().taint("gpu"), pod().tolerate("gpu"), PASSES),
    "a taint of another value than tolerated": (big().taint("gpu", "a"), pod().tolerate("gpu", "b"), TAINT),
    "a NoExecute taint": (big().taint("gpu", effect="NoExecute"), pod(), TAINT),
    "a taint that only advises": (big().taint("gpu", effect="PreferNoSchedule"), pod(), PASSES),
    "a label that the selector wants": (big().labels(disk="ssd"), pod().select(disk="ssd"), PASSES),
    "a label of another value": (big().labels(disk="hdd"), pod().select(disk="ssd"), AFFINITY),
    "In": (big().labels(disk="hdd"), choosy(("disk", "In", "ssd", "hdd")), PASSES),
    "NotIn": (big().labels(disk="hdd"), choosy(("disk", "NotIn", "hdd")), AFFINITY),
    "NotIn, label missing": (big(), choosy(("disk", "NotIn", "hdd")), PASSES),
    "Exists, label missing": (big(), choosy(("disk", "Exists")), AFFINITY),
    "DoesNotExist": (big(), choosy(("disk", "DoesNotExist")), PASSES),
    "Gt": (big().labels(gen="10"), choosy(("gen", "Gt", "9")), PASSES),
    "Gt, equal": (big().labels(gen="9"), choosy(("gen", "Gt", "9")), AFFINITY),
    "Gt, a word": (big().labels(gen="x"), choosy(("gen", "Gt", "9")), AFFINITY),
    "Lt, negative": (big().labels(gen="-3"), choosy(("gen", "Lt", "0")), PASSES),
    "an empty term": (big(), choosy(), AFFINITY),
    "another node than matchFields names": (big("n1"), choosy(name="n2"), "PreFilter: "),
    "the node that matchFields names": (big("n1"), choosy(name="n1"), PASSES),
    "enough room": (big(), pod().cpu(16), PASSES),
    "too little cpu": (node().cpu(1).memory("1Gi"), pod().cpu(2), "NodeResourcesFit: Insufficient cpu"),
    "too little of all": (
        node().cpu(1).pods(0), pod().cpu(2).memory("1Gi").gpu(1),
        "NodeResourcesFit: Too many pods, Insufficient cpu, Insufficient memory, Insufficient nvidia.com/gpu",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("on", "asked", "want"), NODE_ALONE.values(), ids=NODE_ALONE)
def test_what_a_node_alone_decides(on: NodeBuilder, asked: PodBuilder, want: str) -> None:
    assert verdicts(asked, [on]) == {on["metadata"]["name"]: want}


def test_terms_that_name_no_node_together_are_a_conflict() -> None:
    """Two metadata.name lines of one term that exclude each other."""
    lines = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in ("n1", "n2")]
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": lines}]}}
    asked = pod().with_("spec.affinity.nodeAffinity", affinity)
    conflict = "NodeAffinity: pod affinity terms conflict"
    assert verdicts(asked, [big("n1"), big("n2")]) == {"n1": conflict, "n2": conflict}


def test_the_first_filter_of_the_profile_speaks() -> None:
    """A node that several filters refuse is refused by the first of them."""
    assert verdicts(pod().cpu(99).select(disk="ssd"), [big().taint("gpu").unschedulable()]) == {"n1": UNSCHEDULABLE}


PORT_CASES = {
    "the same port": (with_port(80, on="n1"), with_port(80), PORTS),
    "another port": (with_port(80, on="n1"), with_port(81), PASSES),
    "another protocol": (with_port(80, on="n1"), with_port(80, protocol="UDP"), PASSES),
    "another address": (with_port(80, "10.0.0.1", on="n1"), with_port(80, "10.0.0.2"), PASSES),
    "any address against one": (with_port(80, on="n1"), with_port(80, "10.0.0.2"), PORTS),
    "one address against any": (with_port(80, "10.0.0.1", on="n1"), with_port(80), PORTS),
    "no host port": (with_port(80, on="n1"), with_port(0), PASSES),
    "of an init container that ends": (
        pod("holder").with_("spec.initContainers", host_port(80)).on("n1"), with_port(80), PASSES,
    ),
    "of a sidecar": (
        pod("holder").with_("spec.initContainers", [{**host_port(80)[0], "restartPolicy": "Always"}]).on("n1"),
        with_port(80), PORTS,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("holder", "asked", "want"), PORT_CASES.values(), ids=PORT_CASES)
def test_host_ports(holder: PodBuilder, asked: PodBuilder, want: str) -> None:
    assert verdicts(asked, [big()], [holder]) == {"n1": want}


SELECTS_WEB = {"labelSelector": {"matchLabels": {"app": "web"}}}
ZONES = [big("n1", "a"), big("n2", "a"), big("n3", "b"), big("n4")]
POD_AFFINITY = {
    "affinity: every node of the domain": (
        friendly(ZONE, **SELECTS_WEB), [web(on="n1")], [PASSES, PASSES, ALONE, ALONE],
    ),
    "affinity: nobody matches, the pod not itself": (
        friendly(ZONE, **SELECTS_WEB), [], [ALONE] * 4,
    ),
    "affinity: nobody matches but the pod itself": (
        web().with_("spec.affinity", near("podAffinity", ZONE, **SELECTS_WEB)), [], [PASSES, PASSES, PASSES, ALONE],
    ),
    "affinity: a terminating pod counts": (
        friendly(ZONE, **SELECTS_WEB), [web(on="n1").leaving()],
        [PASSES, PASSES, ALONE, ALONE],
    ),
    "affinity: a pod of another namespace does not count": (
        friendly(ZONE, **SELECTS_WEB),
        [pod("w", "other").labels(app="web").on("n1")], [ALONE] * 4,
    ),
    "affinity: a namespace that is listed": (
        friendly(ZONE, **SELECTS_WEB, namespaces=["other"]),
        [pod("w", "other").labels(app="web").on("n3")], [ALONE, ALONE, PASSES, ALONE],
    ),
    "affinity: a namespace that is selected": (
        friendly(ZONE, **SELECTS_WEB, namespaceSelector={"matchLabels": {"team": "x"}}),
        [pod("w", "other").labels(app="web").on("n3"), web(on="n1")], [ALONE, ALONE, PASSES, ALONE],
    ),
    "affinity: all namespaces": (
        friendly(ZONE, **SELECTS_WEB, namespaceSelector={}),
        [pod("w", "unheard-of").labels(app="web").on("n3")], [ALONE, ALONE, PASSES, ALONE],
    ),
    "anti-affinity: the domain is taken": (
        shy(ZONE, **SELECTS_WEB), [web(on="n1")], [CROWDED, CROWDED, PASSES, PASSES],
    ),
    "anti-affinity: an empty selector": (
        shy(HOST, labelSelector=ANYWHERE), [pod("o").on("n2")],
        [PASSES, CROWDED, PASSES, PASSES],
    ),
    "anti-affinity: a missing selector": (
        shy(HOST), [pod("o").on("n2")], [PASSES] * 4,
    ),
    "anti-affinity of a pod that is there": (
        web(), [pod("o").with_("spec.affinity", near("podAntiAffinity", ZONE, **SELECTS_WEB)).on("n1")],
        [UNWELCOME, UNWELCOME, PASSES, PASSES],
    ),
    "anti-affinity of a pod of another namespace": (
        web(), [pod("o", "other").with_("spec.affinity", near("podAntiAffinity", ZONE, **SELECTS_WEB)).on("n1")], [PASSES] * 4,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("asked", "running", "want"), POD_AFFINITY.values(), ids=POD_AFFINITY)
def test_pod_affinity(asked: PodBuilder, running: list[Json], want: list[str]) -> None:
    found = verdicts(asked, ZONES, running, [namespace("other", team="x"), namespace("default", team="y")])
    assert [found[on["metadata"]["name"]] for on in ZONES] == want


def test_all_terms_must_match_one_and_the_same_pod() -> None:
    """One pod matches the first term, another the second: that is not enough."""
    terms = [{"topologyKey": ZONE, "labelSelector": {"matchLabels": labels}} for labels in ({"app": "web"}, {"tier": "front"})]
    asked = pod().with_("spec.affinity.podAffinity", {"requiredDuringSchedulingIgnoredDuringExecution": terms})
    apart = [web("a", on="n1"), pod("b").labels(tier="front").on("n1")]
    assert verdicts(asked, [big("n1", "a")], apart) == {"n1": ALONE}
    both = pod("c").labels(app="web", tier="front").on("n1")
    assert verdicts(asked, [big("n1", "a")], [both]) == {"n1": PASSES}


def spread_web(**more: object) -> PodBuilder:
    return web("asked").with_("spec.topologySpreadConstraints", spread(ZONE, **more))  # type: ignore[arg-type]


SPREAD = {
    "an even start": (spread_web(), [], [PASSES, PASSES, PASSES, KEYLESS]),
    "the fuller domain": (spread_web(), [web(on="n1")], [SKEWED, SKEWED, PASSES, KEYLESS]),
    "a wider skew": (spread_web(max_skew=2), [web(on="n1")], [PASSES, PASSES, PASSES, KEYLESS]),
    "pods that do not match": (spread_web(), [pod("o").on("n1")], [PASSES, PASSES, PASSES, KEYLESS]),
    "terminating pods do not count": (spread_web(), [web(on="n1").leaving()], [PASSES, PASSES, PASSES, KEYLESS]),
    "fewer domains than wanted": (
        spread_web(minDomains=3), [web("a", on="n1"), web("b", on="n3")], [SKEWED, SKEWED, SKEWED, KEYLESS],
    ),
    "the pod does not match its own constraint": (
        pod().with_("spec.topologySpreadConstraints", spread(ZONE)), [web(on="n1")], [PASSES, PASSES, PASSES, KEYLESS],
    ),
    "nodes that affinity excludes do not count": (spread_web().select(disk="ssd"), [web(on="n3")], [AFFINITY] * 4),
    "an empty selector counts nobody": (spread_web(labelSelector={}), [web(on="n1")], [PASSES, PASSES, PASSES, KEYLESS]),
    "matchLabelKeys": (
        spread_web(matchLabelKeys=["hash"]).labels(hash="2"),
        [web("a", on="n1").labels(hash="1"), web("b", on="n3").labels(hash="2")],
        [PASSES, PASSES, SKEWED, KEYLESS],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("asked", "running", "want"), SPREAD.values(), ids=SPREAD)
def test_topology_spread(asked: PodBuilder, running: list[Json], want: list[str]) -> None:
    found = verdicts(asked, ZONES, running)
    assert [found[on["metadata"]["name"]] for on in ZONES] == want


@pytest.mark.parametrize(("policy", "want"), [("Honor", PASSES), ("Ignore", SKEWED)])
def test_whether_tainted_nodes_count_as_the_emptiest_domain(policy: str, want: str) -> None:
    """A domain of which the pod tolerates nothing keeps all others empty, unless the policy leaves it out."""
    nodes = [big("n1", "a"), big("n2", "b").taint("gpu")]
    asked = spread_web(nodeTaintsPolicy=policy)
    assert verdicts(asked, nodes, [web(on="n1")]) == {"n1": want, "n2": TAINT}


@pytest.mark.parametrize(("policy", "want"), [("Honor", PASSES), ("Ignore", SKEWED)])
def test_whether_nodes_outside_the_affinity_count_as_the_emptiest_domain(policy: str, want: str) -> None:
    nodes = [big("n1", "a").labels(disk="ssd"), big("n2", "b")]
    asked = spread_web(nodeAffinityPolicy=policy).select(disk="ssd")
    assert verdicts(asked, nodes, [web(on="n1")]) == {"n1": want, "n2": AFFINITY}


def test_an_amount_past_what_can_be_counted_fits_nowhere() -> None:
    """Sums with the defaults for containers that ask nothing are held at the largest amount too."""
    for cpu, memory in (("9e30", "1Gi"), ("1", "9e30")):
        told = verdicts(pod("asked").with_("spec.containers", [_asking({"cpu": cpu}), _asking({"memory": memory})]), [big()])
        assert told["n1"].startswith("NodeResourcesFit: Insufficient")


def _asking(requests: Json) -> Json:
    return {"name": next(iter(requests)), "image": "app", "resources": {"requests": requests}}
