"""Which manifest is created before which, and what manifests name must be among them.

A real cluster has had its nodes, queues and priority classes for long when a job comes; files are read in any order. Of what
depends on nothing the order of the files is kept, since who comes first is served first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from extender.api import labels, meta, queue
from extender.api.errors import InvalidObject, nearest
from extender.api.meta import Json, Kind, annotations_of, key_of, kind_of
from extender.cluster.kubelet import exit_code, run_seconds
from extender.ctl.found import Found, Refused

_FIRST: tuple[tuple[Kind, ...], ...] = (
    (meta.NAMESPACE,),
    (meta.PRIORITY_CLASS, meta.STORAGE_CLASS, meta.CSI_DRIVER),
    (meta.QUEUE, meta.LIMIT_RANGE),
    (meta.NODE, meta.CSI_NODE, meta.NUMATOPOLOGY, meta.NODE_SHARD, meta.COLOCATION, meta.PV),
    (meta.HYPER_NODE,),
    (meta.RESOURCE_QUOTA, meta.CONFIG_MAP, meta.SECRET, meta.SERVICE_ACCOUNT, meta.SERVICE, meta.NETWORK_POLICY, meta.PVC),
    (meta.PDB, meta.JOB_TEMPLATE),
    (meta.POD_GROUP,),
)
_LAST = (meta.COMMAND,)
_RANK = {kind: rank for rank, kinds in enumerate(_FIRST) for kind in kinds} | dict.fromkeys(_LAST, len(_FIRST) + 1)

# Kinds whose pods come from a template, and where it is.
TEMPLATES: dict[Kind, tuple[str, ...]] = {
    meta.DEPLOYMENT: ("spec", "template"),
    meta.REPLICA_SET: ("spec", "template"),
    meta.STATEFUL_SET: ("spec", "template"),
    meta.DAEMON_SET: ("spec", "template"),
    meta.REPLICATION_CONTROLLER: ("spec", "template"),
    meta.BATCH_JOB: ("spec", "template"),
    meta.BATCH_CRON_JOB: ("spec", "jobTemplate", "spec", "template"),
}
# Kinds that hold a Volcano job, and where its spec is.
JOB_SPECS: dict[Kind, tuple[str, ...]] = {
    meta.JOB: ("spec",),
    meta.CRON_JOB: ("spec", "jobTemplate", "spec"),
    meta.JOB_TEMPLATE: ("spec",),
}
_NAMED_KINDS = (meta.POD_GROUP, meta.QUEUE, meta.PRIORITY_CLASS, meta.JOB_TEMPLATE)
_BUILT_IN_CLASSES = ("system-cluster-critical", "system-node-critical")


def arranged(found: Iterable[Found]) -> list[Found]:
    """In the order of creation: what is needed before what needs it, otherwise as they come."""
    ordered = sorted(found, key=lambda each: _RANK.get(kind_of(each.manifest), len(_FIRST)))
    first = next((i for i, each in enumerate(ordered) if kind_of(each.manifest) == meta.QUEUE), 0)
    queues = [each for each in ordered if kind_of(each.manifest) == meta.QUEUE]
    ordered[first : first + len(queues)] = _parents_first(queues)
    return ordered


def _parents_first(queues: Sequence[Found]) -> list[Found]:
    """A parent that is not here is left for admission to refuse; rings have been told."""
    by_name = {key_of(each.manifest).name: each for each in queues}
    done: dict[str, Found] = {}

    def visit(each: Found, below: tuple[str, ...]) -> None:
        name = key_of(each.manifest).name
        parent = (each.manifest.get("spec") or {}).get("parent")
        if name in done or name in below:
            return
        if isinstance(parent, str) and parent in by_name:
            visit(by_name[parent], (*below, name))
        done[name] = each

    for each in queues:
        visit(each, ())
    return [*done.values(), *(each for each in queues if each not in done.values())]


# --- what is named must be there -----------------------------------------------------------------------------------------


def dangling(found: Sequence[Found], at_fault: Collection[str]) -> Iterator[Refused]:
    """Manifests that name a PodGroup, Queue, PriorityClass or JobTemplate which is nowhere, nor among those `at_fault`.

    A cluster accepts most of these and leaves the pods waiting for ever; on the command line it is a slip of the pen. What
    comes from a cluster has done without."""
    there = {(kind_of(each.manifest), key_of(each.manifest).name) for each in found}
    there |= {(meta.QUEUE, name) for name in (queue.ROOT, queue.DEFAULT)}
    there |= {(meta.PRIORITY_CLASS, name) for name in _BUILT_IN_CLASSES}
    there |= {(kind_of(each.manifest), _full(each)) for each in found if kind_of(each.manifest).namespaced}
    names = {kind: sorted(name for of, name in there if of == kind) for kind in _NAMED_KINDS}
    for each in (each for each in found if not each.as_found):
        for path, kind, name in _named(each):
            if isinstance(name, str) and name and (kind, name) not in there and name.rpartition("/")[2] not in at_fault:
                near = nearest(name, names[kind]) if names[kind] else ""
                yield each.refuse(f"{each.subject}: {path}: no {kind} '{name}' in these manifests{near}")


def named_by(each: Found) -> set[str]:
    """Names of what must be there before it: what has one of them waits for it, and fails with it."""
    manifest = each.manifest
    own = (_inside(manifest, ("spec",)).get("parent"), manifest["metadata"].get("namespace"),
           _inside(manifest, ("target",)).get("name"))  # fmt: skip
    names = (*own, *(name for _, _, name in _named(each)))
    return {name.rpartition("/")[2] for name in names if isinstance(name, str) and name}


def rings(found: Sequence[Found]) -> Iterator[Refused]:
    """Queues that are their own parents, by way of others; told of the first of each ring."""
    queues = {each.name: each for each in found if kind_of(each.manifest) == meta.QUEUE}
    parents = {name: str(_inside(each.manifest, ("spec",)).get("parent") or "") for name, each in queues.items()}
    told: set[str] = set()
    for name in queues:
        way = [name]
        while (parent := parents[way[-1]]) in parents and parent not in way:
            way.append(parent)
        if parent == name and name not in told:
            told |= set(way)
            ring = " -> ".join((*way, name))
            yield queues[name].refuse(f"{queues[name].subject}: spec.parent: queues are parents of each other: {ring}")


def unreadable_annotations(found: Sequence[Found]) -> Iterator[Refused]:
    """Pods and templates whose pumice.io annotations cannot be read."""
    for each in (each for each in found if not each.as_found):
        for path, pod in pods_of(each.manifest):
            notes = {name: text for name, text in _inside(pod, ("metadata", "annotations")).items() if isinstance(text, str)}
            told = {"metadata": {"annotations": notes}}
            try:
                run_seconds(told)
                exit_code(told)
            except InvalidObject as error:
                yield each.refuse(f"{each.subject}: {path}{error}")


def unplayed(found: Sequence[Found]) -> Iterator[str]:
    """A line for what the embedded cluster makes nothing of, or not for long."""
    there = {key_of(each.manifest).name for each in found if kind_of(each.manifest) == meta.NODE}
    elsewhere: list[str] = []
    for each in found:
        kind = kind_of(each.manifest)
        if kind == meta.BATCH_CRON_JOB:
            yield f"{each.where}: {each.subject}: is not played, no job comes of it; write the Job that it would start"
        node = _inside(each.manifest, ("spec",)).get("nodeName") if kind == meta.POD else None
        if isinstance(node, str) and node and node not in there:
            elsewhere.append(node)
    if elsewhere:
        names = ", ".join(sorted(set(elsewhere))[:3]) + (" ..." if len(set(elsewhere)) > 3 else "")
        yield f"pods on nodes that are not among the manifests ({names}), which go as on any cluster: {len(elsewhere)}"


def pods_of(manifest: Json) -> Iterator[tuple[str, Json]]:
    """(prefix of field paths, pod or template) of all that describes a pod."""
    kind = kind_of(manifest)
    if kind == meta.POD:
        yield "", manifest
    elif kind in TEMPLATES:
        yield ".".join(TEMPLATES[kind]) + ".", _inside(manifest, TEMPLATES[kind])
    elif kind in JOB_SPECS:
        tasks = _inside(manifest, JOB_SPECS[kind]).get("tasks")
        for i, task in enumerate(tasks if isinstance(tasks, list) else ()):
            yield f"{'.'.join(JOB_SPECS[kind])}.tasks[{i}].template.", _inside(task, ("template",))


def _full(each: Found, name: str = "") -> str:
    """Of a namespaced kind: `default/train`."""
    key = key_of(each.manifest)
    return f"{key.namespace or 'default'}/{name or key.name}"


def _named(each: Found) -> Iterator[tuple[str, Kind, Any]]:
    """(field path, kind, name) of all that the manifest names."""
    manifest, kind = each.manifest, kind_of(each.manifest)
    if kind == meta.POD or kind in TEMPLATES:
        for prefix, pod in pods_of(manifest):
            yield from _pod_names(each, pod, prefix)
    elif kind in JOB_SPECS:
        spec, path = _inside(manifest, JOB_SPECS[kind]), ".".join(JOB_SPECS[kind])
        yield f"{path}.queue", meta.QUEUE, spec.get("queue")
        yield f"{path}.priorityClassName", meta.PRIORITY_CLASS, spec.get("priorityClassName")
        for prefix, pod in pods_of(manifest):
            yield f"{prefix}spec.priorityClassName", meta.PRIORITY_CLASS, _inside(pod, ("spec",)).get("priorityClassName")
    elif kind == meta.JOB_FLOW:
        flows = _inside(manifest, ("spec",)).get("flows")
        for i, flow in enumerate(flows if isinstance(flows, list) else ()):
            name = flow.get("name") if isinstance(flow, dict) else None
            if isinstance(name, str) and name:
                yield f"spec.flows[{i}].name", meta.JOB_TEMPLATE, _full(each, name)
    elif kind == meta.POD_GROUP:
        spec = _inside(manifest, ("spec",))
        yield "spec.queue", meta.QUEUE, spec.get("queue")
        yield "spec.priorityClassName", meta.PRIORITY_CLASS, spec.get("priorityClassName")


def _pod_names(each: Found, pod: Json, path: str) -> Iterator[tuple[str, Kind, Any]]:
    notes = annotations_of({"metadata": _inside(pod, ("metadata",))})
    notes = notes if isinstance(notes, dict) else {}
    group = notes.get(labels.GROUP_NAME)
    if isinstance(group, str) and group:
        yield f"{path}metadata.annotations[{labels.GROUP_NAME}]", meta.POD_GROUP, _full(each, group)
    queue_note = labels.QUEUE_NAME_ANNOTATION
    yield f"{path}metadata.annotations[{queue_note}]", meta.QUEUE, notes.get(queue_note)
    yield f"{path}spec.priorityClassName", meta.PRIORITY_CLASS, _inside(pod, ("spec",)).get("priorityClassName")


def _inside(value: Any, path: tuple[str, ...]) -> Json:
    """The map at the path; empty where there is none (admission will say so)."""
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}
