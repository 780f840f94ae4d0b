"""HyperNodes found from node labels: one for each value of each label, level above level.

Source: volcano ed72c7c, pkg/controllers/hypernode/discovery/label, config. Difference: what is found follows the nodes and
the configuration by itself, so there is nothing to restart and no interval to wait for. Of the sources only `label` is
built in."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from controller.merge import merge_diff
from controller.reconciler import Decision, Stage
from extender.api.errors import InvalidObject
from extender.api.meta import HYPER_NODE, Json, Key, key_of, labels_of, uid_of
from extender.api.operations import Create, Delete, Patch
from extender.api.yaml_text import only_document

SOURCE = "volcano.sh/network-topology-source"  # HyperNode l: who found it
LABEL, UFM = "label", "ufm"
CONFIGURATION = "volcano-controller.conf"  # key of the ConfigMap
LONGEST_TYPE = 20


@dataclass(frozen=True, slots=True)
class Level:
    """One level of one type of topology: the HyperNodes of `tier` are named after values of `label`."""

    type: str
    tier: int
    label: str


def levels(config_map: Json | None) -> Sequence[Sequence[Level]] | None:
    """The levels of each type from the lowest up; None where discovery by labels is not asked for. Raises InvalidObject."""
    text = ((config_map or {}).get("data") or {}).get(CONFIGURATION) or ""
    try:
        document = only_document(text) or {}
    except yaml.YAMLError as error:
        raise InvalidObject(str(error), path=CONFIGURATION) from None
    sources = document.get("networkTopologyDiscovery") or () if isinstance(document, dict) else ()
    unknown = [source.get("source") for source in sources if source.get("source") not in (LABEL, UFM)]
    if unknown:
        raise InvalidObject(f"'{unknown[0]}' is no source; known: {LABEL}", path="networkTopologyDiscovery")
    config = next((source.get("config") or {} for source in sources if source["source"] == LABEL and source.get("enabled")), None)
    if config is None:
        return None
    return [_levels(name, listed) for name, listed in (config.get("networkTopologyTypes") or {}).items() if _usable(name, listed)]


def _usable(name: str, listed: Sequence[Mapping[str, Any]]) -> bool:
    keys = [each.get("nodeLabel") for each in listed]
    return len(name) <= LONGEST_TYPE and len(set(keys)) == len(keys)


def _levels(name: str, listed: Sequence[Mapping[str, Any]]) -> list[Level]:
    """Listed from the highest tier down to the host name, which is the node itself."""
    upwards = [each["nodeLabel"] for each in listed[:-1]][::-1]
    return [Level(name, tier, label) for tier, label in enumerate(upwards, 1)]


def reconcile(topologies: Sequence[Sequence[Level]], nodes: Iterable[Json], known: Iterable[Json]) -> Decision:
    """Make what is missing, align what differs, delete what is not found any more. HyperNodes of others are not touched."""
    ours = {key_of(each).name: each for each in known if labels_of(each).get(SOURCE) == LABEL}
    wanted = {obj["metadata"]["name"]: obj for obj in _found(topologies, list(nodes), ours.values())}
    make = [Create(HYPER_NODE, obj) for name, obj in wanted.items() if name not in ours]
    align = [Patch(HYPER_NODE, Key("", name), patch, uid=uid_of(ours[name])) for name, obj in wanted.items()
             if name in ours and (patch := _difference(ours[name], obj))]  # fmt: skip
    gone = [Delete(HYPER_NODE, Key("", name), uid=uid_of(obj)) for name, obj in ours.items() if name not in wanted]
    return Decision((Stage(make), Stage(align), Stage(gone)))


def _found(topologies: Sequence[Sequence[Level]], nodes: Sequence[Json], ours: Iterable[Json]) -> Iterator[Json]:
    """The HyperNodes of all levels. A node climbs until it lacks a label."""
    names = _Names(ours)
    for topology in topologies:
        members: dict[tuple[Level, str], set[tuple[str, str]]] = {}
        for node in nodes:
            child = ("Node", key_of(node).name)
            for level in topology:
                value = labels_of(node).get(level.label)
                if value is None:
                    break
                members.setdefault((level, value), set()).add(child)
                child = ("HyperNode", names.of(level, value))
        for (level, value), children in sorted(members.items(), key=lambda item: (item[0][0].tier, item[0][1])):
            yield _hyper_node(level, value, names.of(level, value), sorted(children))


def _hyper_node(level: Level, value: str, name: str, children: Sequence[tuple[str, str]]) -> Json:
    members = [{"type": kind, "selector": {"exactMatch": {"name": child}}} for kind, child in children]
    return {
        "apiVersion": HYPER_NODE.api_version,
        "kind": HYPER_NODE.name,
        "metadata": {"name": name, "labels": {level.label: value, SOURCE: LABEL}},
        "spec": {"tier": level.tier, "tierName": level.label, "members": members},
    }


class _Names:
    """A HyperNode that is there keeps its name; a new one gets one that follows from what it stands for."""

    def __init__(self, ours: Iterable[Json]) -> None:
        self._ours = [(key_of(each).name, labels_of(each)) for each in ours]
        self._given: dict[tuple[Level, str], str] = {}

    def of(self, level: Level, value: str) -> str:
        if (level, value) not in self._given:
            prefix = f"hypernode-{re.sub('[^a-z0-9-]', '-', level.type.lower())}-tier{level.tier}-"
            kept = (name for name, labels in self._ours if name.startswith(prefix) and labels.get(level.label) == value)
            mark = hashlib.blake2b(f"{level.label}={value}".encode(), digest_size=8).hexdigest()[:5]
            self._given[level, value] = next(kept, prefix + mark)
        return self._given[level, value]


def _difference(stored: Json, wanted: Json) -> Json:
    patch: Json = {}
    labels = merge_diff(labels_of(stored), {**labels_of(stored), **wanted["metadata"]["labels"]})
    if labels:
        patch["metadata"] = {"labels": labels}
    spec = merge_diff(stored.get("spec") or {}, wanted["spec"])
    if spec:
        patch["spec"] = spec
    return patch
