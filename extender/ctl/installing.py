"""What a cluster needs before anything of ours can run on it: made where it is missing, removed again.

Whatever is made here carries the label app.kubernetes.io/managed-by with the name of the command, and nothing else is ever
changed or removed. What others have installed is used as it is found."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import yaml

from extender.api.errors import AlreadyExists, NotFound, PumiceError
from extender.api.meta import KINDS, NAMESPACE, POD, QUEUE, Json, Key, Kind, key_of, labels_of
from extender.cluster.first_queues import first_queues
from extender.cluster.manifests import folder
from extender.cluster.port import Cluster

CRD = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
MANAGED_BY = "app.kubernetes.io/managed-by"
PATIENCE = 30.0  # seconds for a kind to be served
_LOOK = 0.1
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class NotInstalled(PumiceError):
    """Something that is needed did not come about."""


@dataclass(frozen=True, slots=True)
class Installed:
    """`how`: made, changed (an older one of ours) or found."""

    kind: Kind
    key: Key
    how: str

    @property
    def made(self) -> bool:
        return self.how == "made"


class Held(NamedTuple):
    """A CRD or namespace that we brought, and how many objects of others go with it."""

    of: str
    objects: int


def crds() -> list[Json]:
    return [yaml.load(file.read_bytes(), Loader=_LOADER) for file in sorted((folder() / "crds").glob("*_*.yaml"))]


def install(cluster: Cluster, kind: Kind, wanted: Json, owner: str) -> Installed:
    """Make the object, or bring an earlier one of `owner` up to date."""
    key = key_of(wanted)
    meta = {**wanted["metadata"], "labels": {**labels_of(wanted), MANAGED_BY: owner}}
    try:
        cluster.create(kind, {**wanted, "metadata": meta})
    except AlreadyExists:
        found = cluster.get(kind, key)
        if labels_of(found).get(MANAGED_BY) != owner:
            return Installed(kind, key, "found")
        body = {name: part for name, part in wanted.items() if name not in ("apiVersion", "kind", "metadata", "status")}
        patched = cluster.patch(kind, key, body)
        same = patched["metadata"]["resourceVersion"] == found["metadata"]["resourceVersion"]
        return Installed(kind, key, "found" if same else "changed")
    return Installed(kind, key, "made")


def install_crds(cluster: Cluster, owner: str) -> list[Installed]:
    """Returns when all of them are served. Raises NotInstalled."""
    installed = [install(cluster, CRD, wanted, owner) for wanted in crds()]
    deadline = time.monotonic() + PATIENCE
    for each in installed:
        while not _established(cluster.get(CRD, each.key)):
            if time.monotonic() > deadline:
                raise NotInstalled(f"the CRD {each.key} is not served after {PATIENCE:.0f} s; see its status")
            time.sleep(_LOOK)
    return installed


def install_queues(cluster: Cluster, owner: str) -> list[Installed]:
    return [install(cluster, QUEUE, wanted, owner) for wanted in first_queues()]


def remove(cluster: Cluster, kind: Kind, key: Key) -> bool:
    """False where it is gone already."""
    try:
        cluster.delete(kind, key)
    except NotFound:
        return False
    return True


def made_by(cluster: Cluster, kind: Kind, owner: str) -> list[Key]:
    """What carries the owner's label and is not going already; nothing where the kind is not served."""
    try:
        found = cluster.list(kind, label_selector=f"{MANAGED_BY}={owner}").objects
    except NotFound:
        return []
    return [key_of(obj) for obj in found if "deletionTimestamp" not in obj["metadata"]]


def held(cluster: Cluster, names: Iterable[str], owner: str) -> Iterator[Held]:
    """Objects of the kinds that would go with their CRDs, but for those that `owner` has made itself."""
    by_crd = {f"{kind.plural}.{kind.group}": kind for kind in KINDS}
    for name in names:
        kind = by_crd[name]
        try:
            objects = [obj for obj in cluster.list(kind).objects if labels_of(obj).get(MANAGED_BY) != owner]
        except NotFound:
            continue
        if objects:
            yield Held(name, len(objects))


def pods_in_ours(cluster: Cluster, owner: str) -> Iterator[Held]:
    """Pods in namespaces that `owner` has made."""
    for key in made_by(cluster, NAMESPACE, owner):
        pods = cluster.list(POD, key.name).objects
        if pods:
            yield Held(f"namespace {key.name}", len(pods))


def _established(crd: Json) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)
