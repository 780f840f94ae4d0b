"""The parts of admission one by one: patches, graphs, comparison, configuration, the chain."""

from __future__ import annotations

from typing import Any

import pytest

from extender.api.decode import decode, differences
from extender.api.errors import ConfError, Denied
from extender.api.meta import JOB, NAMESPACE, POD_GROUP, QUEUE, Json, Key
from extender.api.operations import Delete
from extender.api.shapes import REQUIRED
from extender.cluster.clock import VirtualClock
from extender.cluster.memory import MemoryCluster
from extender.cluster.port import AdmissionRequest
from webhook import admission, shapes
from webhook.admission import WebhookAdmission
from webhook.graph import cycle
from webhook.pods.groups import resource_groups
from webhook.routes import BY_PATH, ROUTES, Route, enabled_paths
from webhook.settings import Settings
from webhook.verdict import Allow, json_patch

PATCHES = {
    "a changed field is one replace": ({"a": 1, "b": 2}, {"a": 1, "b": 3}, [("replace", "/b", 3)]),
    "a new field is added": ({}, {"a": {"b": 1}}, [("add", "/a", {"b": 1})]),
    "a lost field is removed": ({"a": 1}, {}, [("remove", "/a", None)]),
    "~ and / are escaped": ({"m~n/o": 1}, {"m~n/o": 2}, [("replace", "/m~0n~1o", 2)]),
    "an item in front is one add": ({"l": [2, 3]}, {"l": [1, 2, 3]}, [("add", "/l/0", 1)]),
    "an item at the end is one add": ({"l": [1]}, {"l": [1, 2]}, [("add", "/l/1", 2)]),
    "items are removed from the back": ({"l": [1, 2, 3, 4]}, {"l": [1, 4]}, [("remove", "/l/2", None), ("remove", "/l/1", None)]),
    "a field of an item is changed in place": ({"l": [{"a": 1, "b": 1}]}, {"l": [{"a": 2, "b": 1}]}, [("replace", "/l/0/a", 2)]),
    "true is not 1": ({"a": 1}, {"a": True}, [("replace", "/a", True)]),
    "null is a value": ({"a": 1}, {"a": None}, [("replace", "/a", None)]),
}


@pytest.mark.parametrize(("before", "after", "steps"), PATCHES.values(), ids=PATCHES)
def test_the_smallest_patch(before: Json, after: Json, steps: list[Any]) -> None:
    """One operation for one change, at the deepest place."""
    assert [(step["op"], step["path"], step.get("value")) for step in json_patch(before, after)] == steps


GRAPHS: dict[str, tuple[dict[str, list[str]], list[str]]] = {
    "a diamond is no ring": ({"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}, []),
    "one that waits for itself": ({"a": ["a"]}, ["a", "a"]),
    "the ring without the way to it": ({"x": ["a"], "a": ["b"], "b": ["a"]}, ["a", "b", "a"]),
    "names that are not there end the way": ({"a": ["ghost"]}, []),
    "a long chain": ({str(n): [str(n + 1)] for n in range(20_000)}, []),
}


@pytest.mark.parametrize(("needs", "ring"), GRAPHS.values(), ids=GRAPHS)
def test_rings(needs: dict[str, list[str]], ring: list[str]) -> None:
    assert cycle(needs) == ring


def test_a_dense_graph_is_searched_in_linear_time() -> None:
    """Each of 300 waits for all before it; a search along every way would never end."""
    assert cycle({str(n): [str(m) for m in range(n)] for n in range(300)}) == []


CHANGES = {
    "the same amount in other words": ({"spec": {"deserved": {"cpu": "1"}}}, {"spec": {"deserved": {"cpu": 1000e-3}}}, []),
    "an empty list is a missing one": ({"spec": {}}, {"spec": {"extendClusters": []}}, []),
    "a zero is a missing number": ({"spec": {"weight": 0}}, {"spec": {}}, []),
    "false is not missing where it matters": ({"spec": {"reclaimable": False}}, {"spec": {}}, ["spec.reclaimable"]),
    "the deepest field is named": ({"spec": {"affinity": {"nodeGroupAffinity": {}}}},
                                   {"spec": {"affinity": {"nodeGroupAffinity": {REQUIRED: ["a"]}}}},
                                   [f"spec.affinity.nodeGroupAffinity.{REQUIRED}"]),
    "none of a resource is not its absence": ({"spec": {"deserved": {"cpu": "0"}}}, {"spec": {}}, ["spec.deserved.cpu"]),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "fields"), CHANGES.values(), ids=CHANGES)
def test_what_counts_as_a_change(old: Json, new: Json, fields: list[str]) -> None:
    before, after = (decode(obj, shapes.QUEUE)[0] for obj in (old, new))
    assert list(differences(before, after, shapes.QUEUE)) == fields


def test_a_broken_admission_configuration_names_the_fields() -> None:
    text = "resourceGroups: [{resourceGroup: 1, labels: [a], object: {value: x}}]"
    with pytest.raises(ConfError, match=r"resourceGroups\[0\]\.resourceGroup: .*; .*labels: .*; .*object\.value: "):
        resource_groups(text)


def test_an_affinity_that_is_not_json_is_passed_over() -> None:
    """As upstream: the rest of the group still applies."""
    (group,) = resource_groups("resourceGroups: [{resourceGroup: g, affinity: '{', labels: {a: b}}]")
    assert (group.affinity, group.labels) == (None, {"a": "b"})


def test_paths_are_trimmed_and_an_empty_value_serves_nothing() -> None:
    assert enabled_paths(" /jobs/mutate , /pods/validate") == ("/jobs/mutate", "/pods/validate")
    assert enabled_paths("") == ()


def test_an_unknown_path_is_a_mistake() -> None:
    with pytest.raises(ConfError, match=r"'/job/mutate'; did you mean '/jobs/mutate'\?"):
        enabled_paths("/job/mutate")


# --- the chain ----------------------------------------------------------------------------------------------------------------
def world(**given: Any) -> MemoryCluster:
    cluster = MemoryCluster(VirtualClock())
    queues = {"root": {}, "default": {"parent": "root"}, "team": {"parent": "root"}}
    cluster.load([{"apiVersion": QUEUE.api_version, "kind": "Queue", "metadata": {"name": name}, "spec": spec,
                   "status": {"state": "Open"}} for name, spec in queues.items()])  # fmt: skip
    cluster.admission = WebhookAdmission(cluster, Settings(**{"enabled": tuple(BY_PATH), **given}))
    return cluster


def group(name: str, **spec: Any) -> Json:
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": POD_GROUP.api_version, "kind": "PodGroup", "metadata": meta, "spec": spec}


def test_what_is_stored_is_what_mutation_made() -> None:
    cluster = world()
    cluster.patch(NAMESPACE, Key("", "default"), {"metadata": {"annotations": {"scheduling.volcano.sh/queue-name": "team"}}})
    assert cluster.create(POD_GROUP, group("g", minMember=1))["spec"]["queue"] == "team"


def test_only_enabled_paths_are_asked() -> None:
    cluster = world(enabled=("/jobs/validate",))
    assert cluster.create(POD_GROUP, group("g", queue="nowhere"))["spec"]["queue"] == "nowhere"


def test_an_operation_without_a_route_is_not_sent() -> None:
    """An API server asks only for what the webhook configuration lists; groups may be updated freely."""
    cluster = world()
    cluster.create(POD_GROUP, group("g", queue="team"))
    assert cluster.patch(POD_GROUP, Key("default", "g"), {"spec": {"queue": "nowhere"}})["spec"]["queue"] == "nowhere"


def test_a_denial_names_the_webhook_and_every_field() -> None:
    with pytest.raises(Denied, match=r'"validatepodgroup.volcano.sh" denied .*: spec.queue: .*; spec.minResources.cpu: '):
        world().create(POD_GROUP, group("g", queue="nowhere", minResources={"cpu": "-1"}))


@pytest.mark.parametrize(("dry_run", "times"), [(False, 1), (True, 0)])
def test_operations_are_carried_out_except_on_a_dry_run(dry_run: bool, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[Any] = []
    wish = Allow(operations=(Delete(JOB, Key("default", "old")),))
    route = Route("/jobs/mutate", "m", JOB, ("CREATE",), shapes.JOB, lambda *_: wish)
    monkeypatch.setattr(admission, "ROUTES", (route,))
    chain = WebhookAdmission(MemoryCluster(VirtualClock()), Settings(), done.append)
    chain.mutate(AdmissionRequest("CREATE", JOB, Key("default", "j"), {}, None, dry_run))
    assert len(done) == times


def test_the_table_is_what_the_webhook_configurations_say() -> None:
    """Mutations before validations of a kind, one row a path, names that end in the domain."""
    paths = [route.path for route in ROUTES]
    assert len(set(paths)) == len(paths) == 11
    assert all(paths.index(path) < paths.index(path.replace("mutate", "validate")) for path in paths if path.endswith("mutate"))
    assert all(route.name.endswith(".volcano.sh") for route in ROUTES)
