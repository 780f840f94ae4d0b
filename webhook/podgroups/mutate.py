"""The queue of a namespace for groups that name none (POST /podgroups/mutate, CREATE)."""

from __future__ import annotations

from extender.api.errors import ClusterError
from extender.api.labels import QUEUE_NAME_ANNOTATION
from extender.cluster.port import AdmissionRequest
from webhook.settings import Settings
from webhook.verdict import Allow, Verdict, json_patch
from webhook.view import ClusterView


def mutate(request: AdmissionRequest, cluster: ClusterView, settings: Settings) -> Verdict:
    """A namespace that cannot be read must not stop a group: it stays in the default queue."""
    group = request.object or {}
    spec = group.get("spec", {})
    if spec.get("queue") != settings.default_queue:
        return Allow()
    try:
        namespace = cluster.namespace(group.get("metadata", {}).get("namespace") or request.key.namespace) or {}
    except ClusterError:
        return Allow()
    queue = namespace.get("metadata", {}).get("annotations", {}).get(QUEUE_NAME_ANNOTATION)
    wanted = {**group, "spec": {**spec, "queue": queue}} if queue else group
    return Allow(patch=json_patch(group, wanted))
