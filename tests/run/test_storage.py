"""Claims in a run: a default class makes their volumes, unless the manifests bring classes of their own."""

from __future__ import annotations

import json

import pytest

from tests.run.conftest import Command

_SPEC = "accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}"
_MAIN = "containers: [{name: main, image: app, resources: {requests: {cpu: 1}}}]"
CLAIM = f"---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: data}}\nspec: {{{_SPEC}}}\n"
POD = f"""---
apiVersion: v1
kind: Pod
metadata: {{name: p}}
spec: {{schedulerName: volcano, volumes: [{{name: v, persistentVolumeClaim: {{claimName: data}}}}], {_MAIN}}}
"""
JOB = f"""---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: train}}
spec:
  minAvailable: 2
  volumes: [{{mountPath: /out, volumeClaim: {{{_SPEC}}}}}]
  tasks: [{{name: worker, replicas: 2, template: {{spec: {{{_MAIN}}}}}}}]
"""
SET = f"""---
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: db}}
spec:
  replicas: 2
  serviceName: db
  selector: {{matchLabels: {{app: db}}}}
  volumeClaimTemplates: [{{metadata: {{name: disk}}, spec: {{{_SPEC}}}}}]
  template: {{metadata: {{labels: {{app: db}}}}, spec: {{schedulerName: volcano, {_MAIN}}}}}
"""
EPHEMERAL = f"""---
apiVersion: v1
kind: Pod
metadata: {{name: e}}
spec:
  schedulerName: volcano
  volumes: [{{name: scratch, ephemeral: {{volumeClaimTemplate: {{spec: {{{_SPEC}}}}}}}}}]
  {_MAIN}
"""
BY_HAND = """---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: by-hand}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
"""

PLAYED = {"a claim": CLAIM + POD, "of a job": JOB, "of a StatefulSet": SET, "of the pod's own": EPHEMERAL}


@pytest.mark.parametrize("manifests", PLAYED.values(), ids=PLAYED)
def test_volumes_are_made_by_the_default_class(pumice: Command, manifests: str) -> None:
    """Whoever asks for the claim."""
    ran = pumice("run", "a.yaml", "-o", "json", files={"a.yaml": manifests})
    told = json.loads(ran.out)
    assert (ran.status, told["waiting"]) == (0, [])
    assert {pod["phase"] for pod in told["pods"].values()} == {"Running"}


WAITS = {
    "no class": (BY_HAND + CLAIM + POD, "data has no volume, and names no StorageClass that could make one"),
    "no volume": (BY_HAND + CLAIM.replace("accessModes", "storageClassName: by-hand, accessModes") + POD,
                  "4 node(s) didn't find available persistent volumes to bind"),
    "no claim": (POD, 'persistentvolumeclaim "data" not found'),
}  # fmt: skip


@pytest.mark.parametrize(("manifests", "words"), WAITS.values(), ids=WAITS)
def test_what_waits_for_a_volume_says_so(pumice: Command, manifests: str, words: str) -> None:
    """A class among the manifests is the only one there is."""
    ran = pumice("run", "a.yaml", "-o", "json", files={"a.yaml": manifests})
    assert ran.status == 3
    assert words in json.loads(ran.out)["waiting"][0]["message"]


CLUSTER = """---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: n0, labels: {disk: d0}}, status: {allocatable: {cpu: 4, pods: 9}}}
- {apiVersion: v1, kind: Node, metadata: {name: n1, labels: {disk: d1}}, status: {allocatable: {cpu: 4, pods: 9}}}
- apiVersion: v1
  kind: PersistentVolume
  metadata: {name: disk}
  spec:
    capacity: {storage: 1Gi}
    nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: In, values: [d1]}]}]}}
- apiVersion: v1
  kind: PersistentVolumeClaim
  metadata: {name: data, annotations: {pv.kubernetes.io/bind-completed: "yes"}}
  spec: {volumeName: disk}
"""


def test_scores_know_volumes(pumice: Command) -> None:
    """`pumice score` reads claims, volumes and classes from the cluster's files."""
    ran = pumice("score", "pod.yaml", "cluster.yaml", "-o", "json", files={"pod.yaml": POD, "cluster.yaml": CLUSTER})
    said = json.loads(ran.out)["filter"]
    assert said["n1"] == {"ok": True}
    assert said["n0"]["reasons"] == ["node(s) didn't match PersistentVolume's node affinity"]
