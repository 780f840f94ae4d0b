"""What a Job must satisfy (POST /jobs/validate, CREATE and UPDATE).

Source: volcano ed72c7c, webhooks/admission/jobs/validate/admit_job.go. Every fault is listed, where upstream stops early."""

from __future__ import annotations

from itertools import chain

from extender.api.checks import DNS_LABEL, DNS_SUBDOMAIN, Faults, apply, qualified_name, repeated, required
from extender.api.decode import differences
from extender.api.errors import Fault
from extender.api.meta import Json
from extender.cluster.port import AdmissionRequest
from webhook import shapes
from webhook.budgets import job_budget_faults
from webhook.destination import open_queue_faults, topology_faults
from webhook.jobs.plugins import plugin_faults
from webhook.jobs.policies import policy_faults
from webhook.jobs.tasks import minimum_faults, partition_faults, task_faults
from webhook.settings import Settings
from webhook.verdict import Verdict, verdict
from webhook.view import ClusterView

_MAY_CHANGE = "only minAvailable, priorityClassName and the tasks' replicas and minAvailable can"


def validate(request: AdmissionRequest, cluster: ClusterView, settings: Settings) -> Verdict:
    job, old = request.object or {}, request.old or {}
    ours = job.get("spec", {}).get("schedulerName") in settings.scheduler_names
    if request.operation == "UPDATE":
        budgets = job_budget_faults(job, old) if ours else ()
        return verdict(chain(_update_faults(old.get("spec", {}), job.get("spec", {})), budgets))
    return verdict(chain(_create_faults(job, cluster), job_budget_faults(job) if ours else ()))


def _create_faults(job: Json, cluster: ClusterView) -> Faults:
    spec, meta = job.get("spec", {}), job.get("metadata", {})
    name = meta.get("name", "")  # an API server has made it up by now where there was a generateName
    tasks = spec.get("tasks", [])
    if not tasks:
        yield Fault("spec.tasks", "at least one task is required")
    else:
        yield from _total_faults(spec)
    wrong = qualified_name(name)
    if wrong:
        yield Fault("metadata.name", wrong)
    yield from apply({"namespace": DNS_LABEL}, {"namespace": meta.get("namespace", "")}, "metadata")
    yield from task_faults(name, tasks, "spec.tasks")
    yield from topology_faults(spec.get("networkTopology", {}), "spec.networkTopology")
    yield from policy_faults(spec.get("policies", []), "spec.policies")
    yield from plugin_faults(spec.get("plugins", {}), tasks, "spec.plugins")
    yield from _volume_faults(spec.get("volumes", []), "spec.volumes")
    yield from open_queue_faults(spec.get("queue", ""), cluster, "spec.queue")
    yield from _leaf_faults(spec.get("queue", ""), cluster, "spec.queue")


def _total_faults(spec: Json) -> Faults:
    least, total = spec.get("minAvailable", 0), sum(task.get("replicas", 0) for task in spec.get("tasks", []))
    if least > total:
        yield Fault("spec.minAvailable", f"minAvailable is {least}, must be at most the sum of the tasks' replicas ({total})")


def _volume_faults(volumes: list[Json], path: str) -> Faults:
    for index, volume in enumerate(volumes):
        at, name, claim = f"{path}[{index}]", volume.get("volumeClaimName", ""), "volumeClaim" in volume
        yield from required(volume, at, "mountPath")
        if not name and not claim:
            yield Fault(at, "either volumeClaim or volumeClaimName is required")
        if name and claim:
            yield Fault(at, "give volumeClaimName to use an existing claim or volumeClaim to make one, not both")
        if name and DNS_SUBDOMAIN(name):
            yield Fault(f"{at}.volumeClaimName", DNS_SUBDOMAIN(name))
    yield from repeated((volume.get("mountPath") for volume in volumes), path, "mountPath")


def _leaf_faults(name: str, cluster: ClusterView, path: str) -> Faults:
    """Jobs go to leaves: never to root, nor to a queue with children."""
    if name == "root":
        yield Fault(path, "the root queue takes no jobs; name a leaf queue")
        return
    names = sorted(child.get("metadata", {}).get("name", "") for child in cluster.children(name))
    if names:
        yield Fault(path, f"queue '{name}' is not a leaf, name one of its child queues ({', '.join(names)})")


# --- updates ----------------------------------------------------------------------------------------------------------------
def _update_faults(old: Json, new: Json) -> Faults:
    tasks = new.get("tasks", [])
    for index, task in enumerate(tasks):
        at = f"spec.tasks[{index}]"
        for name in ("replicas", "minAvailable"):
            if task.get(name, 0) < 0:
                yield Fault(f"{at}.{name}", f"{name} is {task[name]}, must not be negative")
        yield from minimum_faults(task, at)
        yield from partition_faults(task, at)
    if new.get("minAvailable", 0) < 0:
        yield Fault("spec.minAvailable", f"minAvailable is {new['minAvailable']}, must not be negative")
    yield from _total_faults(new)
    yield from topology_faults(new.get("networkTopology", {}), "spec.networkTopology")
    if len(tasks) != len(old.get("tasks", [])):
        yield Fault("spec.tasks", f"a job may not add or remove tasks ({len(old.get('tasks', []))} before, {len(tasks)} now)")
    else:
        for path in differences(_fixed(old), _fixed(new), shapes.JOB_SPEC, "spec"):
            yield Fault(path, f"may not change after the job was created; {_MAY_CHANGE}")


def _fixed(spec: Json) -> Json:
    """The part of a job's spec that an update must leave alone. The controller fills in the names of claims it made."""
    rest = {name: value for name, value in spec.items() if name not in ("minAvailable", "priorityClassName")}
    for name, free in (("tasks", {"replicas", "minAvailable"}), ("volumes", set())):
        items: list[Json] = spec.get(name, [])
        rest[name] = [_without(item, free or ({"volumeClaimName"} if "volumeClaim" in item else set())) for item in items]
    return rest


def _without(obj: Json, names: set[str]) -> Json:
    return {name: value for name, value in obj.items() if name not in names}
