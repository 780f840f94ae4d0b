"""Claims as the watch shows them, or as our own writes will have left them until it does."""

from __future__ import annotations

import msgspec

from extender.api.claim import ResourceClaim
from extender.api.meta import Key
from extender.api.operations import Patch, PatchStatus
from extender.api.views import View
from extender.core.assuming import with_status


class ClaimFacts:
    """Keeps the mirror's facts about claims: devices that a session gave away must not look free to the next one."""

    def __init__(self, facts: dict[Key, View]) -> None:
        self._facts = facts
        self._shown: dict[Key, ResourceClaim] = {}  # what the watch shows of claims for which a write is assumed

    def seen(self, key: Key, claim: ResourceClaim) -> ResourceClaim:
        """The claim to go by, now that the watch shows this one. Without devices it is older than the write that gave it some."""
        shown, assumed = self._shown.pop(key, None), self._facts.get(key)
        same = shown is not None and shown.metadata.uid == claim.metadata.uid
        given = isinstance(assumed, ResourceClaim) and assumed.status.allocation is not None
        if same and given and claim.status.allocation is None:
            assert isinstance(assumed, ResourceClaim)
            self._shown[key] = claim
            claim = msgspec.structs.replace(claim, status=assumed.status)
        self._facts[key] = claim
        return claim

    def gone(self, key: Key) -> None:
        self._shown.pop(key, None)

    def assume(self, write: Patch | PatchStatus) -> None:
        claim = self._facts.get(write.key)
        if isinstance(write, PatchStatus) and isinstance(claim, ResourceClaim) and claim.metadata.uid == write.uid:
            self._shown.setdefault(write.key, claim)
            self._facts[write.key] = with_status(claim, write.patch)

    def forget(self, write: Patch | PatchStatus) -> None:
        """The write failed, or what it was for."""
        shown = self._shown.pop(write.key, None)
        if shown is not None:
            self._facts[write.key] = shown
