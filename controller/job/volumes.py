"""The volumes of a job: claims that must be there, claims to be made, and how its pods mount them.

Generated names follow from the job's uid, so making them twice makes the same ones.
Source: volcano ed72c7c, pkg/controllers/job/job_controller_actions.go, createJobIOIfNotExist."""

from __future__ import annotations

import hashlib
import string
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from controller.job.seen import JobSeen
from extender.api.job import Job, VolumeSpec
from extender.api.meta import JOB, PVC, Json, owner_reference
from extender.api.operations import Create, Patch

_ALPHABET = string.digits + string.ascii_lowercase


class Volumes(NamedTuple):
    """What the volumes of a job need: claims to make, the job's patch with the names of the generated ones, the record of
    all for status.controlledResources, and the claims that only a person can bring."""

    create: Sequence[Create] = ()
    patch: Sequence[Patch] = ()
    controlled: Mapping[str, str] = MappingProxyType({})
    missing: Sequence[str] = ()


def claim_name(job: Job, volume: VolumeSpec) -> str:
    """The claim of one entry of spec.volumes; a generated one where it names none."""
    return volume.volume_claim_name or _generated(job, volume)


def plan_volumes(seen: JobSeen) -> Volumes:
    create, controlled, listed, missing, generated = [], {}, [], [], False
    for volume, raw in zip(seen.job.spec.volumes or (), seen.raw["spec"].get("volumes") or (), strict=True):
        name = claim_name(seen.job, volume)
        listed.append({**raw, "volumeClaimName": name})
        controlled[f"volume-pvc-{name}"] = name
        generated |= not volume.volume_claim_name
        ours = name == _generated(seen.job, volume)
        if name in seen.claims:
            continue
        if volume.volume_claim is not None and ours:
            create.append(Create(PVC, _claim(seen, name, volume.volume_claim)))
        elif not ours:
            missing.append(name)
    meta = seen.job.metadata
    named = generated and not missing
    patch = [Patch(JOB, seen.key, {"spec": {"volumes": listed}}, meta.uid, meta.resource_version)] if named else []
    return Volumes(create, patch, controlled, missing)


def mount(job: Job, pod: Json) -> None:
    """Mount each claim once in every ordinary container of a new pod."""
    mounted = set()
    for volume in job.spec.volumes or ():
        claim = claim_name(job, volume)
        if claim in mounted:
            continue
        mounted.add(claim)
        name = f"{job.metadata.name}-{_letters(job.metadata.uid, claim)}"
        pod["spec"].setdefault("volumes", []).append({"name": name, "persistentVolumeClaim": {"claimName": claim}})
        for container in pod["spec"].get("containers") or ():
            container.setdefault("volumeMounts", []).append({"name": name, "mountPath": volume.mount_path})


def _generated(job: Job, volume: VolumeSpec) -> str:
    return f"{job.metadata.name}-pvc-{_letters(job.metadata.uid, volume.mount_path)}"


def _claim(seen: JobSeen, name: str, spec: Json) -> Json:
    metadata = {"name": name, "namespace": seen.key.namespace, "ownerReferences": [owner_reference(seen.raw)]}
    return {"apiVersion": PVC.api_version, "kind": PVC.name, "metadata": metadata, "spec": spec}


def _letters(uid: str, what: str) -> str:
    number = int.from_bytes(hashlib.sha256(f"{uid}/{what}".encode()).digest()[:12], "big")
    letters = []
    for _ in range(12):
        number, rest = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[rest])
    return "".join(letters)
