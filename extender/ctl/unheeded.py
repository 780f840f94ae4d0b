"""What manifests ask for and nobody acts upon: this version does not, or the configuration has no plugin that would.

Without a word of it a limit that is shown would be taken for one that holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from extender.api import quantity
from extender.api.errors import InvalidObject, nearest
from extender.api.meta import QUEUE, kind_of
from extender.api.queue import ROOT
from extender.cluster.metadata import is_custom
from extender.core.conf import Conf
from extender.ctl.found import Found

_ANYWHERE = "pods may come to be on any nodes"
# Fields of jobs and PodGroups, wherever they stand, and what their not being there yet means.
_NOT_YET = {
    "networkTopology": f"network topology is not considered in this version: {_ANYWHERE}",
    "topologyPolicy": f"NUMA nodes are not considered in this version: {_ANYWHERE}",
}
_NONE: tuple[Any, ...] = ("", "none", None, {})
# Fields of a queue -> the plugins that act upon them.
_HELD_BY = {"capability": ("proportion", "capacity"), "guarantee": ("proportion", "capacity"), "deserved": ("capacity",)}
UNLIMITED_AT_ZERO = ("cpu", "memory")  # of a capability
_RESOURCES = ("cpu", "memory", "pods", "ephemeral-storage")


def unheeded(found: Iterable[Found], conf: Conf) -> Iterator[str]:
    """A line for each field: where it is, its path, and what would be needed."""
    names = {entry.name for tier in conf.tiers for entry in tier}
    tree = any(entry.plugin.hierarchical and entry.switches["enableHierarchy"] for tier in conf.tiers for entry in tier)
    for each in found:
        spec = each.manifest.get("spec")
        if not isinstance(spec, dict) or not is_custom(kind_of(each.manifest)):
            continue
        lines = _of_queue(spec, names, tree=tree) if kind_of(each.manifest) == QUEUE else _not_yet(spec, "spec")
        yield from (f"{each.where}: {each.subject}: {path}: {why}" for path, why in lines)


def _not_yet(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """(path, why)."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in inside:
        place = f"{path}.{name}" if isinstance(value, dict) else f"{path}[{name}]"
        if name in _NOT_YET and inner not in _NONE:
            yield place, _NOT_YET[name]
        else:
            yield from _not_yet(inner, place)


def _of_queue(spec: dict[str, Any], plugins: set[str], *, tree: bool) -> Iterator[tuple[str, str]]:
    """(path, why)."""
    for name, holders in _HELD_BY.items():
        listed = spec.get(name)
        listed = listed.get("resource") if name == "guarantee" and isinstance(listed, dict) else listed
        if not isinstance(listed, dict) or not listed:
            continue
        if plugins.isdisjoint(holders):
            yield f"spec.{name}", f"only the plugin {' or '.join(holders)} acts upon it, and the configuration has it not"
        for resource in map(str, listed):
            if not _may_be(resource):
                yield f"spec.{name}", f"no node has a resource '{resource}'{nearest(resource, _RESOURCES)}"
        yield from _no_limits(listed) if name == "capability" else ()
    if spec.get("parent") not in ("", None, ROOT) and not tree:
        why = "queues stand side by side: only the plugin capacity with enableHierarchy: true makes a tree of them"
        yield "spec.parent", why


def _no_limits(capability: dict[Any, Any]) -> Iterator[tuple[str, str]]:
    """(path, why) of amounts that core/amounts.py, ceiling, takes for none."""
    for resource in UNLIMITED_AT_ZERO:
        if resource in capability and _is_nothing(capability[resource]):
            close = "to keep jobs out of a queue close it (a Command CloseQueue)"
            yield f"spec.capability.{resource}", f"0 of {resource} is no limit at all, as in Volcano; {close}"


def _is_nothing(amount: Any) -> bool:
    try:
        return quantity.nanos(amount) == 0
    except InvalidObject:  # admission says so
        return False


def _may_be(resource: str) -> bool:
    """Names with a domain are anybody's; of the others Kubernetes has these only."""
    return "/" in resource or resource in _RESOURCES or resource.startswith("hugepages-")
