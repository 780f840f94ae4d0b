"""Disruption budgets on our own pods (POST /pods/validate, CREATE). A pod for another scheduler passes, whatever it carries."""

from __future__ import annotations

import re

from extender.api.checks import Faults
from extender.api.errors import Fault
from extender.api.labels import JDB_MAX_UNAVAILABLE, JDB_MIN_AVAILABLE
from extender.cluster.port import AdmissionRequest
from webhook.settings import Settings
from webhook.verdict import Allow, Verdict, verdict
from webhook.view import ClusterView

BUDGETS = (JDB_MIN_AVAILABLE, JDB_MAX_UNAVAILABLE)
_AMOUNT = re.compile(r"[+-]?\d{1,18}%?", re.ASCII)


def validate(request: AdmissionRequest, _cluster: ClusterView, settings: Settings) -> Verdict:
    pod = request.object or {}
    if pod.get("spec", {}).get("schedulerName") not in settings.scheduler_names:
        return Allow()
    return verdict(_budget_faults(pod.get("metadata", {}).get("annotations", {})))


def _budget_faults(annotations: dict[str, str]) -> Faults:
    given = [name for name in BUDGETS if name in annotations]
    for name in given:
        value = annotations[name]
        amount = int(value.rstrip("%")) if _AMOUNT.fullmatch(value) else 0
        if not 0 < amount < (100 if value.endswith("%") else 2**31):
            what = f"'{value}' is invalid: use a positive integer or a percentage from 1% to 99%"
            yield Fault(f"metadata.annotations[{name}]", what)
    if len(given) > 1:
        yield Fault("metadata.annotations", f"only one of {' and '.join(given)} may be given at the same time")
