"""DaemonSet: one pod for each node that will have it. Source: kubernetes v1.36.1 pkg/controller/daemon (daemon_controller.go,
NodeShouldRunDaemonPod) and util/daemonset_util.go (AddOrUpdateDaemonPodTolerations)."""

from __future__ import annotations

from collections.abc import Iterable

from extender.api.meta import DAEMON_SET, POD, Json, labels_of
from extender.api.node import Node
from extender.api.operations import Create, Operation
from extender.api.pod import PodSpec
from extender.api.views import view
from extender.cluster.workloads import pods as p
from extender.cluster.workloads.stateful import REVISION_LABEL

_TOLERATIONS = (
    *({"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute"} for key in ("not-ready", "unreachable")),
    *({"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoSchedule"}
      for key in ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")),
)  # fmt: skip
_FIELDS = "requiredDuringSchedulingIgnoredDuringExecution"


def daemon_set(ds: Json, pods: Iterable[Json], nodes: Iterable[Json]) -> list[Operation]:
    mark = p.revision(ds["spec"]["template"])
    template = _tolerant(ds["spec"]["template"])
    wanted = [node["metadata"]["name"] for node in nodes if _runs_on(template, node)]
    there: dict[str, list[Json]] = {}
    for pod in pods:
        there.setdefault(_node_of(pod), []).append(pod)
    operations: list[Operation] = []
    if not p.going(ds):
        operations += [Create(POD, _pod(ds, template, node, mark)) for node in wanted if not there.get(node)]
        operations += [p.delete_pod(pod) for pod in _unwanted(there, set(wanted))]
        if not operations:
            operations += _update(ds, there, wanted, mark)
    return operations + p.status_patch(DAEMON_SET, ds, _status(ds, there, wanted, mark))


def _tolerant(template: Json) -> Json:
    spec = template.get("spec") or {}
    given = spec.get("tolerations") or []
    more = [toleration for toleration in _TOLERATIONS if toleration not in given]
    return {**template, "spec": {**spec, "tolerations": [*given, *more]}}


def _runs_on(template: Json, node: Json) -> bool:
    spec, seen = view(PodSpec, template["spec"]), view(Node, node)
    labels = seen.metadata.labels or {}
    if any(labels.get(name) != value for name, value in (spec.node_selector or {}).items()):
        return False
    required = (
        spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution
        if (spec.affinity is not None and spec.affinity.node_affinity is not None)
        else None
    )
    if required is not None and not required.matches(seen.metadata.name, labels):
        return False
    hard = [taint for taint in seen.spec.taints or () if taint.effect in ("NoSchedule", "NoExecute")]
    return all(any(toleration.tolerates(taint) for toleration in spec.tolerations or ()) for taint in hard)


def _pod(ds: Json, template: Json, node: str, mark: str) -> Json:
    """Tied to its node by an affinity, so that the scheduler binds it there."""
    generation = str(ds["metadata"].get("generation", 1))
    pod = p.pod_from(template, ds, labels={REVISION_LABEL: mark, "pod-template-generation": generation})
    affinity = dict(pod["spec"].get("affinity") or {})
    own = dict(affinity.get("nodeAffinity") or {})
    own[_FIELDS] = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]}
    pod["spec"]["affinity"] = {**affinity, "nodeAffinity": own}
    return pod


def _node_of(pod: Json) -> str:
    bound = pod["spec"].get("nodeName")
    if bound:
        return str(bound)
    terms = pod["spec"]["affinity"]["nodeAffinity"][_FIELDS]["nodeSelectorTerms"]
    return str(terms[0]["matchFields"][0]["values"][0])


def _unwanted(there: dict[str, list[Json]], wanted: set[str]) -> list[Json]:
    """Pods on nodes that will not have them, second ones, and those that ended (they are made again)."""
    unwanted = []
    for node, pods in there.items():
        keep = 1 if node in wanted else 0
        alive = [pod for pod in pods if not p.going(pod) and not p.ended(pod)]
        unwanted += alive[keep:] + [pod for pod in pods if p.ended(pod) and not p.going(pod)]
    return unwanted


def _update(ds: Json, there: dict[str, list[Json]], wanted: list[str], mark: str) -> list[Operation]:
    strategy = ds["spec"].get("updateStrategy") or {}
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return []
    pods = [pod for node in wanted for pod in there.get(node, ())]
    room = p.share((strategy.get("rollingUpdate") or {}).get("maxUnavailable", 1), len(wanted), up=True)
    room -= len(wanted) - len([pod for pod in p.ready(pods) if not p.going(pod)])
    stale = [pod for pod in pods if labels_of(pod).get(REVISION_LABEL) != mark and not p.going(pod)]
    return [p.delete_pod(pod) for pod in stale[: max(room, 0)]]


def _status(ds: Json, there: dict[str, list[Json]], wanted: list[str], mark: str) -> Json:
    right = [pods[0] for node in wanted if (pods := p.active(there.get(node, ())))]
    ready = len(p.ready(right))
    return {
        "desiredNumberScheduled": len(wanted),
        "currentNumberScheduled": len(right),
        "numberMisscheduled": len([node for node in there if node not in wanted and p.active(there[node])]),
        "numberReady": ready,
        "numberAvailable": ready,
        "numberUnavailable": len(wanted) - ready,
        "updatedNumberScheduled": len([pod for pod in right if labels_of(pod).get(REVISION_LABEL) == mark]),
        "observedGeneration": ds["metadata"].get("generation", 1),
    }
