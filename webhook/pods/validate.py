"""Disruption budgets on our own pods (POST /pods/validate, CREATE). A pod for another scheduler passes, whatever it carries."""

from __future__ import annotations

from extender.cluster.port import AdmissionRequest
from webhook.budgets import budget_faults
from webhook.settings import Settings
from webhook.verdict import Allow, Verdict, verdict
from webhook.view import ClusterView


def validate(request: AdmissionRequest, _cluster: ClusterView, settings: Settings) -> Verdict:
    pod = request.object or {}
    if pod.get("spec", {}).get("schedulerName") not in settings.scheduler_names:
        return Allow()
    return verdict(budget_faults(pod.get("metadata", {}).get("annotations", {}), "metadata.annotations"))
