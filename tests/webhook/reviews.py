"""Objects and reviews for the tests of the webhook."""

from __future__ import annotations

from typing import Any

from extender.api.meta import JOB, POD, QUEUE, Json, Kind

UID = "705ab4f5-6393-11e8-b7cc-42010a800002"


def queue(name: str, **spec: Any) -> Json:
    return {"apiVersion": QUEUE.api_version, "kind": QUEUE.name, "metadata": {"name": name}, "spec": spec,
            "status": {"state": "Open"}}  # fmt: skip


def job(**spec: Any) -> Json:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "example.test/app:1"}]}}
    tasks = [{"name": "worker", "replicas": 2, "template": template}]
    return {"apiVersion": JOB.api_version, "kind": JOB.name, "metadata": {"name": "train", "namespace": "default"},
            "spec": {"minAvailable": 1, "tasks": tasks, **spec}}  # fmt: skip


def review(obj: Any, kind: Kind = JOB, operation: str = "CREATE", **request: Any) -> Json:
    resource = {"group": kind.group, "version": kind.version, "resource": kind.plural}
    asked = {"uid": UID, "resource": resource, "operation": operation, "name": "train", "namespace": "default",
             "userInfo": {"username": "somebody"}, "object": obj, "oldObject": None, "dryRun": False, **request}  # fmt: skip
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}


def plain_pod(namespace: str = "batch", *, owner: Json | None = None, **metadata: Any) -> Json:
    meta = {"name": "p", "namespace": namespace, **({"ownerReferences": [owner]} if owner else {}), **metadata}
    spec = {"schedulerName": "default-scheduler",
            "containers": [{"name": "main", "image": "example.test/app:1", "resources": {"requests": {"cpu": "1"}}}]}  # fmt: skip
    return {"apiVersion": "v1", "kind": POD.name, "metadata": meta, "spec": spec}
