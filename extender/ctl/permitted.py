"""May whoever runs `pumice up` do all that it does? Asked before anything is made, so that nothing is left half done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import yaml

from extender.api.errors import ClusterError, PumiceError
from extender.api.meta import DEPLOYMENT, MUTATING_WEBHOOKS, NAMESPACE, QUEUE, VALIDATING_WEBHOOKS, Json, Kind
from extender.cluster.manifests import folder
from extender.cluster.port import Cluster
from extender.ctl.installing import CRD

REVIEW = Kind("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False)
_PROGRAMS = ("scheduler", "controllers")
_INSTALLED = (CRD, QUEUE, NAMESPACE)
_WEBHOOKS = (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)
_SIDE_BY_SIDE = 8
_NAMED = 4  # resources that are named; of more it is said how many


class NotAllowed(PumiceError):
    """Some right is missing; the message names it."""


class Right(NamedTuple):
    """`resource`: with its subresource, `pods/binding`. `namespace`: "" for all, `name`: "" for any object."""

    group: str
    resource: str
    verb: str
    namespace: str = ""
    name: str = ""


def wanted(namespace: str, *, webhooks: bool) -> set[Right]:
    """To make what is missing, and what the programs ask for (manifests/rbac)."""
    made = (*_INSTALLED, *(_WEBHOOKS if webhooks else ()))
    rights = {Right(kind.group, kind.plural, verb) for kind in made for verb in ("create", "get", "patch")}
    rights.add(Right(DEPLOYMENT.group, DEPLOYMENT.plural, "list"))
    for program in _PROGRAMS:
        for role in yaml.safe_load_all((folder() / "rbac" / f"{program}.yaml").read_text()):
            rights.update(_of_role(role, namespace))
    return rights


def _of_role(role: Json, namespace: str) -> Iterator[Right]:
    where = namespace if role["kind"] == "Role" else ""
    for rule in role.get("rules", ()):
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                if not resource.endswith("/finalizers"):  # few clusters ask for it
                    yield from (Right(group, resource, verb, where, name) for verb in rule["verbs"]
                                for name in rule.get("resourceNames", ("",)))  # fmt: skip


def check(cluster: Cluster, rights: Iterable[Right]) -> None:
    """Raises NotAllowed. A cluster that does not tell is believed to allow."""
    listed = sorted(rights)
    with ThreadPoolExecutor(_SIDE_BY_SIDE) as asking:
        allowed = asking.map(lambda right: may(cluster, right), listed)
        missing = [right for right, yes in zip(listed, allowed, strict=True) if not yes]
    if missing:
        raise NotAllowed(f"nothing was made, for this user may not {_told(missing)}; what pumice up needs is in manifests/rbac, "
                         "and CRDs, queues and a namespace to make")  # fmt: skip


def may(cluster: Cluster, right: Right) -> bool:
    resource, _, part = right.resource.partition("/")
    asked = {"group": right.group, "resource": resource, "subresource": part, "verb": right.verb, "namespace": right.namespace,
             "name": right.name}  # fmt: skip
    try:
        answer = cluster.create(REVIEW, {"metadata": {}, "spec": {"resourceAttributes": asked}})
    except ClusterError as error:
        if error.status in (403, 404, 405):
            return True
        raise
    return bool(answer["status"].get("allowed"))


def _told(missing: Iterable[Right]) -> str:
    by_resource: dict[str, list[str]] = {}
    for right in missing:
        name = f"{right.resource}.{right.group}" if right.group else right.resource
        by_resource.setdefault(name, []).append(right.verb)
    said = [f"{', '.join(dict.fromkeys(verbs))} {name}" for name, verbs in by_resource.items()]
    more = f", and more of {len(said) - _NAMED} other kinds" if len(said) > _NAMED else ""
    return "; ".join(said[:_NAMED]) + more
