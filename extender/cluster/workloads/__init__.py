"""The workload controllers of the embedded cluster: Deployment, ReplicaSet, StatefulSet, DaemonSet, batch Job, the
ResourceClaims of pods, and PersistentVolumes.

driver.py watches and applies; each of the others is a function from what there is to operations. They make, scale, replace
and count pods as kubernetes v1.36.1 pkg/controller does; what no scheduler sees (revision history objects, surge in
DaemonSets, deadlines of Jobs) is left out."""

from extender.cluster.workloads.driver import Workloads

__all__ = ["Workloads"]
