"""Could it ever fit? What a job asks, held against nodes as if nothing ran on them.

Only what is certain is said: a bound that no placement can beat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator

import numpy as np
from numpy.typing import NDArray

from extender.core import status as st
from extender.core.axis import IntR
from extender.core.kube import inter_pod_affinity, ports
from extender.core.kube.neighbours import Neighbours
from extender.core.kube.pod_terms import Kind, terms
from extender.core.plugin import TaskClass
from extender.core.reasons import FitErrors
from extender.core.session import Session
from extender.core.volumes.needed import ALL, needed
from extender.core.volumes.restrictions import IN_USE
from extender.core.volumes.stock import Stock


def too_large(ssn: Session, cls: TaskClass) -> str:
    """`cpu 9 asked, the largest node has 8`, for the first resource that no node has enough of; empty where none is."""
    plan = ssn.plan(cls)
    largest = np.where((plan.candidates() | ssn.elsewhere)[:, None], ssn.allocatable, 0).max(axis=0, initial=0)
    for column in plan.asked:
        if cls.request[column] > largest[column]:
            asked, most = (ssn.axis.said(int(column), float(amounts[column])) for amounts in (cls.request, largest))
            return f"{ssn.axis.names[column]} {asked} asked, the largest node has {most}"
    return ""


def gang_too_large(ssn: Session, job: int) -> str:
    """Why even an empty cluster could not hold the job's minimum; empty where that is not certain.

    Of each class at least `minimum - everything else` tasks must run; no more than the sum over nodes of how often one of
    them fits can, and where they keep apart from each other no more than one in each domain."""
    minimum = int(ssn.jobs.min_available[job])
    tasks = [t for t in ssn.jobs.tasks[job] if ssn.task_status[t] not in st.ENDED_SET and not ssn.shape_of(t).best_effort]
    ended = sum(int(ssn.job_counts[job][code]) for code in st.ENDED_SET)
    others = len(ssn.jobs.tasks[job]) - len(tasks) - ended + int(ssn.job_counts[job][st.SUCCEEDED])
    count = Counter(ssn.task_class(task).id for task in tasks)
    causes = {cause for task in ssn.jobs.tasks[job] if task in ssn.fit_errors for cause in ssn.fit_errors[task].counts}
    for task in {ssn.task_class(task).id: task for task in tasks}.values():
        cls = ssn.task_class(task)
        needed = minimum - others - (len(tasks) - count[cls.id])
        most = _most(ssn, cls, causes) if needed > 1 else needed
        if needed > most:
            return f"even an empty cluster has room for {most} of the {needed} that must run at once"
    return _claim_of_one(ssn, job, minimum) if IN_USE in causes else ""


def _claim_of_one(ssn: Session, job: int, minimum: int) -> str:
    """Of pods that mount a claim of the mode ReadWriteOncePod one runs at a time."""
    stock = Stock(ssn.snapshot)
    living = (ssn.snapshot.tasks.pod[t] for t in ssn.jobs.tasks[job] if ssn.task_status[t] not in st.ENDED_SET)
    members = [needed(pod, stock, ALL).exclusive for pod in living if pod is not None]
    ended = int(ssn.job_counts[job][st.SUCCEEDED])
    for claim, users in Counter(claim for claims in members for claim in claims).items():
        at_once = minimum - ended - (len(members) - users)
        if at_once > 1:
            return f"claim {claim.name} is for one pod at a time (ReadWriteOncePod), {at_once} that mount it must run at once"
    return ""


def members_too_large(ssn: Session, job: int, asked: IntR) -> str:
    """Before there are pods: one of them must ask at least the average, and no node has that. Empty where that is not so.

    Only of a minimum that a controller has summed up; what people write may be more than the pods ask."""
    group = ssn.jobs.group[job]
    minimum = int(ssn.jobs.min_available[job])
    if group is None or not group.metadata.owner_references or minimum < 1:
        return ""
    largest = np.where(ssn.nodes.exists[:, None], ssn.allocatable, 0).max(axis=0, initial=0)
    for column in np.flatnonzero(asked > minimum * largest):
        each, most = ssn.axis.said(int(column), -(-asked[column] // minimum)), ssn.axis.said(int(column), largest[column])
        return f"{ssn.axis.names[column]} {each} asked by one of its pods at least, the largest node has {most}"
    return ""


def _most(ssn: Session, cls: TaskClass, causes: Container[str]) -> int:
    """How many tasks of the class the nodes could hold if they were empty. `causes`: why tasks of the job were refused."""
    plan = ssn.plan(cls)
    open_nodes = (plan.candidates() | ssn.elsewhere) & plan.not_ruled_out()
    times = ssn.allocatable[:, plan.asked] // plan.amount
    times = np.where(open_nodes, times.min(axis=1), 0).clip(min=0)
    most = int(times.sum())
    for domains in _apart(ssn, cls, causes):
        counted = domains != 0
        most = min(most, len(np.unique(domains[counted & (times > 0)])) + int(times[~counted].sum()))
    return most


def _apart(ssn: Session, cls: TaskClass, causes: Container[str]) -> Iterator[NDArray[np.int32]]:
    """(N,) domains that take one task of the class each, 0 for nodes that take any number; for each reason that was met."""
    n = len(ssn.nodes)
    if ports.REASON in causes and ports.host_ports(cls.spec):
        yield np.arange(1, n + 1, dtype=np.int32)
    if inter_pod_affinity.ANTI_AFFINITY_REASON in causes:
        namespace = Neighbours(ssn.snapshot).namespace_labels(cls.namespace)
        for term in terms(cls.shape, cls.namespace):
            if term.kind is Kind.ANTI_AFFINITY and term.matches(cls.namespace, cls.labels, namespace):
                yield ssn.nodes.labels.column(term.topology_key, n)


def with_sizes(ssn: Session, cls: TaskClass, errors: FitErrors) -> str:
    """The errors of a task that can never fit, with what it asks and what there is."""
    sizes = too_large(ssn, cls)
    return f"{errors} It asks too much: {sizes}." if sizes else str(errors)
