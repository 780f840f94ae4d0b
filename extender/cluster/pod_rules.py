"""The rules of Pods: defaults, priority, what may be changed, binding, grace.

Sources: kubernetes v1.36.1 pkg/apis/core/v1/defaults.go, pkg/apis/core/validation, pkg/registry/core/pod,
plugin/pkg/admission/priority."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from extender.api import labels
from extender.api.decode import decode
from extender.api.errors import Fault, InvalidObject, nearest
from extender.api.meta import POD, Json
from extender.api.pod import ENDED, PHASES
from extender.api.pod_template.annotations import known_annotation_faults
from extender.api.pod_template.pod import pod_spec_faults
from extender.api.shapes import POD_SPEC
from extender.cluster import refusals
from extender.cluster.label_keys import with_label_keys

_DEFAULTS: Json = {
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "schedulerName": labels.DEFAULT_SCHEDULER,
    "terminationGracePeriodSeconds": 30,
    "enableServiceLinks": True,
    "securityContext": {},
}
_ADMITTED = ("priority", "priorityClassName", "preemptionPolicy")  # set once, at creation
_PREEMPTS = "PreemptLowerPriority"  # the policy of a class that names none
_UPDATABLE = ("activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates")
_FORBIDDEN_UPDATE = (
    "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


# --- defaults ---------------------------------------------------------------------------------------------------------


def with_defaults(new: Json, old: Json | None, priority_classes: Callable[[], Sequence[Json]]) -> Json:
    """A pod as the API server completes it; every step copies what it changes."""
    given = new.get("spec")
    if not isinstance(given, dict):
        return new
    if "schedulerName" in given and "priority" in given and "dnsPolicy" in given and (new.get("status") or {}).get("phase"):
        return new  # complete already: an update of a stored pod
    spec = {**_DEFAULTS, **{name: value for name, value in given.items() if value is not None and value != ""}}
    for field in ("containers", "initContainers"):
        if isinstance(spec.get(field), list):
            spec[field] = [_container(item, bool(spec.get("hostNetwork"))) for item in spec[field]]
    if old is None:
        _set_priority(new["metadata"], spec, priority_classes)
        spec = with_label_keys(spec, new["metadata"].get("labels") or {})
    else:
        spec = {**{name: old["spec"][name] for name in _ADMITTED if name in old["spec"]}, **spec}
    status = new.get("status") or {}
    if not status.get("phase"):
        status = {**status, "phase": "Pending"}
    if "qosClass" not in status:
        status = {**status, "qosClass": _qos(spec)}
    return {**new, "spec": spec, "status": status}


def _container(container: Any, host_network: bool) -> Any:
    """Requests that are not written are those of the limits; ports are TCP, and the host's own on the host network."""
    if not isinstance(container, dict):
        return container
    changed: Json = {}
    resources = container.get("resources")
    if isinstance(resources, dict) and isinstance(resources.get("limits"), dict):
        requests = {**resources["limits"], **(resources.get("requests") or {})}
        changed["resources"] = {**resources, "requests": requests}
    if isinstance(container.get("ports"), list):
        changed["ports"] = [_port(port, host_network) for port in container["ports"]]
    return {**container, **changed} if changed else container


def _port(port: Any, host_network: bool) -> Any:
    if not isinstance(port, dict):
        return port
    whole = {"protocol": "TCP", **port}
    if host_network and not whole.get("hostPort"):
        whole["hostPort"] = whole.get("containerPort")
    return whole


def _qos(spec: Json) -> str:
    """k8s.io/kubernetes pkg/apis/core/v1/helper/qos: of cpu and memory only."""
    best, guaranteed = True, True
    for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
        resources = container.get("resources") or {} if isinstance(container, dict) else {}
        requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
        for name in ("cpu", "memory"):
            best = best and name not in requests and name not in limits
            guaranteed = guaranteed and name in limits and requests.get(name) == limits[name]
    return "BestEffort" if best else "Guaranteed" if guaranteed else "Burstable"


def _set_priority(meta: Json, spec: Json, priority_classes: Callable[[], Sequence[Json]]) -> None:
    """Raises Denied where the class does not exist, or the number given is not that of the class."""
    wanted = spec.get("priorityClassName")
    classes = priority_classes()
    if wanted:
        found = next((each for each in classes if each["metadata"]["name"] == wanted), None)
        if found is None:
            raise refusals.forbidden(POD, meta.get("name", ""), f"no PriorityClass with name {wanted} was found")
    else:
        # Of several global defaults the smallest counts.
        defaults = sorted((each for each in classes if each.get("globalDefault")), key=lambda each: int(each.get("value", 0)))
        found = defaults[0] if defaults else None
    value = found.get("value", 0) if found is not None else 0
    if found is not None:
        spec["priorityClassName"] = found["metadata"]["name"]
    policy = found.get("preemptionPolicy", _PREEMPTS) if found is not None else _PREEMPTS
    if spec.setdefault("preemptionPolicy", policy) != policy:
        why = (
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided in pod spec; "
            f"priority admission controller computed {policy} from the given PriorityClass name"
        )
        raise refusals.forbidden(POD, meta.get("name", ""), why)
    if spec.setdefault("priority", value) != value:
        why = (
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
            f"priority admission controller computed {value} from the given PriorityClass name"
        )
        raise refusals.forbidden(POD, meta.get("name", ""), why)


# --- checks -----------------------------------------------------------------------------------------------------------


def faults(new: Json, old: Json | None) -> list[Fault]:
    """Everything that is wrong with a new pod or a change of one."""
    spec = new.get("spec") or {}
    if old is None:
        annotations = new["metadata"].get("annotations") or {}
        known = known_annotation_faults({"metadata": {"annotations": annotations}, "spec": spec}, "")
        return [*_judged(msgspec.json.encode(spec)), *known]
    if spec is old["spec"] or spec == old["spec"]:
        return []
    found = _judged(msgspec.json.encode(spec))
    if _fixed(spec, old["spec"]) != _fixed(old["spec"], spec):
        return [*found, Fault("spec", _FORBIDDEN_UPDATE)]
    return [*found, *_gate_faults(spec, old["spec"]), *_toleration_faults(spec, old["spec"])]


def found_faults(pod: Json) -> list[Fault]:
    """What no API server has of a pod that it has taken, its phase included; annotations were judged by others, if at all."""
    phase = pod["status"]["phase"]
    wrong = [] if phase in PHASES else [Fault("status.phase", f"'{phase}' is no phase of a pod{nearest(phase, PHASES)}")]
    return [*_judged(msgspec.json.encode(pod.get("spec") or {})), *wrong]


def _fixed(spec: Json, other: Json) -> Json:
    """What of a spec must not change. A gated pod may still be told where it may run."""
    gated = bool(spec.get("schedulingGates") or other.get("schedulingGates"))
    free = (*_UPDATABLE, "nodeSelector", "affinity") if gated else _UPDATABLE
    fixed = {name: value for name, value in spec.items() if name not in free}
    for field in ("containers", "initContainers"):
        fixed[field] = [{k: v for k, v in container.items() if k != "image"} for container in spec.get(field) or ()]
    return fixed


def _gate_faults(spec: Json, before: Json) -> list[Fault]:
    had = [gate.get("name") for gate in before.get("schedulingGates") or ()]
    message = "Forbidden: only deletion is allowed, but found new scheduling gate '{}'"
    return [
        Fault(f"spec.schedulingGates[{i}].name", message.format(gate.get("name")))
        for i, gate in enumerate(spec.get("schedulingGates") or ()) if gate.get("name") not in had
    ]  # fmt: skip


def _toleration_faults(spec: Json, before: Json) -> list[Fault]:
    has = spec.get("tolerations") or []
    if all(toleration in has for toleration in before.get("tolerations") or ()):
        return []
    return [Fault("spec.tolerations", "Forbidden: existing toleration can not be modified except its tolerationSeconds")]


@lru_cache(maxsize=4096)
def _judged(spec: bytes) -> tuple[Fault, ...]:
    """What was judged once is known: pods of one template are mostly equal. Raises InvalidObject."""
    read, unreadable = decode(msgspec.json.decode(spec), POD_SPEC, "spec")
    if unreadable:
        raise InvalidObject(unreadable[0].message, path=unreadable[0].path)
    return (*pod_spec_faults(read, "spec"), *_image_faults(read))


def _image_faults(spec: Json) -> Iterator[Fault]:
    """Asked of pods only, not of templates."""
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field, ())):
            image = container.get("image", "")
            if image != image.strip():
                yield Fault(f"spec.{field}[{index}].image", f"'{image}' must not begin or end with white space")


# --- binding and going away -------------------------------------------------------------------------------------------


def check_bindable(pod: Json, uid: str) -> None:
    """Raises Conflict, in the API server's words."""
    meta, spec = pod["metadata"], pod["spec"]
    name = meta["name"]
    if uid and uid != meta["uid"]:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {meta['uid']}"
    elif "deletionTimestamp" in meta:
        why = f"pod {name} is being deleted, cannot be assigned to a host"
    elif spec.get("nodeName"):
        why = f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    elif spec.get("schedulingGates"):
        why = f"pod {name} has non-empty .spec.schedulingGates"
    else:
        return
    raise refusals.conflict(POD, name, why, "binding")


def bound(pod: Json, node: str, annotations: dict[str, str] | None, now: str) -> Json:
    """The pod with a node, the binding's annotations and the condition PodScheduled."""
    meta = dict(pod["metadata"])
    if annotations:
        meta["annotations"] = {**(meta.get("annotations") or {}), **annotations}
    status = with_condition(pod.get("status") or {}, {"type": "PodScheduled", "status": "True"}, now)
    status.pop("nominatedNodeName", None)
    return {**pod, "metadata": meta, "spec": {**pod["spec"], "nodeName": node}, "status": status}


def with_condition(status: Json, condition: Json, now: str) -> Json:
    """The status with that condition; its transition time moves only where its status did."""
    before = next((each for each in status.get("conditions") or () if each.get("type") == condition["type"]), None)
    changed = now
    if before is not None and before.get("status") == condition["status"]:
        changed = before.get("lastTransitionTime", now)
    whole = {**condition, "lastTransitionTime": changed}
    if before is None:
        return {**status, "conditions": [*(status.get("conditions") or ()), whole]}
    return {**status, "conditions": [whole if each is before else each for each in status["conditions"]]}


def grace(pod: Json, asked: int | None) -> int:
    """An unbound or ended pod goes at once."""
    spec = pod.get("spec") or {}
    if not spec.get("nodeName") or (pod.get("status") or {}).get("phase") in ENDED:
        return 0
    seconds = asked if asked is not None else spec.get("terminationGracePeriodSeconds", 30)
    return int(seconds) if seconds >= 0 else 1


def is_ready(pod: Json) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)
