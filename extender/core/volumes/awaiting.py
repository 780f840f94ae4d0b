"""Has what a binding waits for come about: are its claims bound, to volumes that its node can use?

Source: kube-scheduler v1.36.1, volumebinding/binder.go, checkBindings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from extender.api import meta
from extender.api.meta import Key, Kind
from extender.api.node import Node
from extender.api.views import View
from extender.api.volume import PersistentVolume, PersistentVolumeClaim

Facts = Mapping[Kind, Mapping[Key, View]]


class NeverBound(Exception):
    """The claims will not be bound as was decided; the text says why."""


def all_bound(claims: Iterable[Key], node: Node, facts: Facts) -> bool:
    """Raises NeverBound, whichever of them it is about."""
    bound = [_is_bound(key, node, facts) for key in claims]
    return all(bound)


def _is_bound(key: Key, node: Node, facts: Facts) -> bool:
    claim = facts[meta.PVC].get(key)
    if not isinstance(claim, PersistentVolumeClaim):
        raise NeverBound(f'persistentvolumeclaim "{key.name}" not found')
    volume = facts[meta.PV].get(Key("", claim.spec.volume_name))
    if isinstance(volume, PersistentVolume):
        reach, name = volume.reach, node.metadata.name
        if reach is not None and not reach.matches(name, node.metadata.labels or {}):
            raise NeverBound(f'pv "{volume.metadata.name}" node affinity doesn\'t match node "{name}"')
        return claim.bound
    if not claim.spec.volume_name and not _is_under_way(claim, node, facts):
        raise NeverBound(f'provisioning failed for PVC "{key.name}", or its volume is gone')
    return False


def _is_under_way(claim: PersistentVolumeClaim, node: Node, facts: Facts) -> bool:
    """A volume is being made for the node, or one that is there says that it is the claim's."""
    if claim.selected_node:
        return claim.selected_node == node.metadata.name
    return any(isinstance(volume, PersistentVolume) and volume.is_for(claim) for volume in facts[meta.PV].values())
