"""Defaults of a Queue (POST /queues/mutate, CREATE).

Difference from volcano ed72c7c: a hierarchy whose first part only begins with the letters "root" gets its root too."""

from __future__ import annotations

import copy

from extender.api.labels import HIERARCHY, HIERARCHY_WEIGHTS
from extender.api.meta import Json
from extender.cluster.port import AdmissionRequest
from webhook.settings import Settings
from webhook.verdict import Allow, Verdict, json_patch
from webhook.view import ClusterView


def mutate(request: AdmissionRequest, _cluster: ClusterView, _settings: Settings) -> Verdict:
    queue = request.object or {}
    wanted = copy.deepcopy(queue)
    _root_hierarchy(wanted.get("metadata", {}).get("annotations", {}))
    spec = wanted.setdefault("spec", {})
    spec.setdefault("reclaimable", True)
    spec["weight"] = spec.get("weight") or 1
    return Allow(patch=json_patch(queue, wanted))


def _root_hierarchy(annotations: Json) -> None:
    hierarchy, weights = annotations.get(HIERARCHY), annotations.get(HIERARCHY_WEIGHTS)
    if hierarchy and weights and hierarchy.split("/")[0] != "root":
        annotations[HIERARCHY] = f"root/{hierarchy}"
        annotations[HIERARCHY_WEIGHTS] = f"1/{weights}"
