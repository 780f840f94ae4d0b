"""What the watch shows of claims and volumes, or what our own writes will have left of them until it does.

Devices and volumes that a session gave away must not look free to the next one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

import msgspec

from extender.api import labels, meta
from extender.api.claim import ResourceClaim
from extender.api.meta import Key, Kind
from extender.api.operations import Patch, PatchStatus
from extender.api.views import View
from extender.api.volume import PersistentVolume, PersistentVolumeClaim
from extender.core.assuming import after_patch


class _Trace(NamedTuple):
    """What our writes leave on a kind: whether an object has it, and how one without it gets that of another."""

    has: Callable[[Any], bool]
    keep: Callable[[Any, Any], Any]  # (as shown, as assumed)


def _keep_status(shown: ResourceClaim, assumed: ResourceClaim) -> ResourceClaim:
    return msgspec.structs.replace(shown, status=assumed.status)


def _keep_claim_ref(shown: PersistentVolume, assumed: PersistentVolume) -> PersistentVolume:
    return msgspec.structs.replace(shown, spec=msgspec.structs.replace(shown.spec, claim_ref=assumed.spec.claim_ref))


def _keep_node(shown: PersistentVolumeClaim, assumed: PersistentVolumeClaim) -> PersistentVolumeClaim:
    notes = {**(shown.metadata.annotations or {}), labels.SELECTED_NODE: assumed.selected_node}
    return msgspec.structs.replace(shown, metadata=msgspec.structs.replace(shown.metadata, annotations=notes))


class AssumedFacts:
    """Keeps the mirror's facts about the kinds that are written before a pod is bound."""

    KINDS: ClassVar[Mapping[Kind, _Trace]] = {
        meta.RESOURCE_CLAIM: _Trace(lambda claim: claim.status.allocation is not None, _keep_status),
        meta.PV: _Trace(lambda volume: volume.spec.claim_ref is not None, _keep_claim_ref),
        meta.PVC: _Trace(lambda claim: bool(claim.selected_node), _keep_node),
    }

    def __init__(self, facts: Mapping[Kind, dict[Key, View]]) -> None:
        self._facts = facts
        self._shown: dict[tuple[Kind, Key], View] = {}  # what the watch shows of objects for which a write is assumed

    def seen(self, kind: Kind, key: Key, new: View) -> View:
        """The object to go by, now that the watch shows this one. Without our trace it is older than the write that left it."""
        shown, assumed, trace = self._shown.pop((kind, key), None), self._facts[kind].get(key), self.KINDS[kind]
        if shown is not None and assumed is not None and _uid(shown) == _uid(new) and trace.has(assumed) and not trace.has(new):
            self._shown[kind, key] = new
            new = trace.keep(new, assumed)
        self._facts[kind][key] = new
        return new

    def gone(self, kind: Kind, key: Key) -> None:
        self._shown.pop((kind, key), None)

    def assume(self, write: Patch | PatchStatus) -> None:
        found = self._facts[write.kind].get(write.key)
        if found is not None and _uid(found) == write.uid and (after := after_patch(found, write.patch)) != found:
            self._shown.setdefault((write.kind, write.key), found)
            self._facts[write.kind][write.key] = after

    def forget(self, write: Patch | PatchStatus) -> None:
        """The write failed, or what it was for."""
        shown = self._shown.pop((write.kind, write.key), None)
        if shown is not None:
            self._facts[write.kind][write.key] = shown


def _uid(obj: Any) -> str:
    return str(obj.metadata.uid)
