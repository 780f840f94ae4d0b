"""Contract: create, update, patch and delete, with the API server's own words for saying no."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from extender.api.errors import AlreadyExists, BadRequest, ClusterError, Conflict, Invalid, NotFound
from extender.api.meta import CONFIG_MAP, JOB, NODE, POD, POD_GROUP, PRIORITY_CLASS, QUEUE, Json, Key, Kind
from extender.cluster.port import Cluster
from extender.testing.builders import Built, node, pod, podgroup, queue


def job(name: str, ns: str) -> Json:
    built = Built(JOB, name, ns)
    template = {"spec": {"containers": [{"name": "main", "image": "example.test/app:1"}]}}
    built["spec"] = {"tasks": [{"name": "worker", "replicas": 1, "template": template}]}
    return built


def config_map(name: str, ns: str, **data: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": ns}, "data": data}


# --- create -----------------------------------------------------------------------------------------------------------


def test_what_is_created_can_be_read(cluster: Cluster, ns: str) -> None:
    cluster.create(CONFIG_MAP, config_map("c", ns, a="1"))
    assert cluster.get(CONFIG_MAP, Key(ns, "c"))["data"] == {"a": "1"}


def test_create_answers_what_is_stored(cluster: Cluster, ns: str) -> None:
    made = cluster.create(CONFIG_MAP, config_map("c", ns))
    assert cluster.get(CONFIG_MAP, Key(ns, "c")) == made


def test_a_second_of_the_same_name_is_refused(cluster: Cluster, ns: str) -> None:
    cluster.create(POD, pod("p", ns))
    with pytest.raises(AlreadyExists, match='pods "p" already exists'):
        cluster.create(POD, pod("p", ns))


def test_a_custom_kind_is_named_with_its_group(cluster: Cluster, ns: str) -> None:
    cluster.create(POD_GROUP, podgroup("g", ns))
    with pytest.raises(AlreadyExists, match=r'podgroups.scheduling.volcano.sh "g" already exists'):
        cluster.create(POD_GROUP, podgroup("g", ns))


def test_a_name_is_generated(cluster: Cluster, ns: str) -> None:
    asked = config_map("", ns)
    asked["metadata"]["generateName"] = "made-"
    assert cluster.create(CONFIG_MAP, asked)["metadata"]["name"].startswith("made-")


def test_generated_names_differ(cluster: Cluster, ns: str) -> None:
    asked = config_map("", ns)
    asked["metadata"]["generateName"] = "made-"
    names = {cluster.create(CONFIG_MAP, asked)["metadata"]["name"] for _ in range(20)}
    assert len(names) == 20


def test_without_any_name_it_is_invalid(cluster: Cluster, ns: str) -> None:
    with pytest.raises(Invalid, match="name or generateName is required"):
        cluster.create(CONFIG_MAP, config_map("", ns))


def test_a_version_must_not_be_given_at_creation(cluster: Cluster, ns: str) -> None:
    asked = config_map("c", ns)
    asked["metadata"]["resourceVersion"] = "5"
    with pytest.raises(ClusterError, match="resourceVersion should not be set on objects to be created"):
        cluster.create(CONFIG_MAP, asked)


def test_a_dry_run_stores_nothing(cluster: Cluster, ns: str) -> None:
    cluster.create(CONFIG_MAP, config_map("c", ns), dry_run=True)
    with pytest.raises(NotFound):
        cluster.get(CONFIG_MAP, Key(ns, "c"))


def test_a_dry_run_refuses_as_the_write_would(cluster: Cluster, ns: str) -> None:
    with pytest.raises(Invalid):
        cluster.create(POD, pod("P", ns), dry_run=True)


def test_what_came_in_may_be_changed_afterwards(cluster: Cluster, ns: str) -> None:
    mine = config_map("c", ns, a="1")
    cluster.create(CONFIG_MAP, mine)
    mine["data"]["a"] = "2"
    assert cluster.get(CONFIG_MAP, Key(ns, "c"))["data"] == {"a": "1"}


def test_an_unknown_kind_is_a_clear_error(cluster: Cluster) -> None:
    widget = Kind("example.test", "v1", "Widget", "widgets")
    with pytest.raises((BadRequest, NotFound), match=r'no matches for kind "Widget" in version "example.test/v1"|not find'):
        cluster.list(widget)


UNREADABLE = {
    "labels that are no map": {"metadata": {"name": "p", "labels": ["a"]}},
    "a number for a text": {"metadata": {"name": "p", "annotations": {"a": 1}}},
    "owners that are no list": {"metadata": {"name": "p", "ownerReferences": {"name": "a"}}},
    "a text for a list": {"metadata": {"name": "p"}, "spec": {"containers": "main"}},
    "a text for an object": {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "resources": "big"}]}},
    "a spec that is none": {"metadata": {"name": "p"}, "spec": "none"},
    "no quantity": {
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "a", "image": "b", "resources": {"requests": {"cpu": "lots"}}}]},
    },
}


@pytest.mark.parametrize("asked", UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_read_is_refused(cluster: Cluster, ns: str, asked: Json) -> None:
    whole = {**asked, "apiVersion": "v1", "kind": "Pod", "metadata": {**asked["metadata"], "namespace": ns}}
    with pytest.raises(BadRequest, match='Pod in version "v1" cannot be handled as a Pod: '):
        cluster.create(POD, whole)


def test_a_null_counts_as_not_written(cluster: Cluster, ns: str) -> None:
    asked = pod("p", ns)
    asked["spec"]["containers"][0]["resources"] = None
    assert not cluster.create(POD, asked)["spec"]["containers"][0].get("resources")


# --- read -------------------------------------------------------------------------------------------------------------


def test_what_is_not_there_is_not_found(cluster: Cluster, ns: str) -> None:
    with pytest.raises(NotFound, match='pods "p" not found'):
        cluster.get(POD, Key(ns, "p"))


def test_list_is_ordered_by_name(cluster: Cluster, ns: str) -> None:
    for name in ("b", "a", "c"):
        cluster.create(CONFIG_MAP, config_map(name, ns))
    names = [obj["metadata"]["name"] for obj in cluster.list(CONFIG_MAP, ns).objects]
    assert [name for name in names if name in "abc"] == ["a", "b", "c"]


SELECTORS = {
    "equal": ("tier=front", ["a"]),
    "double equal": ("tier==front", ["a"]),
    "unequal, also without the label": ("tier!=front", ["b", "c"]),
    "in": ("tier in (front, back)", ["a", "b"]),
    "notin, also without the label": ("tier notin (front)", ["b", "c"]),
    "present": ("tier", ["a", "b"]),
    "absent": ("!tier", ["c"]),
    "all of several": ("tier in (front,back),app=x", ["a"]),
}


@pytest.mark.parametrize(("selector", "want"), SELECTORS.values(), ids=SELECTORS)
def test_label_selectors(cluster: Cluster, ns: str, selector: str, want: list[str]) -> None:
    cluster.create(POD, pod("a", ns).labels(tier="front", app="x"))
    cluster.create(POD, pod("b", ns).labels(tier="back", app="y"))
    cluster.create(POD, pod("c", ns).labels(app="x"))
    assert [each["metadata"]["name"] for each in cluster.list(POD, ns, label_selector=selector).objects] == want


FIELDS = {
    "name": ("metadata.name=a", ["a"]),
    "not that name": ("metadata.name!=a", ["b"]),
    "node": ("spec.nodeName=n1", ["b"]),
    "no node": ("spec.nodeName=", ["a"]),
    "phase": ("status.phase=Pending,spec.nodeName=n1", ["b"]),
}


@pytest.mark.parametrize(("selector", "want"), FIELDS.values(), ids=FIELDS)
def test_field_selectors(cluster: Cluster, ns: str, selector: str, want: list[str]) -> None:
    cluster.create(POD, pod("a", ns))
    cluster.create(POD, pod("b", ns))
    cluster.bind(Key(ns, "b"), "n1")
    assert [each["metadata"]["name"] for each in cluster.list(POD, ns, field_selector=selector).objects] == want


def test_an_unknown_field_cannot_be_selected(cluster: Cluster, ns: str) -> None:
    with pytest.raises(BadRequest, match=r"field label not supported: spec.colour"):
        cluster.list(POD, ns, field_selector="spec.colour=red")


def test_a_selector_that_cannot_be_read_is_refused(cluster: Cluster, ns: str) -> None:
    with pytest.raises(BadRequest):
        cluster.list(POD, ns, label_selector="a in b")


# --- update -----------------------------------------------------------------------------------------------------------


def test_an_update_replaces(cluster: Cluster, ns: str) -> None:
    made = cluster.create(CONFIG_MAP, config_map("c", ns, a="1"))
    cluster.update(CONFIG_MAP, {**made, "data": {"b": "2"}})
    assert cluster.get(CONFIG_MAP, Key(ns, "c"))["data"] == {"b": "2"}


def test_an_update_of_an_old_version_conflicts(cluster: Cluster, ns: str) -> None:
    made = cluster.create(CONFIG_MAP, config_map("c", ns, a="1"))
    cluster.update(CONFIG_MAP, {**made, "data": {"a": "2"}})
    with pytest.raises(Conflict, match="the object has been modified; please apply your changes to the latest version"):
        cluster.update(CONFIG_MAP, {**made, "data": {"a": "3"}})


def test_a_custom_object_is_not_replaced_blindly(cluster: Cluster, ns: str) -> None:
    made = cluster.create(POD_GROUP, podgroup("g", ns))
    blind = {name: value for name, value in made["metadata"].items() if name != "resourceVersion"}
    with pytest.raises(Invalid, match=r"metadata.resourceVersion: Invalid value: .*: must be specified for an update"):
        cluster.update(POD_GROUP, {**made, "metadata": blind, "spec": {"minMember": 2}})


def test_the_uid_cannot_be_changed(cluster: Cluster, ns: str) -> None:
    made = cluster.create(CONFIG_MAP, config_map("c", ns))
    other = {**made, "metadata": {**made["metadata"], "uid": "11111111-2222-4333-8444-555555555555"}}
    with pytest.raises(Conflict, match="Precondition failed: UID in precondition"):
        cluster.update(CONFIG_MAP, other)


# --- patch ------------------------------------------------------------------------------------------------------------


def test_a_merge_patch_merges(cluster: Cluster, ns: str) -> None:
    cluster.create(CONFIG_MAP, config_map("c", ns, a="1", b="2"))
    assert cluster.patch(CONFIG_MAP, Key(ns, "c"), {"data": {"a": "3", "b": None}})["data"] == {"a": "3"}


def test_a_merge_patch_replaces_lists(cluster: Cluster, ns: str) -> None:
    cluster.create(POD, pod("p", ns).with_("metadata.finalizers", ["example.test/a", "example.test/b"]))
    patched = cluster.patch(POD, Key(ns, "p"), {"metadata": {"finalizers": ["example.test/b"]}})
    assert patched["metadata"]["finalizers"] == ["example.test/b"]


def test_a_version_in_a_patch_is_a_precondition(cluster: Cluster, ns: str) -> None:
    old = cluster.create(CONFIG_MAP, config_map("c", ns))["metadata"]["resourceVersion"]
    cluster.patch(CONFIG_MAP, Key(ns, "c"), {"data": {"a": "1"}})
    with pytest.raises(Conflict):
        cluster.patch(CONFIG_MAP, Key(ns, "c"), {"metadata": {"resourceVersion": old}, "data": {"a": "2"}})


def test_a_uid_in_a_patch_is_a_precondition(cluster: Cluster, ns: str) -> None:
    cluster.create(CONFIG_MAP, config_map("c", ns))
    patch = {"metadata": {"uid": "11111111-2222-4333-8444-555555555555"}, "data": {"a": "2"}}
    with pytest.raises(Conflict):
        cluster.patch(CONFIG_MAP, Key(ns, "c"), patch)


def test_a_json_patch_is_carried_out_step_by_step(cluster: Cluster, ns: str) -> None:
    cluster.create(CONFIG_MAP, config_map("c", ns, a="1"))
    steps: list[Json] = [
        {"op": "test", "path": "/data/a", "value": "1"},
        {"op": "move", "from": "/data/a", "path": "/data/b"},
        {"op": "add", "path": "/metadata/annotations", "value": {}},
        {"op": "add", "path": "/metadata/annotations/x~1y", "value": "2"},
    ]
    patched = cluster.json_patch(CONFIG_MAP, Key(ns, "c"), steps)
    assert (patched["data"], patched["metadata"]["annotations"]) == ({"b": "1"}, {"x/y": "2"})


def test_a_key_of_a_config_map_is_a_file_name(cluster: Cluster, ns: str) -> None:
    with pytest.raises(Invalid) as refused:
        cluster.create(CONFIG_MAP, config_map("c", ns) | {"data": {"x/y": "2"}})
    assert [fault.path for fault in refused.value.faults] == ["data[x/y]"]


def test_a_json_patch_whose_test_fails_changes_nothing(cluster: Cluster, ns: str) -> None:
    made = cluster.create(CONFIG_MAP, config_map("c", ns, a="1"))
    steps = [{"op": "replace", "path": "/data/a", "value": "2"}, {"op": "test", "path": "/data/a", "value": "1"}]
    with pytest.raises(Invalid):
        cluster.json_patch(CONFIG_MAP, Key(ns, "c"), steps)
    assert cluster.get(CONFIG_MAP, Key(ns, "c")) == made


def test_a_patch_of_nothing_is_not_found(cluster: Cluster, ns: str) -> None:
    with pytest.raises(NotFound):
        cluster.patch(CONFIG_MAP, Key(ns, "c"), {"data": {}})


# --- status -----------------------------------------------------------------------------------------------------------


def test_a_creator_cannot_set_a_status_that_is_a_subresource(cluster: Cluster) -> None:
    made = cluster.create(QUEUE, queue("status-at-creation").state("Closed"))
    cluster.delete(QUEUE, Key("", "status-at-creation"))
    assert "status" not in made


def test_a_node_registers_with_its_status(cluster: Cluster) -> None:
    made = cluster.create(NODE, node("registers").cpu(4))
    cluster.delete(NODE, Key("", "registers"))
    assert made["status"]["allocatable"]["cpu"] == "4"


def test_a_main_write_leaves_the_status(cluster: Cluster, ns: str) -> None:
    cluster.create(POD, pod("p", ns))
    patched = cluster.patch(POD, Key(ns, "p"), {"metadata": {"labels": {"a": "b"}}, "status": {"phase": "Running"}})
    assert patched["status"]["phase"] == "Pending"


def test_a_status_write_of_a_custom_kind_leaves_all_else(cluster: Cluster) -> None:
    cluster.create(QUEUE, queue("status-only"))
    patch = {"metadata": {"labels": {"a": "b"}}, "spec": {"weight": 9}, "status": {"state": "Open"}}
    patched = cluster.patch(QUEUE, Key("", "status-only"), patch, subresource="status")
    cluster.delete(QUEUE, Key("", "status-only"))
    seen = (patched["status"]["state"], patched["metadata"].get("labels"), patched["spec"]["weight"])
    assert seen == ("Open", None, 1)


def test_a_status_write_of_a_core_kind_takes_labels_along(cluster: Cluster, ns: str) -> None:
    cluster.create(POD, pod("p", ns))
    patch = {"metadata": {"labels": {"a": "b"}}, "spec": {"schedulerName": "x"}, "status": {"phase": "Running"}}
    patched = cluster.patch(POD, Key(ns, "p"), patch, subresource="status")
    seen = (patched["status"]["phase"], patched["metadata"].get("labels"), patched["spec"]["schedulerName"] == "x")
    assert seen == ("Running", {"a": "b"}, False)


@pytest.mark.parametrize(("kind", "made"), [(POD, pod), (JOB, job)], ids=["core", "custom"])
def test_a_uid_in_a_status_patch_is_a_precondition(
    cluster: Cluster, ns: str, kind: Kind, made: Callable[[str, str], Json]
) -> None:
    cluster.create(kind, made("x", ns))
    patch = {"metadata": {"uid": "11111111-2222-4333-8444-555555555555"}, "status": {}}
    with pytest.raises(Conflict):
        cluster.patch(kind, Key(ns, "x"), patch, subresource="status")


def test_a_status_patch_for_the_right_uid_is_carried_out(cluster: Cluster, ns: str) -> None:
    uid = cluster.create(JOB, job("j", ns))["metadata"]["uid"]
    patched = cluster.patch(JOB, Key(ns, "j"), {"metadata": {"uid": uid}, "status": {"retryCount": 2}}, subresource="status")
    assert patched["status"]["retryCount"] == 2


def test_a_podgroup_is_created_with_its_status(cluster: Cluster, ns: str) -> None:
    assert cluster.create(POD_GROUP, podgroup("g", ns).phase("Inqueue"))["status"]["phase"] == "Inqueue"


def test_spec_and_status_of_a_podgroup_are_written_together(cluster: Cluster, ns: str) -> None:
    cluster.create(POD_GROUP, podgroup("g", ns).members(1))
    patched = cluster.patch(POD_GROUP, Key(ns, "g"), {"spec": {"minMember": 2}, "status": {"phase": "Running"}})
    assert (patched["spec"]["minMember"], patched["status"]["phase"]) == (2, "Running")


def test_a_podgroup_has_no_status_subresource(cluster: Cluster, ns: str) -> None:
    cluster.create(POD_GROUP, podgroup("g", ns))
    with pytest.raises(NotFound, match=r'podgroups.scheduling.volcano.sh "g" not found'):
        cluster.patch(POD_GROUP, Key(ns, "g"), {"status": {"phase": "Running"}}, subresource="status")


def test_nor_has_a_priority_class(cluster: Cluster) -> None:
    with pytest.raises(NotFound, match="the server could not find the requested resource"):
        cluster.patch(PRIORITY_CLASS, Key("", "system-node-critical"), {"status": {}}, subresource="status")


# --- delete -----------------------------------------------------------------------------------------------------------


def test_what_is_deleted_is_gone(cluster: Cluster, ns: str) -> None:
    cluster.create(CONFIG_MAP, config_map("c", ns))
    cluster.delete(CONFIG_MAP, Key(ns, "c"))
    with pytest.raises(NotFound):
        cluster.get(CONFIG_MAP, Key(ns, "c"))


def test_deleting_twice_is_not_found(cluster: Cluster, ns: str) -> None:
    cluster.create(CONFIG_MAP, config_map("c", ns))
    cluster.delete(CONFIG_MAP, Key(ns, "c"))
    with pytest.raises(NotFound, match='configmaps "c" not found'):
        cluster.delete(CONFIG_MAP, Key(ns, "c"))


def test_a_namesake_is_not_deleted(cluster: Cluster, ns: str) -> None:
    cluster.create(CONFIG_MAP, config_map("c", ns))
    with pytest.raises(Conflict, match=r"the UID in the precondition \(1.*5\) does not match the UID in record"):
        cluster.delete(CONFIG_MAP, Key(ns, "c"), uid="11111111-2222-4333-8444-555555555555")


def test_a_dry_run_deletes_nothing(cluster: Cluster, ns: str) -> None:
    made = cluster.create(CONFIG_MAP, config_map("c", ns))
    cluster.delete(CONFIG_MAP, Key(ns, "c"), dry_run=True)
    assert cluster.get(CONFIG_MAP, Key(ns, "c")) == made


def test_a_finalizer_holds_what_is_deleted(cluster: Cluster, ns: str) -> None:
    held = config_map("c", ns)
    held["metadata"]["finalizers"] = ["example.test/hold"]
    cluster.create(CONFIG_MAP, held)
    cluster.delete(CONFIG_MAP, Key(ns, "c"))
    assert "deletionTimestamp" in cluster.get(CONFIG_MAP, Key(ns, "c"))["metadata"]


def test_it_goes_with_its_last_finalizer(cluster: Cluster, ns: str) -> None:
    held = config_map("c", ns)
    held["metadata"]["finalizers"] = ["example.test/hold"]
    cluster.create(CONFIG_MAP, held)
    cluster.delete(CONFIG_MAP, Key(ns, "c"))
    cluster.patch(CONFIG_MAP, Key(ns, "c"), {"metadata": {"finalizers": None}})
    with pytest.raises(NotFound):
        cluster.get(CONFIG_MAP, Key(ns, "c"))


def test_no_finalizer_is_added_to_what_is_being_deleted(cluster: Cluster, ns: str) -> None:
    held = config_map("c", ns)
    held["metadata"]["finalizers"] = ["example.test/hold"]
    cluster.create(CONFIG_MAP, held)
    cluster.delete(CONFIG_MAP, Key(ns, "c"))
    with pytest.raises(Invalid, match="no new finalizers can be added if the object is being deleted"):
        cluster.patch(CONFIG_MAP, Key(ns, "c"), {"metadata": {"finalizers": ["example.test/hold", "example.test/more"]}})
