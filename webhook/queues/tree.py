"""A queue among its ancestors and children: depth, cycles, and amounts that must fit into each other.

Differences from volcano ed72c7c: rings of parents are refused (there the search goes round for ever, or misses them), and
none of a resource fits into a parent that does not name it."""

from __future__ import annotations

from collections.abc import Iterator

from extender.api import quantity
from extender.api.checks import Faults
from extender.api.errors import Fault
from extender.api.meta import Json
from webhook.queues.amounts import Amounts, amounts, field_path, shown, total
from webhook.settings import Settings
from webhook.view import ClusterView

ROOT = "root"
_PARENT = "spec.parent"


def name_of(queue: Json) -> str:
    return str(queue.get("metadata", {}).get("name", ""))


def parent_of(queue: Json) -> str:
    return str(queue.get("spec", {}).get("parent", ""))


class Tree:
    """The queues as they would be with `queue` stored: its own new parent counts, not the stored one."""

    def __init__(self, queue: Json, cluster: ClusterView) -> None:
        self.queue = queue
        self._cluster = cluster
        self.ancestors, self.missing, self.ring = self._climb()

    def _climb(self) -> tuple[list[Json], str, list[str]]:
        """Ancestors from the parent up to below root; the name that is not there; the names of a ring."""
        ancestors: list[Json] = []
        seen, parent = [name_of(self.queue)], parent_of(self.queue)
        while parent not in ("", ROOT):
            if parent in seen:
                return ancestors, "", [*seen[seen.index(parent) :], parent]
            found = self._cluster.queue(parent)
            if found is None:
                return ancestors, parent, []
            ancestors.append(found)
            seen.append(parent)
            parent = parent_of(found)
        return ancestors, "", []

    def children(self, name: str) -> list[Json]:
        """Those stored below `name`, without the queue in question, which may be moving. Of no name nobody is a child."""
        below = self._cluster.children(name) if name else ()
        return [child for child in below if name_of(child) != name_of(self.queue)]

    def highest_below(self, queue: Json, resource: str) -> int:
        """The largest capability among the first descendants that set one."""
        best, pending, seen = 0, self.children(name_of(queue)), {name_of(queue)}
        while pending:
            child = pending.pop()
            own = amounts(child, "capability").get(resource, 0)
            if own > 0:
                best = max(best, own)
            elif name_of(child) not in seen:
                pending += self.children(name_of(child))
            seen.add(name_of(child))
        return best


def parent_faults(tree: Tree, settings: Settings) -> Faults:
    """Whether the queue may hang where its spec.parent says."""
    name, parent = name_of(tree.queue), parent_of(tree.queue)
    if parent in ("", ROOT):
        return
    if tree.ring:
        yield from lost_faults(tree)
        return
    if tree.missing:
        yield Fault(_PARENT, f"parent queue '{tree.missing}' not found; create it first")
    depth = 1 + len(tree.ancestors) + bool(tree.missing)
    if depth > settings.max_queue_depth:
        yield Fault(_PARENT, f"queue '{name}' would be at depth {depth}, at most {settings.max_queue_depth} are allowed")
    if tree.ancestors and not tree.children(parent):
        pods = allocated_pods(tree.ancestors[0])
        if pods:
            yield Fault(_PARENT, f"queue '{parent}' has {pods} allocated pods of its own and cannot become a parent")


def lost_faults(tree: Tree) -> Faults:
    """Whether there is a parent at all to compare amounts with."""
    if tree.missing and tree.missing == parent_of(tree.queue):
        yield Fault(_PARENT, f"parent queue '{tree.missing}' not found; create it first")
    if tree.ring == [name_of(tree.queue)] * 2:
        yield Fault(_PARENT, f"queue '{name_of(tree.queue)}' cannot be the parent of itself")
    elif tree.ring:
        yield Fault(_PARENT, f"is part of a cycle of parents: {' -> '.join(tree.ring)}; name a parent outside of it")


def allocated_pods(queue: Json) -> int:
    return quantity.units(queue.get("status", {}).get("allocated", {}).get("pods", 0))


def fit_faults(tree: Tree) -> Faults:
    """Capability within the ancestors' and above the descendants', shares of children within their parent's."""
    queue, below = tree.queue, tree.children(name_of(tree.queue))
    for name, amount in amounts(queue, "capability").items():
        bound = next((limit for limit in _limits(tree, name) if limit[0] > 0), None)
        if bound and amount > bound[0]:
            what = f"is {shown(name, amount)}, must be at most the {shown(name, bound[0])} of its ancestor '{bound[1]}'"
            yield Fault(f"spec.capability.{name}", what)
        least = tree.highest_below(queue, name)
        if 0 < amount < least:
            what = f"is {shown(name, amount)}, must be at least the {shown(name, least)} of a descendant"
            yield Fault(f"spec.capability.{name}", what)
    for field in ("guarantee", "deserved"):
        if tree.ancestors:
            parent, siblings = tree.ancestors[0], tree.children(name_of(tree.ancestors[0]))
            asked = total(amounts(member, field) for member in (*siblings, queue))
            yield from _sum_faults(field, asked, amounts(parent, field), f"the parent '{name_of(parent)}'")
        asked = total(amounts(child, field) for child in below)
        yield from _sum_faults(field, asked, amounts(queue, field), "this queue")


def _limits(tree: Tree, resource: str) -> Iterator[tuple[int, str]]:
    for ancestor in tree.ancestors:
        yield amounts(ancestor, "capability").get(resource, 0), name_of(ancestor)


def _sum_faults(field: str, asked: Amounts, held: Amounts, whose: str) -> Faults:
    for name, amount in asked.items():
        if amount > held.get(name, 0):
            what = f"the children's {field} adds up to {shown(name, amount)}, {whose} has {shown(name, held.get(name, 0))}"
            yield Fault(f"{field_path(field)}.{name}", f"{what}; lower a child's or raise the parent's first")
