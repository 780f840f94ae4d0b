"""The controller of job templates: lists in each template's status the jobs made from it.

Source: volcano ed72c7c, pkg/controllers/jobtemplate. Difference: names with dots are understood."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from controller.reconciler import NOTHING, Decision, Lookup, PlainController, Settings, Stage
from controller.store import Change, Index
from extender.api import labels as names
from extender.api.meta import JOB, JOB_TEMPLATE, Json, Key, Kind, Time, annotations_of, key_of, uid_of
from extender.api.operations import PatchStatus


@dataclass(frozen=True, slots=True)
class TemplateRequest:
    template: Key


def marked_places(job: Json, mark: str) -> Iterable[tuple[str, str]]:
    """(namespace, name) of the flow or template a job was made from; both may hold dots, the namespace is the job's."""
    space = key_of(job).namespace
    value = annotations_of(job).get(mark, "")
    return ((space, value.removeprefix(f"{space}.")),) if value.startswith(f"{space}.") else ()


class JobTemplateController(PlainController):
    name = "jobtemplate-controller"
    kinds: Sequence[Kind] = (JOB_TEMPLATE, JOB)
    indexes: Sequence[Index] = (Index("jobs by template", JOB, lambda job: marked_places(job, names.CREATED_BY_JOB_TEMPLATE)),)

    def start(self, lookup: Lookup, settings: Settings) -> None:
        self._store = lookup.store

    def observe(self, change: Change, now: Time) -> Iterable[Hashable]:
        if change.new is None or change.old is not None:
            return ()
        if change.kind == JOB_TEMPLATE:
            return (TemplateRequest(change.key),)
        return [TemplateRequest(Key(*place)) for place in marked_places(change.new, names.CREATED_BY_JOB_TEMPLATE)]

    def reconcile(self, request: Hashable, now: Time) -> Decision:
        assert isinstance(request, TemplateRequest)
        template = self._store.get(JOB_TEMPLATE, request.template)
        jobs = sorted(key_of(job).name for job in self._store.by("jobs by template", tuple(request.template)))
        if template is None or not jobs or (template.get("status") or {}).get("jobDependsOnList") == jobs:
            return NOTHING
        patch = {"status": {"jobDependsOnList": jobs}}
        return Decision((Stage([PatchStatus(JOB_TEMPLATE, request.template, patch, uid=uid_of(template))]),))
