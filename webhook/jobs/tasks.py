"""The tasks of a Job: names, minimums, partitions, dependencies, and the pod template of each."""

from __future__ import annotations

from extender.api import quantity
from extender.api.checks import DNS_SUBDOMAIN, Faults, qualified_name, repeated
from extender.api.errors import Fault
from extender.api.meta import Json
from extender.api.pod_template.pod import template_faults
from webhook.destination import topology_faults
from webhook.graph import cycle, edges
from webhook.jobs.policies import policy_faults


def task_faults(job_name: str, tasks: list[Json], path: str) -> Faults:
    """What a new job's tasks must satisfy."""
    for index, task in enumerate(tasks):
        at = f"{path}[{index}]"
        yield from minimum_faults(task, at)
        yield from policy_faults(task.get("policies", []), f"{at}.policies")
        yield from _name_faults(job_name, task.get("name", ""), index, at)
        broken = [*template_faults(task.get("template", {}), f"{at}.template")]
        yield from broken
        if not broken:
            yield from _numa_faults(task, at)
        yield from partition_faults(task, at)
        yield from _least_partition_faults(task.get("partitionPolicy", {}), f"{at}.partitionPolicy")
    yield from repeated((task.get("name") for task in tasks), path, "name")
    yield from _dependency_faults(tasks, path)


def minimum_faults(task: Json, path: str) -> Faults:
    least, replicas = task.get("minAvailable"), task.get("replicas", 0)
    if least is not None and least > replicas:
        yield Fault(f"{path}.minAvailable", f"minAvailable is {least}, must be at most replicas ({replicas})")


def _name_faults(job_name: str, name: str, index: int, path: str) -> Faults:
    """A pod is called job-task-index, which is its host name too; with the task's position, as upstream checks it."""
    wrong = DNS_SUBDOMAIN(name)
    if wrong:
        yield Fault(f"{path}.name", f"the task's name {wrong}")
    pod = f"{job_name}-{name}-{index}"
    wrong = qualified_name(pod)
    if wrong:
        yield Fault(f"{path}.name", f"pods are called <job>-<task>-<index>, and {wrong}; shorten the task's or the job's name")
        yield Fault("metadata.name", f"with the task '{name}': {wrong}; shorten the job's or the task's name")


def partition_faults(task: Json, path: str) -> Faults:
    """A disagreement of two fields is reported at both: either can be mended."""
    policy, at = task.get("partitionPolicy"), f"{path}.partitionPolicy"
    if policy is None:
        return
    total, size, least = (policy.get(name, 0) for name in ("totalPartitions", "partitionSize", "minPartitions"))
    replicas, minimum = task.get("replicas", 0), task.get("minAvailable")
    yield from topology_faults(policy.get("networkTopology", {}), f"{at}.networkTopology")
    for name, value in (("totalPartitions", total), ("partitionSize", size)):
        if value <= 0:
            yield Fault(f"{at}.{name}", f"is {value}, must be greater than 0")
    if total <= 0 or size <= 0:
        return
    if replicas != total * size:
        sizes = f"replicas ({replicas}) must be totalPartitions x partitionSize ({total} x {size} = {total * size})"
        yield Fault(f"{path}.replicas", sizes)
        yield Fault(at, sizes)
    if least > 0 and minimum is not None and minimum != least * size:
        sizes = f"minAvailable ({minimum}) must be minPartitions x partitionSize ({least} x {size} = {least * size})"
        yield Fault(f"{path}.minAvailable", sizes)
        yield Fault(f"{at}.minPartitions", sizes)


def _least_partition_faults(policy: Json, path: str) -> Faults:
    """Not asked of jobs that are there: their partitions cannot change any more."""
    least, total = policy.get("minPartitions", 0), policy.get("totalPartitions", 0)
    if least > total > 0:
        yield Fault(f"{path}.minPartitions", f"is {least}, must be at most totalPartitions ({total})")


def _numa_faults(task: Json, path: str) -> Faults:
    """NUMA placement pins whole CPUs. A missing request is the limit, as Kubernetes will fill it in; upstream looks at the
    limit only where no request at all is given."""
    policy = task.get("topologyPolicy", "")
    if policy in ("", "none"):
        return
    spec = task["template"]["spec"]
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(kind, [])):
            resources = container.get("resources", {})
            cpu = resources.get("requests", {}).get("cpu", resources.get("limits", {}).get("cpu", 0))
            if not quantity.milli(cpu) or quantity.milli(cpu) % 1000:
                where = f"{path}.template.spec.{kind}[{index}].resources"
                yield Fault(where, f"the CPU request is {cpu}, topologyPolicy {policy} needs a whole number greater than 0")


def _dependency_faults(tasks: list[Json], path: str) -> Faults:
    needs = edges((task.get("name", ""), task.get("dependsOn", {}).get("name", [])) for task in tasks)
    for index, task in enumerate(tasks):
        for position, name in enumerate(task.get("dependsOn", {}).get("name", [])):
            if name not in needs:
                where = f"{path}[{index}].dependsOn.name[{position}]"
                yield Fault(where, f"task '{name}' is not defined; the job has {', '.join(needs)}")
    ring = cycle(needs)
    if ring:
        yield Fault(path, f"tasks wait for each other in a cycle: {' -> '.join(ring)}; dependsOn must be acyclic")
