"""The controller of colocation configurations: each pod is annotated with the newest configuration that selects it.

Source: volcano ed72c7c, pkg/controllers/colocationconfig."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from controller.reconciler import NOTHING, Decision, Lookup, PlainController, Settings, Stage
from controller.store import Change, Index
from extender.api.meta import COLOCATION, POD, Json, Key, Kind, Time, annotations_of, key_of, labels_of, uid_of
from extender.api.operations import Patch
from extender.api.selectors import LabelSelector
from extender.api.views import view

NAME = "volcano.sh/colocation-config-name"  # pod a. R: agent
CONFIG = "volcano.sh/colocation-config"  # pod a: JSON; {} takes back what was set
RESET = "{}"


@dataclass(frozen=True, slots=True)
class PodRequest:
    pod: Key


def annotations_for(pod: Json, configurations: Iterable[Json]) -> dict[str, str | None]:
    """What is to be written to the annotations of a pod; empty where they are right. None removes one."""
    notes = annotations_of(pod)
    chosen = next((each for each in _newest_first(configurations) if _selects(each, labels_of(pod))), None)
    wanted: dict[str, str | None] = {}
    if chosen is not None:
        wanted = {NAME: chosen["metadata"]["name"], CONFIG: _text(chosen["spec"])}
    elif _is_configured(pod):
        wanted = {NAME: None, CONFIG: RESET}
    return {name: value for name, value in wanted.items() if notes.get(name) != value}


def _is_configured(pod: Json) -> bool:
    notes = annotations_of(pod)
    return NAME in notes or CONFIG in notes


def _newest_first(configurations: Iterable[Json]) -> list[Json]:
    return sorted(configurations, key=lambda each: (each["metadata"].get("creationTimestamp") or "", key_of(each)), reverse=True)


def _selects(configuration: Json, labels: dict[str, str]) -> bool:
    """No selector selects nothing, an empty one everything."""
    selector = (configuration.get("spec") or {}).get("selector")
    return selector is not None and view(LabelSelector, selector).matches(labels)


def _text(spec: Json) -> str:
    qos = {name: ratio for name, ratio in (spec.get("memoryQos") or {}).items() if ratio}
    return json.dumps({"memoryQos": qos} if "memoryQos" in spec else {}, separators=(",", ":"))


def _namespace(obj: Json) -> Iterable[str]:
    return (key_of(obj).namespace,)


class ColocationController(PlainController):
    name = "colocation-config-controller"
    kinds: Sequence[Kind] = (COLOCATION, POD)
    indexes: Sequence[Index] = (
        Index("colocation by namespace", COLOCATION, _namespace),
        Index("pods by namespace", POD, _namespace),
    )

    def start(self, lookup: Lookup, settings: Settings) -> None:
        self._store = lookup.store

    def observe(self, change: Change, now: Time) -> Iterable[Hashable]:
        if change.kind == POD:
            news = change.new is not None and (change.old is None or labels_of(change.old) != labels_of(change.new))
            if news and (self._store.count("colocation by namespace", change.key.namespace) or _is_configured(change.object)):
                yield PodRequest(change.key)
            return
        versions = [each for each in (change.old, change.new) if each is not None]
        if len(versions) == 2 and versions[0].get("spec") == versions[1].get("spec"):
            return
        for pod in self._store.by("pods by namespace", change.key.namespace):
            if annotations_of(pod).get(NAME) == change.key.name or any(_selects(each, labels_of(pod)) for each in versions):
                yield PodRequest(key_of(pod))

    def reconcile(self, request: Hashable, now: Time) -> Decision:
        assert isinstance(request, PodRequest)
        pod = self._store.get(POD, request.pod)
        if pod is None or pod["metadata"].get("deletionTimestamp"):
            return NOTHING
        notes = annotations_for(pod, self._store.by("colocation by namespace", request.pod.namespace))
        if not notes:
            return NOTHING
        return Decision((Stage([Patch(POD, request.pod, {"metadata": {"annotations": notes}}, uid=uid_of(pod))]),))
