"""Contract: the schemas of our kinds. Defaults are filled in, unknown fields dropped, every fault found and named."""

from __future__ import annotations

from typing import Any

import pytest

from extender.api.errors import Invalid
from extender.api.meta import COMMAND, HYPER_NODE, JOB, POD_GROUP, QUEUE, Json, Key, Kind
from extender.cluster.port import Cluster
from extender.testing.builders import Built, podgroup, queue


def job(ns: str, **spec: object) -> Built:
    template = {"spec": {"containers": [{"name": "main", "image": "example.test/app:1"}]}}
    built = Built(JOB, "j", ns)
    built["spec"] = {"tasks": [{"name": "worker", "replicas": 1, "template": template}], **spec}
    return built


def hyper_node(*selectors: Json) -> Built:
    built = Built(HYPER_NODE, "h")
    built["spec"] = {"tier": 1, "members": [{"type": "Node", "selector": selector} for selector in selectors]}
    return built


# --- defaults and pruning ---------------------------------------------------------------------------------------------

DEFAULTS = {"queue": "default", "maxRetry": 3}


@pytest.mark.parametrize(("field", "want"), DEFAULTS.items(), ids=DEFAULTS)
def test_the_defaults_of_a_job(cluster: Cluster, ns: str, field: str, want: object) -> None:
    assert cluster.create(JOB, job(ns))["spec"][field] == want


def test_the_defaults_of_a_queue(cluster: Cluster) -> None:
    made = cluster.create(QUEUE, Built(QUEUE, "defaults") | {"spec": {}})
    cluster.delete(QUEUE, Key("", "defaults"))
    assert made["spec"] == {"weight": 1, "dequeueStrategy": "traverse"}


def test_defaults_reach_into_what_is_there(cluster: Cluster, ns: str) -> None:
    made = cluster.create(POD_GROUP, podgroup("g", ns).with_("spec.networkTopology", {"highestTierAllowed": 1}))
    assert made["spec"]["networkTopology"]["mode"] == "hard"


def test_defaults_do_not_make_what_is_not(cluster: Cluster, ns: str) -> None:
    assert "networkTopology" not in cluster.create(POD_GROUP, podgroup("g", ns))["spec"]


def test_ports_of_a_template_are_tcp(cluster: Cluster, ns: str) -> None:
    asked = job(ns)
    asked["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["ports"] = [{"containerPort": 80}]
    made = cluster.create(JOB, asked)
    assert made["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["ports"][0]["protocol"] == "TCP"


def test_unknown_fields_are_dropped(cluster: Cluster, ns: str) -> None:
    asked = podgroup("g", ns).with_("spec.colour", "red").with_("metadata.labels", {"kept": "yes"})
    made = cluster.create(POD_GROUP, asked)
    assert ("colour" in made["spec"], made["metadata"]["labels"]) == (False, {"kept": "yes"})


def test_a_null_is_as_if_not_written(cluster: Cluster, ns: str) -> None:
    assert cluster.create(JOB, job(ns, queue=None))["spec"]["queue"] == "default"


def test_free_maps_keep_their_keys(cluster: Cluster, ns: str) -> None:
    made = cluster.create(JOB, job(ns, plugins={"svc": ["--publish-not-ready-addresses=true"], "env": []}))
    assert made["spec"]["plugins"] == {"svc": ["--publish-not-ready-addresses=true"], "env": []}


def test_a_quantity_may_be_a_number(cluster: Cluster, ns: str) -> None:
    made = cluster.create(POD_GROUP, podgroup("g", ns).with_("spec.minResources", {"cpu": 2, "memory": "1Gi"}))
    assert made["spec"]["minResources"] == {"cpu": 2, "memory": "1Gi"}


def test_a_command_has_its_fields_on_top(cluster: Cluster, ns: str) -> None:
    asked = Built(COMMAND, "c", ns) | {"action": "AbortJob", "target": {
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "u", "controller": True}}  # fmt: skip
    assert cluster.create(COMMAND, asked)["action"] == "AbortJob"


# --- faults -----------------------------------------------------------------------------------------------------------

FAULTS: dict[str, tuple[dict[str, Any], str, str]] = {
    "too small": ({"minAvailable": -1}, "spec.minAvailable", "should be greater than or equal to 0"),
    "wrong type": ({"minAvailable": "two"}, "spec.minAvailable", 'must be of type integer: "string"'),
    "too large for 32 bits": ({"minAvailable": 2**31}, "spec.minAvailable", "int32"),
    "no items": ({"tasks": []}, "spec.tasks", "should have at least 1 items"),
    "pattern": ({"queue": "Q_"}, "spec.queue", "should match '"),
    "too long": ({"schedulerName": "s" * 64}, "spec.schedulerName", "Too long: may not be more than 63 bytes"),
    "required in a list": ({"volumes": [{}]}, "spec.volumes[0].mountPath", "Required value"),
    "too short": ({"volumes": [{"mountPath": ""}]}, "spec.volumes[0].mountPath", "should be at least 1 chars long"),
    "no such word": (
        {"policies": [{"event": "Rain", "action": "AbortJob"}]}, "spec.policies[0].event",
        'Unsupported value: "Rain": supported values:',
    ),
    "null in a list": ({"tasks": [None]}, "spec.tasks[0]", 'must be of type object: "null"'),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "path", "words"), FAULTS.values(), ids=FAULTS)
def test_a_fault_has_its_field_and_the_servers_words(
    cluster: Cluster, ns: str, spec: dict[str, Any], path: str, words: str
) -> None:
    with pytest.raises(Invalid) as refused:
        cluster.create(JOB, job(ns, **spec))
    assert any(words in fault.message for fault in refused.value.faults if path in str(fault))


def test_a_refusal_names_the_kind_and_every_fault(cluster: Cluster, ns: str) -> None:
    with pytest.raises(Invalid, match=r'Job.batch.volcano.sh "j" is invalid: \[.*, .*\]') as refused:
        cluster.create(JOB, job(ns, minAvailable=-1, maxRetry=-1))
    assert {fault.path for fault in refused.value.faults} == {"spec.minAvailable", "spec.maxRetry"}


def test_a_quantity_is_checked(cluster: Cluster) -> None:
    with pytest.raises(Invalid) as refused:
        cluster.create(QUEUE, queue("q").with_("spec.capability", {"cpu": "much"}))
    assert refused.value.faults[0].path == "spec.capability.cpu"


SELECTORS: dict[str, tuple[Json, str]] = {
    "none": ({}, "Either ExactMatch or RegexMatch or LabelMatch must be specified"),
    "two": (
        {"exactMatch": {"name": "n1"}, "regexMatch": {"pattern": "n"}},
        "Only one of ExactMatch, RegexMatch, or LabelMatch can be specified",
    ),
}


@pytest.mark.parametrize(("selector", "words"), SELECTORS.values(), ids=SELECTORS)
def test_a_member_is_selected_in_one_way(cluster: Cluster, selector: Json, words: str) -> None:
    with pytest.raises(Invalid, match=words):
        cluster.create(HYPER_NODE, hyper_node(selector))


def test_items_of_a_map_list_are_unique(cluster: Cluster, ns: str) -> None:
    asked = job(ns)
    main = asked["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
    asked["spec"]["tasks"][0]["template"]["spec"]["containers"] = [main, main]
    with pytest.raises(Invalid) as refused:
        cluster.create(JOB, asked)
    assert refused.value.faults[0].path == "spec.tasks[0].template.spec.containers[1]"


def test_an_update_is_checked_too(cluster: Cluster, ns: str) -> None:
    cluster.create(JOB, job(ns))
    with pytest.raises(Invalid):
        cluster.patch(JOB, Key(ns, "j"), {"spec": {"minAvailable": -1}})


def test_a_status_is_checked_too(cluster: Cluster) -> None:
    cluster.create(QUEUE, queue("status-checked"))
    with pytest.raises(Invalid) as refused:
        cluster.patch(QUEUE, Key("", "status-checked"), {"status": {"state": "Ajar"}}, subresource="status")
    cluster.delete(QUEUE, Key("", "status-checked"))
    assert refused.value.faults[0].path == "status.state"


# --- the CRDs themselves ----------------------------------------------------------------------------------------------

CUSTOM: list[Kind] = [JOB, COMMAND, POD_GROUP, QUEUE, HYPER_NODE]


@pytest.mark.parametrize("kind", CUSTOM, ids=str)
def test_kind_and_crd_agree_on_the_status_subresource(kind: Kind) -> None:
    from extender.cluster.manifests import version_of

    assert ("status" in (version_of(kind).get("subresources") or {})) == kind.status_subresource
