"""pdb -- no victim beyond what PodDisruptionBudgets allow.

Every candidate uses up one disruption of each budget that covers it, in the order given; one that finds a budget empty is
no victim. The budgets are counted anew for each question. A budget with an empty selector covers nothing, as in
kube-scheduler. Source: volcano ed72c7c, plugins/pdb."""

from __future__ import annotations

from collections.abc import Sequence

from extender.api import meta
from extender.api.node import PodDisruptionBudget
from extender.core.plugin import NoArgs, Plugin
from extender.core.session import Session


class Pdb(Plugin[NoArgs]):
    name = "pdb"
    keeps = "disruption budgets protect them"

    def open(self, ssn: Session) -> None:
        self._budgets: dict[str, list[PodDisruptionBudget]] = {}
        for budget in ssn.facts[meta.PDB].values():
            if isinstance(budget, PodDisruptionBudget) and budget.spec.selector is not None and not budget.spec.selector.empty:
                self._budgets.setdefault(budget.metadata.namespace, []).append(budget)

    def preemptable(self, ssn: Session, task: int, candidates: Sequence[int]) -> list[int]:
        del task
        left: dict[meta.Key, int] = {}
        return [victim for victim in candidates if self._allows(ssn, victim, left)]

    reclaimable = preemptable

    def _allows(self, ssn: Session, task: int, left: dict[meta.Key, int]) -> bool:
        """Take one disruption from each budget that covers the task. False where one had none left."""
        pod = ssn.tasks.pod[task]
        if pod is None:
            return False
        allowed = True
        for budget in self._budgets.get(pod.metadata.namespace, ()):
            selector = budget.spec.selector
            if selector is None or not selector.matches(pod.metadata.labels or {}):
                continue
            if pod.metadata.name in (budget.status.disrupted_pods or {}):
                continue  # the disruption controller has counted it already
            key = budget.metadata.key
            left[key] = left.get(key, budget.status.disruptions_allowed) - 1
            allowed = allowed and left[key] >= 0
        return allowed
