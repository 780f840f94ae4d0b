"""Disruption budgets: the annotations that say how many pods of a group may be missing at a time."""

from __future__ import annotations

import re

from extender.api.checks import Faults
from extender.api.errors import Fault
from extender.api.labels import JDB_MAX_UNAVAILABLE, JDB_MIN_AVAILABLE
from extender.api.meta import Json, annotations_of

BUDGETS = (JDB_MIN_AVAILABLE, JDB_MAX_UNAVAILABLE)
_AMOUNT = re.compile(r"[+-]?\d{1,18}%?", re.ASCII)


def budget_faults(annotations: dict[str, str], path: str) -> Faults:
    """Of a pod: one budget at most."""
    yield from amount_faults(annotations, path)
    if all(name in annotations for name in BUDGETS):
        yield Fault(path, f"only one of {' and '.join(BUDGETS)} may be given at the same time")


def amount_faults(annotations: dict[str, str], path: str) -> Faults:
    for name in BUDGETS:
        if name not in annotations:
            continue
        value = annotations[name]
        amount = int(value.rstrip("%")) if _AMOUNT.fullmatch(value) else 0
        if not 0 < amount < (100 if value.endswith("%") else 2**31):
            what = f"'{value}' is invalid: use a positive integer or a percentage from 1% to 99%"
            yield Fault(f"{path}[{name}]", what)


def job_budget_faults(job: Json, old: Json | None = None) -> Faults:
    """What would be wrong with the budgets of a job's pods, which are not sent here themselves: of its own annotations they
    get the first budget, of their template both. With `old`, of what changed since."""
    given, before = annotations_of(job), annotations_of(old or {"metadata": {}})
    changed = {name: given[name] for name in BUDGETS if name in given and given[name] != before.get(name)}
    yield from amount_faults(changed, "metadata.annotations")
    if old is None:
        for index, task in enumerate(job.get("spec", {}).get("tasks", [])):
            annotations = task.get("template", {}).get("metadata", {}).get("annotations", {})
            yield from budget_faults(annotations, f"spec.tasks[{index}].template.metadata.annotations")
