"""What the API server demands of the built-in kinds, beside pods: a row for each kind in table.py.

table.py      the table: kind > its shape, its rules, the fields that never change
shapes.py     every field with its type; what does not fit cannot be read
workloads.py  Deployment, ReplicaSet, StatefulSet, DaemonSet and the rest that makes pods
jobs.py       Job and CronJob of Kubernetes
policy.py     PriorityClass, PodDisruptionBudget, ResourceQuota, LimitRange
storage.py    PersistentVolumeClaim, PersistentVolume, StorageClass, CSINode, CSIStorageCapacity
objects.py    Node, Service, ConfigMap, Secret, Namespace

A rule is given the decoded object (no nulls, no wrong types, no unknown fields) and yields what is wrong with it; what
Kubernetes says of a pod is in extender/api/pod_template. Source: kubernetes v1.36.1, pkg/apis/*/validation."""
