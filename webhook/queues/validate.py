"""What a Queue must satisfy (POST /queues/validate, CREATE, UPDATE and DELETE).

Differences from volcano ed72c7c: a state that an update only carries along is not checked (there a Closing queue cannot be
edited at all), weights must be finite numbers, and a hierarchy below another queue's leaf is refused in either order of
creation."""

from __future__ import annotations

import math
import re

from extender.api import quantity
from extender.api.checks import Faults, amount_fault
from extender.api.decode import differences
from extender.api.errors import Fault
from extender.api.labels import HIERARCHY, HIERARCHY_WEIGHTS
from extender.api.meta import Json
from extender.api.shapes import QUANTITIES
from extender.cluster.port import AdmissionRequest
from webhook.queues.amounts import field_path, resources
from webhook.queues.tree import ROOT, Tree, allocated_pods, fit_faults, lost_faults, name_of, parent_faults, parent_of
from webhook.settings import Settings
from webhook.verdict import Verdict, verdict
from webhook.view import ClusterView

_FIELDS = ("capability", "deserved", "guarantee")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def validate(request: AdmissionRequest, cluster: ClusterView, settings: Settings) -> Verdict:
    if request.operation == "DELETE":
        return verdict(_delete_faults(request.key.name, cluster, settings))
    return verdict(_write_faults(request.object or {}, request.old, cluster, settings))


def _write_faults(queue: Json, old: Json | None, cluster: ClusterView, settings: Settings) -> Faults:
    yield from _amount_faults(queue)
    yield from _state_faults(queue, old)
    yield from _hierarchy_faults(queue, old, cluster)
    changed = [field for field in _FIELDS if old is None or _differs(queue, old, field)]
    moved = old is None or parent_of(queue) != parent_of(old)
    is_root = name_of(queue) == ROOT
    if is_root and old is not None and settings.root_queue_protection:
        for field in changed:
            yield Fault(f"spec.{field}", "may not change on the root queue (--enable-root-queue-protection)")
    if moved or (changed and not is_root):
        tree = Tree(queue, cluster)
        yield from parent_faults(tree, settings) if moved else lost_faults(tree)
        if not tree.ring and not is_root:
            yield from fit_faults(tree)


def _differs(queue: Json, old: Json, field: str) -> bool:
    return any(differences(resources(old, field), resources(queue, field), QUANTITIES))


def _amount_faults(queue: Json) -> Faults:
    """Amounts are valid, and guarantee <= deserved <= capability where a capability is given."""
    capability, deserved, guarantee = (resources(queue, field) for field in _FIELDS)
    for field in _FIELDS:
        for name, amount in resources(queue, field).items():
            wrong = amount_fault(name, amount)
            if wrong:
                yield Fault(f"{field_path(field)}.{name}", wrong)
    for name, amount in guarantee.items():
        if name not in deserved:
            yield Fault(f"spec.deserved.{name}", f"is missing, must be at least the guarantee of {amount}")
        elif quantity.nanos(deserved[name]) < quantity.nanos(amount):
            yield Fault(f"spec.deserved.{name}", f"deserved is {deserved[name]}, must be at least the guarantee of {amount}")
    for name, amount in deserved.items():
        if name in capability and quantity.nanos(amount) > quantity.nanos(capability[name]):
            yield Fault(f"spec.deserved.{name}", f"deserved is {amount}, must be at most the capability of {capability[name]}")


def _state_faults(queue: Json, old: Json | None) -> Faults:
    state, before = ((obj or {}).get("status", {}).get("state", "") for obj in (queue, old))
    if state not in ("", "Open", "Closed") and (old is None or state != before):
        yield Fault("status.state", f"'{state}' cannot be set; use Open or Closed")


def _hierarchy_faults(queue: Json, old: Json | None, cluster: ClusterView) -> Faults:
    hierarchy, weights = _hierarchy(queue)
    at, at_weights = f"metadata.annotations[{HIERARCHY}]", f"metadata.annotations[{HIERARCHY_WEIGHTS}]"
    if not hierarchy and not weights:
        return
    parts, numbers = hierarchy.split("/"), weights.split("/")
    if len(parts) != len(numbers):
        yield Fault(at, f"has {len(parts)} parts, {HIERARCHY_WEIGHTS} has {len(numbers)}; give one weight for each part")
    else:
        for number in numbers:
            if not _NUMBER.fullmatch(number) or not math.isfinite(float(number)):
                yield Fault(at_weights, f"'{number}' is not a finite number")
            elif float(number) <= 0:
                yield Fault(at_weights, f"{number} must be greater than 0")
    settled = old is not None and _hierarchy(old)[0] == hierarchy
    for other in cluster.queues():
        theirs = _hierarchy(other)[0]
        if not theirs or name_of(other) == name_of(queue):
            continue
        if theirs.startswith(f"{hierarchy}/"):
            yield Fault(at, f"'{hierarchy}' lies above '{theirs}' of queue '{name_of(other)}'; only leaves are queues")
        elif hierarchy.startswith(f"{theirs}/") and name_of(other) != ROOT and not settled:
            yield Fault(at, f"'{hierarchy}' lies below '{theirs}' of queue '{name_of(other)}', which is a leaf")


def _hierarchy(queue: Json) -> tuple[str, str]:
    annotations = queue.get("metadata", {}).get("annotations", {})
    return annotations.get(HIERARCHY, ""), annotations.get(HIERARCHY_WEIGHTS, "")


def _delete_faults(name: str, cluster: ClusterView, settings: Settings) -> Faults:
    if name in (ROOT, settings.default_queue):
        yield Fault("metadata.name", f"the {name} queue cannot be deleted")
        return
    queue = cluster.queue(name)
    if queue is None:
        yield Fault("metadata.name", f"queue '{name}' not found")
        return
    pods = allocated_pods(queue) if settings.allocated_pods_check else 0
    if pods:
        yield Fault("metadata.name", f"queue '{name}' has {pods} allocated pods; wait for them or delete them first")
    children = sorted(name_of(child) for child in cluster.children(name))
    if children:
        yield Fault("metadata.name", f"queue '{name}' has child queues, delete them first: {', '.join(children)}")
