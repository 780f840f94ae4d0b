"""Each component may do what its code asks for, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from extender.api.meta import CONFIG_MAP, KINDS, Json
from tests.manifests import needs
from tests.manifests.needs import Named, Need
from tests.manifests.reading import MANIFESTS, documents, installed, of_kind

SETTINGS = {Named(need, "volcano-controller-configmap") for need in needs.followed(CONFIG_MAP)}
WANTED: dict[str, set[Need | Named]] = {
    "scheduler": {*needs.scheduler(), *needs.lease("volcano")},
    "controllers": {*needs.controllers(), *needs.lease("vc-controller-manager"), *SETTINGS},
    "admission": {*needs.admission()},
    "certs": {*needs.certificates(), *needs.lease("vc-certs")},
    "extender": {*needs.extender(), *needs.lease("vc-extender")},
}


def granted(objs: Iterable[Json]) -> set[Need | Named]:
    """What the rules of all roles allow."""
    found: set[Need | Named] = set()
    for obj in objs:
        for rule in obj.get("rules", ()):
            plain = {Need(group, resource, verb) for group in rule["apiGroups"] for resource in rule["resources"]
                     for verb in rule["verbs"]}  # fmt: skip
            names = rule.get("resourceNames")
            found |= {Named(need, name) for need in plain for name in names} if names else plain
    return found


@pytest.mark.parametrize("component", WANTED)
def test_a_component_may_do_what_it_does_and_no_more(component: str) -> None:
    have, want = granted(objects_of(component)), WANTED[component]
    assert (sorted(map(str, want - have)), sorted(map(str, have - want))) == ([], [])


def test_sharding_needs_more_only_where_it_is_on() -> None:
    have = {program: granted(documents((MANIFESTS / "components" / "sharding" / f"{program}.yaml").read_text()))
            for program in ("controllers", "scheduler")}  # fmt: skip
    more = needs.controllers(("*",)) - needs.controllers()
    assert have["controllers"] == {*more, *needs.followed(CONFIG_MAP)}  # two ConfigMaps are followed by following all
    assert have["scheduler"] == needs.scheduler(sharding=True) - needs.scheduler()


@pytest.mark.parametrize("component", WANTED)
def test_nothing_is_allowed_by_a_wildcard(component: str) -> None:
    assert "*" not in {word for obj in objects_of(component) for rule in obj.get("rules", ())
                       for field in rule.values() for word in field}  # fmt: skip


@pytest.mark.parametrize("component", WANTED)
def test_every_role_is_bound_to_the_account_of_its_component(component: str) -> None:
    objs = objects_of(component)
    (account,) = [name for name in of_kind([*installed(), *objs], "ServiceAccount") if name.endswith(component)]
    roles = {(obj["kind"], obj["metadata"]["name"]) for obj in objs if obj["kind"] in ("Role", "ClusterRole")}
    bindings = [obj for obj in objs if obj["kind"] in ("RoleBinding", "ClusterRoleBinding")]
    assert {(each["roleRef"]["kind"], each["roleRef"]["name"]) for each in bindings} == roles
    subject = {"kind": "ServiceAccount", "name": account, "namespace": "volcano-system"}
    assert all(each["subjects"] == [subject] for each in bindings)


def test_people_may_edit_what_is_namespaced_and_see_everything_of_ours() -> None:
    roles = of_kind(objects_of("people"), "ClusterRole")
    ours = [kind for kind in KINDS if kind.group.endswith("volcano.sh")]
    seen = {(need.group, need.resource) for need in granted([roles["volcano-view"]]) if isinstance(need, Need)}
    assert {(kind.group, kind.plural) for kind in ours} <= seen
    edited = {(need.group, need.resource) for need in granted([roles["volcano-edit"]]) if isinstance(need, Need)}
    assert edited == {(kind.group, kind.plural) for kind in ours if kind.namespaced and kind.name != "ColocationConfiguration"}


def test_people_get_theirs_through_the_roles_that_every_cluster_has() -> None:
    roles = of_kind(objects_of("people"), "ClusterRole")
    prefix = "rbac.authorization.k8s.io/aggregate-to-"
    into = {name: {label.removeprefix(prefix) for label in role["metadata"]["labels"] if label.startswith(prefix)}
            for name, role in roles.items()}  # fmt: skip
    assert into == {"volcano-view": {"view", "edit", "admin"}, "volcano-edit": {"edit", "admin"}}


def objects_of(component: str) -> list[Json]:
    return documents((MANIFESTS / ("kube-scheduler" if component == "extender" else "rbac") / f"{component}.yaml").read_text())
