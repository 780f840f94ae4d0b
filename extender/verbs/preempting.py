"""Who leaves for whom, where kube-scheduler evicts: it takes pods from one node at a time, and knows nothing of gangs.

    who_leaves   for a member of a gang: the victims that the preempt action would choose, on this member's node
    untorn       for any pod: kube-scheduler's own choice, completed or dropped so that no gang is left in part

A gang that is on its way to its nodes is left alone until it has arrived: to evict pods that are being bound tears it in the air.

Source of what an answer must look like: k8s.io/kubernetes v1.36.1, pkg/scheduler/framework/preemption."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from extender.actions import preempt
from extender.actions.starving import make_room_for_job
from extender.api import meta
from extender.api.node import PodDisruptionBudget
from extender.api.pod import Pod
from extender.core import status as st
from extender.core.gang_books import GangBooks
from extender.core.members import binding_roles
from extender.core.mirror import Mirror
from extender.core.session import Session
from extender.core.victims import BoolT, Manner, VictimSearch
from extender.verbs.wire import Victims


def who_leaves(ssn: Session, task: int) -> dict[str, Sequence[str]]:
    """Node -> uids of those who would have to leave it, for the task that asked; empty where that helps nobody.

    The whole gang must be able to start once all have left. The session is of no use afterwards."""
    job = ssn.job_of(task)
    if not ssn.conf.has_action("preempt") or ssn.job_phase[job] <= st.PHASE_PENDING or ssn.job_valid(job) is not None:
        return {}
    search = VictimSearch(ssn, "preemptable", "preempt", Manner())
    lower = _lower_priority(ssn, task)

    def candidates(asking: int) -> BoolT:
        return preempt.tenants(ssn, search, asking, own_job=False) & lower

    plan = ssn.plan(ssn.task_class(task))
    plan.refresh()
    roomy = plan.fits_idle.copy()
    make_room_for_job(ssn, search, job, candidates)
    node = int(ssn.task_node[task])
    if node < 0 or roomy[node]:  # with room on the node kube-scheduler finds nobody to evict, which it takes for an error
        return {}
    uids = [_uid(ssn, victim) for victim, for_whom in ssn.evicted_for.items() if for_whom == task]
    return {ssn.nodes.name[node]: uids} if uids else {}


def _lower_priority(ssn: Session, task: int) -> BoolT:
    """(T,) pods whose own priority is below that of the task: kube-scheduler evicts no others."""
    mine = ssn.tasks.pod[task]
    assert mine is not None
    lower: BoolT = np.array(
        [pod is not None and pod.priority < mine.priority for pod in ssn.tasks.pod[: len(ssn.tasks)]], dtype=bool
    )
    return lower


def _uid(ssn: Session, task: int) -> str:
    pod = ssn.tasks.pod[task]
    return pod.metadata.uid if pod is not None else ""


def untorn(mirror: Mirror, books: GangBooks, preemptor: Pod, chosen: Mapping[str, Victims]) -> dict[str, Victims]:
    """Nodes whose victims leave no gang in part: a gang that would be short of its minimum goes whole, or the node is dropped."""
    kept = {}
    for node, victims in chosen.items():
        row = mirror.nodes.rows.get(node)
        if row is None or not mirror.nodes.exists[row]:
            continue
        whole = _whole(mirror, books, preemptor, row, victims)
        if whole is not None and whole.uids:
            kept[node] = whole
    return kept


def _whole(mirror: Mirror, books: GangBooks, preemptor: Pod, node: int, victims: Victims) -> Victims | None:
    by_uid = {pod.metadata.uid: task for task in mirror.nodes.tasks[node] if (pod := mirror.tasks.pod[task]) is not None}
    leaving = {by_uid[uid] for uid in victims.uids if uid in by_uid}
    if len(leaving) < len(victims.uids):
        return None  # kube-scheduler and we do not see the same pods on the node
    more: set[int] = set()
    for job in {int(mirror.tasks.job[task]) for task in leaving} - {-1}:
        ready = {task for task in mirror.jobs.tasks[job] if st.IS_READY[mirror.tasks.status[task]]}
        if _short(mirror, job, ready):
            continue  # in part already
        if _short(mirror, job, ready - _under_way(mirror, books, job)):
            return None
        if _short(mirror, job, ready - leaving):
            holding = {task for task in ready if mirror.tasks.node[task] >= 0 and st.IS_ALLOCATED[mirror.tasks.status[task]]}
            more |= holding - leaving
    if not more:
        return victims
    if any(mirror.tasks.node[task] != node or not _may_leave(mirror, preemptor, task) for task in more):
        return None
    pods = [pod for task in leaving | more if (pod := mirror.tasks.pod[task]) is not None]
    pods.sort(key=lambda pod: (-pod.priority, pod.metadata.name))  # kube-scheduler takes the first for the most important one
    return Victims(tuple(pod.metadata.uid for pod in pods), _violations(mirror, pods))


def _short(mirror: Mirror, job: int, tasks: Collection[int]) -> bool:
    """Are these too few for the gang, or of one of its roles?"""
    group = mirror.jobs.group[job]
    roles = Counter(mirror.tasks.role[task] for task in tasks)
    least = binding_roles(group) if group is not None else {}
    return len(tasks) < mirror.jobs.min_available[job] or any(roles[role] < count for role, count in least.items())


def _under_way(mirror: Mirror, books: GangBooks, job: int) -> set[int]:
    """Members whose node is kept, or that are being bound to it."""
    gang = mirror.jobs.key[job]
    held = books.of(gang) if gang is not None else None
    return {mirror.tasks.rows[seat.bind.pod] for seat in held.seats.values()} if held is not None else set()


def _may_leave(mirror: Mirror, preemptor: Pod, task: int) -> bool:
    """As kube-scheduler chooses: it evicts lower priorities only; nor is a pod added that says of itself that it may not be."""
    pod = mirror.tasks.pod[task]
    return pod is not None and pod.priority < preemptor.priority and bool(mirror.tasks.preemptable[task])


def _violations(mirror: Mirror, pods: Iterable[Pod]) -> int:
    """How many of the victims find a disruption budget of theirs used up, as kube-scheduler counts them."""
    budgets = [each for each in mirror.facts[meta.PDB].values() if isinstance(each, PodDisruptionBudget)]
    left = {budget.metadata.key: budget.status.disruptions_allowed for budget in budgets}
    violations = 0
    for pod in pods:
        mine = [budget for budget in budgets if _covers(budget, pod)]
        for budget in mine:
            left[budget.metadata.key] -= 1
        violations += any(left[budget.metadata.key] < 0 for budget in mine)
    return violations


def _covers(budget: PodDisruptionBudget, pod: Pod) -> bool:
    selector = budget.spec.selector
    if selector is None or selector.empty or budget.metadata.namespace != pod.metadata.namespace or not pod.metadata.labels:
        return False
    return selector.matches(pod.metadata.labels) and pod.metadata.name not in (budget.status.disrupted_pods or {})
