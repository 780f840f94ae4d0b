"""Contract: what owners leave behind when they go."""

from __future__ import annotations

import pytest

from extender.api.errors import Denied
from extender.api.meta import CONFIG_MAP, NAMESPACE, POD, REPLICA_SET, Json, Key
from extender.cluster.clock import VirtualClock
from extender.cluster.memory import MemoryCluster
from extender.cluster.port import AdmissionRequest, Cluster
from extender.testing.builders import Built, pod
from tests.cluster.conftest import Becomes


def config_map(cluster: Cluster, ns: str, name: str, *owners: Json, block: bool = False) -> Json:
    built = Built(CONFIG_MAP, name, ns)
    references = [
        {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
         "uid": owner["metadata"]["uid"], "blockOwnerDeletion": block}
        for owner in owners
    ]  # fmt: skip
    if references:
        built["metadata"]["ownerReferences"] = references
    return cluster.create(CONFIG_MAP, built)


def there(cluster: Cluster, ns: str) -> set[str]:
    return {each["metadata"]["name"] for each in cluster.list(CONFIG_MAP, ns).objects} - {"kube-root-ca.crt"}


def owners_of(cluster: Cluster, ns: str) -> list[str]:
    """Names of those of the dependent."""
    references = cluster.get(CONFIG_MAP, Key(ns, "dependent"))["metadata"].get("ownerReferences") or ()
    return [reference["name"] for reference in references]


def test_dependents_go_with_their_owner(cluster: Cluster, ns: str, becomes: Becomes) -> None:
    owner = config_map(cluster, ns, "owner")
    config_map(cluster, ns, "dependent", owner)
    cluster.delete(CONFIG_MAP, Key(ns, "owner"))
    becomes(lambda: there(cluster, ns), set())


def test_and_theirs(cluster: Cluster, ns: str, becomes: Becomes) -> None:
    owner = config_map(cluster, ns, "owner")
    child = config_map(cluster, ns, "child", owner)
    config_map(cluster, ns, "grandchild", child)
    cluster.delete(CONFIG_MAP, Key(ns, "owner"))
    becomes(lambda: there(cluster, ns), set())


def test_another_living_owner_keeps_a_dependent(cluster: Cluster, ns: str, becomes: Becomes) -> None:
    owners = [config_map(cluster, ns, name) for name in ("one", "other")]
    config_map(cluster, ns, "dependent", *owners)
    cluster.delete(CONFIG_MAP, Key(ns, "one"))
    becomes(lambda: owners_of(cluster, ns), ["other"])


def test_it_goes_with_the_last_of_them(cluster: Cluster, ns: str, becomes: Becomes) -> None:
    owners = [config_map(cluster, ns, name) for name in ("one", "other")]
    config_map(cluster, ns, "dependent", *owners)
    cluster.delete(CONFIG_MAP, Key(ns, "one"))
    cluster.delete(CONFIG_MAP, Key(ns, "other"))
    becomes(lambda: there(cluster, ns), set())


def test_orphans_are_kept_and_set_free(cluster: Cluster, ns: str, becomes: Becomes) -> None:
    owner = config_map(cluster, ns, "owner")
    config_map(cluster, ns, "dependent", owner)
    cluster.delete(CONFIG_MAP, Key(ns, "owner"), propagation="Orphan")
    becomes(lambda: (there(cluster, ns), owners_of(cluster, ns)), ({"dependent"}, []))


def test_in_the_foreground_the_owner_waits_for_who_blocks_it(cluster: Cluster, ns: str, becomes: Becomes) -> None:
    owner = config_map(cluster, ns, "owner")
    config_map(cluster, ns, "dependent", owner, block=True)
    cluster.patch(CONFIG_MAP, Key(ns, "dependent"), {"metadata": {"finalizers": ["example.test/hold"]}})
    cluster.delete(CONFIG_MAP, Key(ns, "owner"), propagation="Foreground")
    becomes(lambda: "deletionTimestamp" in cluster.get(CONFIG_MAP, Key(ns, "dependent"))["metadata"], True)
    assert cluster.get(CONFIG_MAP, Key(ns, "owner"))["metadata"]["finalizers"] == ["foregroundDeletion"]


def test_and_goes_after_them(cluster: Cluster, ns: str, becomes: Becomes) -> None:
    owner = config_map(cluster, ns, "owner")
    config_map(cluster, ns, "dependent", owner, block=True)
    cluster.delete(CONFIG_MAP, Key(ns, "owner"), propagation="Foreground")
    becomes(lambda: there(cluster, ns), set())


def test_a_namespace_takes_everything_with_it(cluster: Cluster, ns: str, becomes: Becomes) -> None:
    config_map(cluster, ns, "c")
    cluster.create(POD, pod("p", ns))
    cluster.delete(NAMESPACE, Key("", ns))
    becomes(lambda: ns in {each["metadata"]["name"] for each in cluster.list(NAMESPACE).objects}, False)


def test_nothing_new_comes_into_a_namespace_that_goes(cluster: Cluster, ns: str) -> None:
    cluster.create(POD, pod("p", ns).with_("metadata.finalizers", ["example.test/hold"]))
    cluster.delete(NAMESPACE, Key("", ns))
    with pytest.raises(Denied, match="because it is being terminated"):
        cluster.create(POD, pod("late", ns))
    cluster.patch(POD, Key(ns, "p"), {"metadata": {"finalizers": None}})


# --- the embedded cluster's own ----------------------------------------------------------------------------------------


def test_an_owner_that_never_was_is_not_missed(memory: MemoryCluster) -> None:
    stranger = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "rs", "uid": "nobody"}}
    memory.create(POD, pod("p").owned_by(stranger))
    memory.settle()
    assert memory.get(POD, Key("default", "p"))["metadata"]["name"] == "p"


def test_a_settled_cluster_has_nothing_to_do(memory: MemoryCluster) -> None:
    owner = config_map(memory, "default", "owner")
    config_map(memory, "default", "dependent", owner)
    memory.delete(CONFIG_MAP, Key("default", "owner"))
    memory.settle()
    assert memory.settle() == 0


class KeepsConfigMaps:
    """Admission that lets no ConfigMap go."""

    def mutate(self, request: AdmissionRequest) -> Json | None:
        return request.object

    def validate(self, request: AdmissionRequest) -> None:
        if request.operation == "DELETE" and request.kind == CONFIG_MAP:
            raise Denied("kept")


def test_what_admission_keeps_stays(clock: VirtualClock) -> None:
    memory = MemoryCluster(clock, KeepsConfigMaps())
    built = Built(REPLICA_SET, "rs")
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "example.test/app:1"}]}}
    built["spec"] = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    owner = memory.create(REPLICA_SET, built)
    config_map(memory, "default", "dependent", owner)
    memory.delete(REPLICA_SET, Key("default", "rs"))
    memory.settle()
    assert there(memory, "default") == {"dependent"}
