"""The storage of a run: where the manifests bring no StorageClass there is one, as most clusters have it."""

from __future__ import annotations

from collections.abc import Iterable

from extender.api.labels import DEFAULT_STORAGE_CLASS
from extender.api.meta import STORAGE_CLASS, kind_of
from extender.api.volume import WAIT_FOR_FIRST_CONSUMER
from extender.ctl.found import Found

DEFAULT_CLASS = "standard"
_PROVISIONER = "pumice.io/volumes"  # played by cluster/workloads/volumes.py, as all provisioners are


def default_class(found: Iterable[Found]) -> list[Found]:
    """A class for claims that name none: their volumes are made when a pod that mounts them is placed."""
    if any(kind_of(each.manifest) == STORAGE_CLASS for each in found):
        return []
    metadata = {"name": DEFAULT_CLASS, "annotations": {DEFAULT_STORAGE_CLASS: "true"}}
    manifest = {"apiVersion": STORAGE_CLASS.api_version, "kind": STORAGE_CLASS.name, "metadata": metadata,
                "provisioner": _PROVISIONER, "reclaimPolicy": "Delete", "volumeBindingMode": WAIT_FOR_FIRST_CONSUMER}  # fmt: skip
    return [Found(manifest, "default cluster", 1)]
