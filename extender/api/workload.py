"""ReplicaSet, StatefulSet and ReplicationController: only which pods they select, for spreading by default."""

from __future__ import annotations

from extender.api.selectors import LabelSelector
from extender.api.views import Metadata, View


class SelectorSpec(View, frozen=True):
    selector: LabelSelector | None = None


class ReplicaSet(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: SelectorSpec = SelectorSpec()


class StatefulSet(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: SelectorSpec = SelectorSpec()


class LabelsSpec(View, frozen=True):
    selector: dict[str, str] | None = None


class ReplicationController(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: LabelsSpec = LabelsSpec()
