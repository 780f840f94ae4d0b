"""What `kubectl apply -k` would send is what a real API server takes: built with the real kubectl, sent as a dry run.

Kinds that a plain API server does not know (cert-manager, the Prometheus operator) are only built."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from extender.api.meta import Json
from extender.cluster.flags import parse
from extender.options import Options
from tests.controlplane.plane import Plane
from tests.manifests.reading import MANIFESTS, arguments, documents, pods

OVERLAYS = [".", "queues", *(f"overlays/{each.name}" for each in sorted((MANIFESTS / "overlays").iterdir()))]
FOREIGN = ("cert-manager.io", "monitoring.coreos.com")
CLUSTER_SCOPED = {
    "Namespace", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration", "Queue",
}  # fmt: skip


def built(programs: Path, folder: Path) -> list[Json]:
    """By `kubectl kustomize`."""
    done = subprocess.run([programs / "kubectl", "kustomize", str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # where it warns
    return documents(done.stdout)


def path_of(obj: Json) -> str:
    """Where objects of its kind are made, with a dry run that refuses unknown fields."""
    group, _, version = obj["apiVersion"].rpartition("/")
    kind, plural = obj["kind"], obj["kind"].lower() + ("es" if obj["kind"].endswith("s") else "s")
    if kind == "NetworkPolicy":
        plural = "networkpolicies"
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    space = "" if kind in CLUSTER_SCOPED else f"/namespaces/{obj['metadata']['namespace']}"
    return f"{root}{space}/{plural}?dryRun=All&fieldValidation=Strict"


def refusal(plane: Plane, obj: Json) -> str | None:
    status, answer = plane.request("POST", path_of(obj), obj)
    there_already = status == 409 and answer["reason"] == "AlreadyExists"
    return None if status == 201 or there_already else f"{obj['kind']} {obj['metadata']['name']}: {json.dumps(answer['message'])}"


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_an_api_server_takes_every_object(plane: Plane, overlay: str) -> None:
    plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": "volcano-system"}})
    objs = [obj for obj in built(plane.programs, MANIFESTS / overlay) if not obj["apiVersion"].startswith(FOREIGN)]
    assert objs
    assert [why for obj in objs if (why := refusal(plane, obj))] == []


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_pod_of_an_overlay_is_restricted_and_has_a_place_for_files(programs: Path, overlay: str) -> None:
    """Programs make temporary files, and their root file system cannot be written."""
    for name, spec in pods(built(programs, MANIFESTS / overlay)):
        (container,) = spec["containers"]
        assert (name, spec["securityContext"]["runAsNonRoot"], spec["securityContext"]["runAsUser"]) == (name, True, 65532)
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert "/tmp" in [mount["mountPath"] for mount in container["volumeMounts"]]


def test_the_extender_is_not_placed_by_the_scheduler_that_waits_for_it(programs: Path) -> None:
    spec = dict(pods(built(programs, MANIFESTS / "overlays" / "extender")))["vc-extender"]
    words = arguments(spec["containers"][0], {"POD_NAMESPACE": "volcano-system"})
    options = parse(Options(), words[1:], {}, words[0]).options
    options.check()
    assert (words[0], options.extender.extender_only) == ("vc-scheduler", True)
    assert spec["schedulerName"] == "volcano"
    assert spec["schedulerName"] not in options.extender.extender_scheduler_name


def test_cert_manager_takes_the_place_of_our_own_certificates(programs: Path) -> None:
    objs = built(programs, MANIFESTS / "overlays" / "cert-manager")
    assert not [obj["metadata"]["name"] for obj in objs if "certs" in obj["metadata"]["name"]]
    annotated = [obj for obj in objs if obj["kind"].endswith("WebhookConfiguration")]
    certificate = next(obj for obj in objs if obj["kind"] == "Certificate" and obj["metadata"]["name"] == "volcano-admission")
    source = f"{certificate['metadata']['namespace']}/{certificate['metadata']['name']}"
    assert {obj["metadata"]["annotations"]["cert-manager.io/inject-ca-from"] for obj in annotated} == {source}
