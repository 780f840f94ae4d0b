"""The controller of HyperNodes: how many members each has, and those found from node labels (discovery.py).

Source: volcano ed72c7c, pkg/controllers/hypernode. Difference: the count follows the nodes, not only the HyperNode."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

from controller.discovery import SOURCE, levels
from controller.discovery import reconcile as discover
from controller.reconciler import NOTHING, Decision, Lookup, PlainController, Settings, Stage
from controller.store import Change
from extender.api.errors import InvalidObject
from extender.api.meta import CONFIG_MAP, HYPER_NODE, NODE, Json, Key, Kind, Time, labels_of, uid_of
from extender.api.operations import PatchStatus
from extender.api.pattern import pattern
from extender.api.selectors import LabelSelector
from extender.api.views import view


@dataclass(frozen=True, slots=True)
class CountRequest:
    hyper_node: Key


@dataclass(frozen=True, slots=True)
class Discover:
    """Look for HyperNodes in the labels of the nodes."""


class Members:
    """The members of one HyperNode: names given, and the nodes that its selectors match, kept node by node."""

    def __init__(self, hyper_node: Json) -> None:
        members = (hyper_node.get("spec") or {}).get("members") or ()
        selectors = [member.get("selector") or {} for member in members]
        self._named = {each["exactMatch"]["name"] for each in selectors if "exactMatch" in each}
        self._patterns = [_pattern(each["regexMatch"]["pattern"]) for each in selectors if "regexMatch" in each]
        self._selectors = [view(LabelSelector, each["labelMatch"]) for each in selectors if "labelMatch" in each]
        self._matched: set[str] = set()

    @property
    def count(self) -> int:
        return len(self._named | self._matched)

    def look_at(self, name: str, node: Json | None) -> bool:
        """Does the count follow? `node` is None where it has gone."""
        before = self.count
        if node is not None and self._matches(name, node):
            self._matched.add(name)
        else:
            self._matched.discard(name)
        return self.count != before

    def _matches(self, name: str, node: Json) -> bool:
        labels = labels_of(node)
        by_label = (not each.empty and each.matches(labels) for each in self._selectors)
        return any(matches(name) for matches in self._patterns) or any(by_label)


def _pattern(text: str) -> Callable[[str], bool]:
    try:
        return pattern(text)
    except InvalidObject:  # admission refuses it; one that got in matches nothing
        return lambda _: False


class HyperNodeController(PlainController):
    name = "hyperNode-controller"
    kinds: Sequence[Kind] = (HYPER_NODE, NODE, CONFIG_MAP)

    def start(self, lookup: Lookup, settings: Settings) -> None:
        self._store = lookup.store
        self._configuration = settings.configuration
        self._members: dict[str, Members] = {}

    def only(self, kind: Kind) -> Key | None:
        return self._configuration if kind == CONFIG_MAP else None

    def observe(self, change: Change, now: Time) -> Iterable[Hashable]:
        yield from self._counts(change)
        if change.kind == CONFIG_MAP:
            if change.key == self._configuration:
                yield Discover()
        elif self._store.get(CONFIG_MAP, self._configuration) is not None and self._concerns_discovery(change):
            yield Discover()

    def _concerns_discovery(self, change: Change) -> bool:
        """A node that came, went or was labelled, a found HyperNode that somebody changed."""
        if change.kind == NODE:
            return _relabelled(change)
        return SOURCE in labels_of(change.object) and (change.old or {}).get("spec") != (change.new or {}).get("spec")

    def _counts(self, change: Change) -> Iterable[Hashable]:
        if change.kind == NODE:
            if _relabelled(change):
                for name, members in self._members.items():
                    if members.look_at(change.key.name, change.new):
                        yield CountRequest(Key("", name))
        elif change.kind != HYPER_NODE:
            return
        elif change.new is None:
            self._members.pop(change.key.name, None)
        elif change.old is None or change.old.get("spec") != change.new.get("spec"):
            members = self._members[change.key.name] = Members(change.new)
            for key, node in self._store.all(NODE).items():
                members.look_at(key.name, node)
            yield CountRequest(change.key)

    def reconcile(self, request: Hashable, now: Time) -> Decision:
        if isinstance(request, Discover):
            topologies = levels(self._store.get(CONFIG_MAP, self._configuration))
            known = self._store.all(HYPER_NODE).values()
            return discover(topologies, self._store.all(NODE).values(), known) if topologies is not None else NOTHING
        assert isinstance(request, CountRequest)
        hyper_node = self._store.get(HYPER_NODE, request.hyper_node)
        members = self._members.get(request.hyper_node.name)
        if hyper_node is None or members is None:
            return NOTHING
        if ((hyper_node.get("status") or {}).get("nodeCount") or 0) == members.count:
            return NOTHING
        patch = {"status": {"nodeCount": members.count}}
        return Decision((Stage([PatchStatus(HYPER_NODE, request.hyper_node, patch, uid=uid_of(hyper_node))]),))


def _relabelled(change: Change) -> bool:
    return change.old is None or change.new is None or labels_of(change.old) != labels_of(change.new)
