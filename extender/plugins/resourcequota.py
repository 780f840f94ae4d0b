"""resourcequota -- let jobs in as long as their minimums fit the ResourceQuotas of their namespace.

    used + admitted + asked <= hard        for every name that both the minimum and the quota have

Names are compared to the letter: a quota on requests.cpu is met by minimums that name requests.cpu (the job controller
writes those). `admitted` is what this session has let in. Scopes of quotas are not looked at. Source: volcano ed72c7c,
plugins/resourcequota."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from extender.api import meta, quantity
from extender.api.errors import InvalidObject
from extender.api.node import ResourceQuota
from extender.core.axis import read_quantities
from extender.core.plugin import NoArgs, NotAdmitted, Plugin, Vote
from extender.core.session import Session

Nanos = Mapping[str, int]


class ResourceQuotaPlugin(Plugin[NoArgs]):
    name = "resourcequota"
    admits_by_minimum = True

    def open(self, ssn: Session) -> None:
        self._quotas: dict[str, list[tuple[str, Nanos, Nanos]]] | None = None
        self._admitted: dict[str, Counter[str]] = {}
        del ssn

    def _of(self, ssn: Session, namespace: str) -> list[tuple[str, Nanos, Nanos]]:
        """(name, hard, used) of each quota of the namespace; one that cannot be read limits nothing."""
        if self._quotas is None:
            self._quotas = {}
            for fact in ssn.facts[meta.RESOURCE_QUOTA].values():
                if isinstance(fact, ResourceQuota) and (read := _read(fact)) is not None:
                    self._quotas.setdefault(fact.metadata.namespace, []).append(read)
        return self._quotas.get(namespace, [])

    def job_enqueueable(self, ssn: Session, job: int) -> Vote:
        asked, namespace = _minimum(ssn, job), ssn.job_key(job).namespace
        admitted = self._admitted.get(namespace, Counter())
        for name, hard, used in self._of(ssn, namespace):
            short = [r for r in sorted(asked) if r in hard and used.get(r, 0) + admitted[r] + asked[r] > hard[r]]
            if short:
                ssn.enqueue_refusals[job].append(_refusal(namespace, name, short, asked, used, admitted, hard))
                return Vote.REJECT
        return Vote.PERMIT

    def job_enqueued(self, ssn: Session, job: int) -> None:
        self._admitted.setdefault(ssn.job_key(job).namespace, Counter()).update(_minimum(ssn, job))


def _minimum(ssn: Session, job: int) -> Nanos:
    group = ssn.jobs.group[job]
    return read_quantities(group.spec.min_resources, "spec.minResources") if group is not None else {}


def _read(quota: ResourceQuota) -> tuple[str, Nanos, Nanos] | None:
    try:
        hard, used = read_quantities(quota.status.hard, "hard"), read_quantities(quota.status.used, "used")
    except InvalidObject:
        return None
    return quota.metadata.name, hard, used


def _refusal(namespace: str, name: str, short: list[str], asked: Nanos, used: Nanos, admitted: Nanos, hard: Nanos) -> NotAdmitted:
    counted = {r: used.get(r, 0) + admitted[r] for r in short}
    event = (
        f"resource quota insufficient, requested: {_listed(asked, short)}, used: {_listed(counted, short)}, "
        f"limited: {_listed(hard, short)}"
    )
    said = {r: [quantity.for_people(r, each[r]) for each in (counted, asked, hard)] for r in short}
    parts = [f"{r} {used_} used + {more} asked > hard {most}" for r, (used_, more, most) in said.items()]
    numbers = {r: {"used": _text(counted[r]), "asked": _text(asked[r]), "hard": _text(hard[r])} for r in short}
    return NotAdmitted(event, f"resource quota {namespace}/{name}: {', '.join(parts)}", numbers)


def _listed(amounts: Nanos, names: Iterable[str]) -> str:
    return ",".join(f"{name}={_text(amounts[name])}" for name in names)


def _text(nanos: int) -> str:
    return quantity.format_nanos(nanos)
