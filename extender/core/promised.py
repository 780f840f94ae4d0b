"""Nodes that earlier sessions have promised, by evicting for them: whoever has such a promise does not evict once more."""

from __future__ import annotations

from extender.api.pod import DISRUPTION_TARGET, PREEMPTED, Pod
from extender.core.session import Session


def waits_for_victims(ssn: Session, task: int) -> bool:
    """An earlier session promised the task a node, and who must leave it has not left yet: nobody else need go.

    A promise that cannot be kept any more (the node is gone, or refuses for good) binds nobody. A node that has room by now is
    no reason to wait either: it will be found first, and taking it lets the rest of a gang go on."""
    pod = ssn.tasks.pod[task]
    node = ssn.nodes.rows.get(pod.status.nominated_node_name) if pod is not None else None
    if pod is None or node is None or not ssn.candidates[node]:
        return False
    plan = ssn.plan(ssn.task_class(task))
    plan.refresh()
    refusals = [refusal for refusal in plan.every_refusal() if refusal.mask[node]]
    if any(refusal.unresolvable for refusal in refusals) or (not refusals and plan.fits_future[node]):
        return False
    tenants = (ssn.tasks.pod[tenant] for tenant in ssn.nodes.tasks[node])
    return any(_leaves_for_another(tenant) and tenant.priority < pod.priority for tenant in tenants if tenant is not None)


def _leaves_for_another(pod: Pod) -> bool:
    """Terminating because the scheduler took its place."""
    return pod.metadata.deletion_timestamp is not None and any(
        each.type == DISRUPTION_TARGET and each.status == "True" and each.reason == PREEMPTED
        for each in pod.status.conditions or ()
    )
