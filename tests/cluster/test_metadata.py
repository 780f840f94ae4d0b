"""Contract: what the server itself says in `metadata`, and what it refuses there."""

from __future__ import annotations

import pytest

from extender.api.errors import Invalid
from extender.api.meta import CONFIG_MAP, POD, POD_GROUP, QUEUE, Json, Key, Kind
from extender.cluster.port import Cluster
from extender.testing.builders import Built, pod, podgroup, queue


def test_an_object_gets_a_uid_of_its_own(cluster: Cluster, ns: str) -> None:
    asked = pod("p", ns).uid("mine")
    assert cluster.create(POD, asked)["metadata"]["uid"] not in ("", "mine")


def test_a_namesake_has_another_uid(cluster: Cluster, ns: str) -> None:
    first = cluster.create(POD, pod("p", ns))["metadata"]["uid"]
    cluster.delete(POD, Key(ns, "p"))
    assert cluster.create(POD, pod("p", ns))["metadata"]["uid"] != first


def test_versions_rise(cluster: Cluster, ns: str) -> None:
    made = cluster.create(POD, pod("p", ns))
    patched = cluster.patch(POD, Key(ns, "p"), {"metadata": {"labels": {"a": "b"}}})
    assert int(patched["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])


def test_a_write_that_changes_nothing_is_none(cluster: Cluster, ns: str) -> None:
    made = cluster.create(POD, pod("p", ns).labels(a="b"))
    patched = cluster.patch(POD, Key(ns, "p"), {"metadata": {"labels": {"a": "b"}}})
    assert patched["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


def test_a_generation_begins_at_one(cluster: Cluster, ns: str) -> None:
    assert cluster.create(POD_GROUP, podgroup("g", ns))["metadata"]["generation"] == 1


def test_a_change_of_the_spec_is_a_generation(cluster: Cluster, ns: str) -> None:
    cluster.create(POD_GROUP, podgroup("g", ns).members(1))
    assert cluster.patch(POD_GROUP, Key(ns, "g"), {"spec": {"minMember": 2}})["metadata"]["generation"] == 2


def test_a_change_of_the_metadata_is_not(cluster: Cluster, ns: str) -> None:
    cluster.create(POD_GROUP, podgroup("g", ns))
    assert cluster.patch(POD_GROUP, Key(ns, "g"), {"metadata": {"labels": {"a": "b"}}})["metadata"]["generation"] == 1


def test_a_change_of_a_status_without_subresource_is(cluster: Cluster, ns: str) -> None:
    """PodGroups count status writes: their status is no subresource."""
    cluster.create(POD_GROUP, podgroup("g", ns))
    assert cluster.patch(POD_GROUP, Key(ns, "g"), {"status": {"phase": "Running"}})["metadata"]["generation"] == 2


def test_a_change_of_a_status_subresource_is_not(cluster: Cluster) -> None:
    cluster.create(QUEUE, queue("generations"))
    patched = cluster.patch(QUEUE, Key("", "generations"), {"status": {"state": "Open"}}, subresource="status")
    cluster.delete(QUEUE, Key("", "generations"))
    assert patched["metadata"]["generation"] == 1


def test_the_generation_cannot_be_set(cluster: Cluster, ns: str) -> None:
    cluster.create(POD, pod("p", ns))
    assert cluster.patch(POD, Key(ns, "p"), {"metadata": {"generation": 7}})["metadata"]["generation"] == 1


def test_the_time_of_creation_stays(cluster: Cluster, ns: str) -> None:
    made = cluster.create(POD, pod("p", ns))["metadata"]["creationTimestamp"]
    patched = cluster.patch(POD, Key(ns, "p"), {"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z"}})
    assert patched["metadata"]["creationTimestamp"] == made


def test_a_deletion_does_not_begin_by_a_write(cluster: Cluster, ns: str) -> None:
    cluster.create(POD, pod("p", ns))
    with pytest.raises(Invalid, match=r"metadata.deletionTimestamp: Invalid value: .*: field is immutable"):
        cluster.patch(POD, Key(ns, "p"), {"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}})


def test_its_time_stays_once_it_has_begun(cluster: Cluster, ns: str) -> None:
    cluster.create(POD, pod("p", ns).with_("metadata.finalizers", ["example.test/hold"]))
    cluster.delete(POD, Key(ns, "p"))
    begun = cluster.get(POD, Key(ns, "p"))["metadata"]["deletionTimestamp"]
    patched = cluster.patch(POD, Key(ns, "p"), {"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}})
    cluster.patch(POD, Key(ns, "p"), {"metadata": {"finalizers": None}})
    assert patched["metadata"]["deletionTimestamp"] == begun


NAMES = {
    "upper case": "Pod",
    "underscore": "a_b",
    "ends in a dash": "a-",
    "too long": "a" * 254,
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_names_are_dns_subdomains(cluster: Cluster, ns: str, name: str) -> None:
    with pytest.raises(Invalid) as refused:
        cluster.create(POD, pod(name, ns))
    assert refused.value.faults[0].path == "metadata.name"


LABELS = {
    "value with a space": {"a": "b c"},
    "value too long": {"a": "b" * 64},
    "key with two slashes": {"a/b/c": "d"},
    "prefix in upper case": {"Example.test/a": "b"},
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_labels_are_checked(cluster: Cluster, ns: str, labels: dict[str, str]) -> None:
    with pytest.raises(Invalid) as refused:
        cluster.create(POD, pod("p", ns).labels(labels))
    assert refused.value.faults[0].path == "metadata.labels"


def test_an_owner_has_a_uid(cluster: Cluster, ns: str) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c"}
    with pytest.raises(Invalid) as refused:
        cluster.create(POD, pod("p", ns).with_("metadata.ownerReferences", [owner]))
    assert refused.value.faults[0].path == "metadata.ownerReferences.uid"


def test_only_one_owner_controls(cluster: Cluster, ns: str) -> None:
    owners = [cluster.create(CONFIG_MAP, Built(CONFIG_MAP, name, ns)) for name in ("a", "b")]
    with pytest.raises(Invalid, match="Only one reference can have Controller set to true"):
        cluster.create(POD, pod("p", ns).owned_by(owners[0]).owned_by(owners[1]))


PREFIXES = {"a-": True, "a--": True, "A-": True, "-": False, "Ab-": False, "-a-": False}


@pytest.mark.parametrize(("prefix", "taken"), PREFIXES.items())
def test_what_a_generated_name_begins_with_is_checked_beside_a_name(cluster: Cluster, ns: str, prefix: str, taken: bool) -> None:
    asked = podgroup("g", ns)
    asked["metadata"]["generateName"] = prefix
    assert fields_refused(cluster, POD_GROUP, asked) == ([] if taken else ["metadata.generateName"])


@pytest.mark.parametrize(
    ("kind", "finalizers", "taken"),
    [
        (POD_GROUP, ["mine"], True), (POD_GROUP, ["example.test/mine"], True), (POD_GROUP, ["a b"], False),
        (POD_GROUP, ["foregroundDeletion", "orphan"], False), (POD, ["mine"], False), (POD, ["orphan"], True),
    ],
)  # fmt: skip
def test_finalizers_are_names(cluster: Cluster, ns: str, kind: Kind, finalizers: list[str], taken: bool) -> None:
    asked = pod("p", ns) if kind == POD else podgroup("p", ns)
    asked["metadata"]["finalizers"] = finalizers
    assert fields_refused(cluster, kind, asked) == ([] if taken else [f"metadata.finalizers{'[0]' if kind == POD else ''}"])


def test_a_null_in_the_metadata_counts_as_not_written(cluster: Cluster, ns: str) -> None:
    asked = podgroup("g", ns)
    asked["metadata"] |= dict.fromkeys(("uid", "generateName", "labels", "finalizers", "creationTimestamp"))
    assert cluster.create(POD_GROUP, asked, dry_run=True)["metadata"]["name"] == "g"
    assert fields_refused(cluster, POD_GROUP, {**asked, "metadata": {"namespace": ns, "name": None}}) == ["metadata.name"]


def test_faults_of_the_metadata_do_not_hide_those_of_the_rest(cluster: Cluster, ns: str) -> None:
    asked = podgroup("A_B", ns).labels(a="b c").members(1)
    asked["spec"]["networkTopology"] = {"mode": "harsh"}
    assert fields_refused(cluster, POD_GROUP, asked) == ["metadata.labels", "metadata.name", "spec.networkTopology.mode"]


def fields_refused(cluster: Cluster, kind: Kind, asked: Json) -> list[str]:
    try:
        cluster.create(kind, asked, dry_run=True)
    except Invalid as error:
        return sorted({fault.path for fault in error.faults if fault.path != "<nil>"})  # what CEL has to add has no field
    return []
