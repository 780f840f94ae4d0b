"""ResourceClaims of pods: made from templates, and given back once nobody uses them.

Source: kubernetes v1.36.1 pkg/controller/resourceclaim."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from extender.api.claim import FINALIZER
from extender.api.meta import (
    POD,
    RESOURCE_CLAIM,
    RESOURCE_CLAIM_TEMPLATE,
    Json,
    Key,
    Kind,
    annotations_of,
    controller_of,
    key_of,
    owner_reference,
    uid_of,
)
from extender.api.operations import Create, Delete, Operation, Patch, PatchStatus
from extender.cluster.apply import apply
from extender.cluster.clock import Clock
from extender.cluster.hearing import Hearing
from extender.cluster.port import Cluster
from extender.cluster.workloads import pods as p

POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"  # on a claim made from a template: which claim of the pod it is
_KINDS = (RESOURCE_CLAIM_TEMPLATE, RESOURCE_CLAIM, POD)


def claims_of_pod(pod: Json, owned: Iterable[Json], templates: Mapping[Key, Json]) -> list[Operation]:
    """Make the claims that a pod lacks and tell it their names; those of one that has ended go."""
    if p.ended(pod) or p.going(pod):
        return [Delete(RESOURCE_CLAIM, key_of(claim), uid_of(claim)) for claim in owned]
    made = {annotations_of(claim).get(POD_CLAIM_NAME): claim["metadata"]["name"] for claim in owned}
    listed = [claim for claim in pod["spec"]["resourceClaims"] if claim.get("resourceClaimTemplateName")]
    operations: list[Operation] = []
    for claim in listed:
        template = templates.get(Key(pod["metadata"]["namespace"], claim["resourceClaimTemplateName"]))
        if claim["name"] not in made and template is not None:
            operations.append(Create(RESOURCE_CLAIM, _from_template(template, pod, claim["name"])))
    shown = (pod.get("status") or {}).get("resourceClaimStatuses") or []
    names = [{"name": claim["name"], "resourceClaimName": made[claim["name"]]} for claim in listed if claim["name"] in made]
    if not operations and names and names != shown:
        operations.append(PatchStatus(POD, key_of(pod), {"status": {"resourceClaimStatuses": names}}, uid_of(pod)))
    return operations


def _from_template(template: Json, pod: Json, name: str) -> Json:
    spec = template["spec"]
    meta = spec.get("metadata") or {}
    metadata: Json = {
        "generateName": f"{pod['metadata']['name']}-{name}-",
        "namespace": pod["metadata"]["namespace"],
        "labels": dict(meta.get("labels") or {}),
        "annotations": {**(meta.get("annotations") or {}), POD_CLAIM_NAME: name},
        "ownerReferences": [owner_reference(pod)],
    }
    return {"apiVersion": RESOURCE_CLAIM.api_version, "kind": "ResourceClaim", "metadata": metadata, "spec": spec["spec"]}


def released(claim: Json, pods: Mapping[str, Json]) -> list[Operation]:
    """Who has ended or is gone uses the claim no more (`pods` by uid); with the last of them its devices are free, and it may
    be deleted."""
    status = claim.get("status") or {}
    reserved = status.get("reservedFor") or []
    users = [user for user in reserved if user.get("resource") != "pods" or _uses(pods.get(user["uid"]))]
    operations: list[Operation] = []
    if users != reserved:
        change: Json = {"reservedFor": users or None} | ({} if users else {"allocation": None})
        operations.append(PatchStatus(RESOURCE_CLAIM, key_of(claim), {"status": change}, uid_of(claim)))
    in_use = users or (status.get("allocation") and users == reserved and not p.going(claim))
    finalizers = claim["metadata"].get("finalizers") or []
    if FINALIZER in finalizers and not in_use:
        rest = [name for name in finalizers if name != FINALIZER]
        operations.append(Patch(RESOURCE_CLAIM, key_of(claim), {"metadata": {"finalizers": rest or None}}, uid_of(claim)))
    return operations


def _uses(pod: Json | None) -> bool:
    return pod is not None and not p.ended(pod)


class ClaimController:
    """`reconcile` looks at what changed since it last did, until nothing is left to do."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster, self._clock = cluster, clock
        self._heard = Hearing(cluster, _KINDS, self._forget)
        self._forget()

    def _forget(self) -> None:
        self._pods: dict[str, Json] = {}  # by uid; only those with claims
        self._templates: dict[Key, Json] = {}
        self._claims: dict[Key, Json] = {}
        self._of_pod: dict[str, dict[Key, None]] = {}  # uid of a pod -> claims that were made for it or are reserved for it
        self._dirty_pods: dict[str, None] = {}
        self._dirty_claims: dict[Key, None] = {}

    def reconcile(self) -> int:
        """The number of changes made."""
        changes = 0
        while self._hear():
            pods, claims = [*self._dirty_pods], [*self._dirty_claims]
            self._dirty_pods, self._dirty_claims = {}, {}
            operations = [each for uid in pods if uid in self._pods for each in self._decide(uid)]
            operations += [each for key in claims if key in self._claims for each in released(self._claims[key], self._pods)]
            changes += apply(self._cluster, operations, clock=self._clock).done
        return changes

    def _decide(self, uid: str) -> list[Operation]:
        around = [self._claims[key] for key in self._of_pod.get(uid, ())]
        owned = [claim for claim in around if (controller_of(claim) or {}).get("uid") == uid]
        return claims_of_pod(self._pods[uid], owned, self._templates)

    # --- hearing ------------------------------------------------------------------------------------------------------

    def _hear(self) -> bool:
        """Is there anything to look at?"""
        for kind, event in self._heard.events():
            self._hear_of(kind, event.object, gone=event.type == "DELETED")
        return bool(self._dirty_pods or self._dirty_claims)

    def _hear_of(self, kind: Kind, obj: Json, *, gone: bool) -> None:
        if kind == POD:
            if (obj.get("spec") or {}).get("resourceClaims"):
                self._hear_pod(uid_of(obj), obj, gone=gone)
        elif kind == RESOURCE_CLAIM:
            self._hear_claim(key_of(obj), obj, gone=gone)
        elif gone:
            self._templates.pop(key_of(obj), None)
        else:
            self._templates[key_of(obj)] = obj
            self._dirty_pods.update(dict.fromkeys(self._pods))  # one of them may have waited for it

    def _hear_pod(self, uid: str, pod: Json, *, gone: bool) -> None:
        self._dirty_claims.update(self._of_pod.get(uid, {}))
        self._dirty_pods[uid] = None
        if gone:
            self._pods.pop(uid, None)
        else:
            self._pods[uid] = pod

    def _hear_claim(self, key: Key, claim: Json, *, gone: bool) -> None:
        for uid in _pods_of(self._claims.pop(key, {})):
            self._of_pod[uid].pop(key, None)
            if not self._of_pod[uid]:
                del self._of_pod[uid]
            self._dirty_pods[uid] = None
        if gone:
            return
        self._claims[key] = claim
        self._dirty_claims[key] = None
        for uid in _pods_of(claim):
            self._of_pod.setdefault(uid, {})[key] = None
            self._dirty_pods[uid] = None


def _pods_of(claim: Json) -> set[str]:
    """Uids of the pods that it was made for or is reserved for."""
    users = {user["uid"] for user in (claim.get("status") or {}).get("reservedFor") or ()}
    owner = controller_of(claim) if claim else None
    return users | ({owner["uid"]} if owner is not None else set())
