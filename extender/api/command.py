"""Command (bus.volcano.sh/v1alpha1): a flat request to act on a Job or a Queue; whoever takes it deletes it first."""

from __future__ import annotations

from extender.api.views import Metadata, OwnerReference, View


class Command(View, frozen=True):
    metadata: Metadata = Metadata()
    action: str = ""
    target: OwnerReference = OwnerReference()
    reason: str = ""
    message: str = ""
