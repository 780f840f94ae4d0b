"""Statement: all that mutates a session. It applies each operation at once and can take all of them back.

with ssn.statement() as stmt:
    stmt.allocate(tasks, nodes)
    if ssn.job_ready(job): stmt.commit()          # becomes operations
    elif ssn.job_pipelined(job): stmt.keep()      # holds the room for the rest of this session
                                                  # leaving otherwise undoes everything
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from extender.api.operations import Bind, ClaimsBound, Evict
from extender.core import status as st
from extender.core.axis import PODS

if TYPE_CHECKING:
    from extender.core.session import Session

_ALLOCATE, _PIPELINE, _EVICT = "allocate", "pipeline", "evict"


@dataclass(frozen=True, slots=True)
class Step:
    """One operation, as it was done."""

    what: str
    tasks: tuple[int, ...]  # of one job and one shape
    nodes: tuple[int, ...]
    old: int = st.PENDING  # status before an eviction
    reason: str = ""
    after_eviction: bool = False


class Statement:
    """Tasks of one call must be of one job and one shape (core/placement.py hands them out that way)."""

    def __init__(self, ssn: Session, *, trial: bool = False) -> None:
        self._ssn, self._trial = ssn, trial
        self._steps: list[Step] = []
        self._open = True

    def __enter__(self) -> Statement:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._open:
            self.discard()

    def __len__(self) -> int:
        return len(self._steps)

    @property
    def steps(self) -> tuple[Step, ...]:
        """What was done, for `replay`."""
        return tuple(self._steps)

    @property
    def evicted(self) -> list[int]:
        return [task for step in self._steps if step.what == _EVICT for task in step.tasks]

    # --- operations -----------------------------------------------------------------------------------------------------

    def allocate(self, tasks: Sequence[int], nodes: Sequence[int]) -> None:
        """Pending tasks take idle room: task i goes to node row nodes[i]."""
        self._do(Step(_ALLOCATE, tuple(tasks), tuple(nodes)))

    def pipeline(self, tasks: Sequence[int], nodes: Sequence[int], *, after_eviction: bool = False) -> None:
        """Pending tasks are promised room that is being released."""
        self._do(Step(_PIPELINE, tuple(tasks), tuple(nodes), after_eviction=after_eviction))

    def evict(self, task: int, reason: str) -> None:
        """A running or bound task gives its node back."""
        ssn = self._ssn
        self._do(Step(_EVICT, (task,), (int(ssn.task_node[task]),), old=int(ssn.task_status[task]), reason=reason))

    # --- endings --------------------------------------------------------------------------------------------------------

    def commit(self) -> None:
        """Every step becomes an operation for the cluster; allocated tasks are Binding from now on."""
        ssn = self._ssn
        binds: dict[int, list[Bind]] = {}
        for step in self._steps:
            for task in step.tasks:
                ssn.last_transaction.pop(task, None)
            if step.what == _ALLOCATE:
                job, request = ssn.job_of(step.tasks[0]), ssn.request(step.tasks[0])
                ssn.set_status(step.tasks, job, request, st.ALLOCATED, st.BINDING)
                made = [self._bind(task, node) for task, node in zip(step.tasks, step.nodes, strict=True)]
                binds.setdefault(job, []).extend(made)
            elif step.what == _EVICT:
                ssn.operations.append(self._evict(step))
        for job, made in binds.items():
            ssn.operations.extend(_all_waiting(made) if job >= 0 else made)
        self._open = False

    def _bind(self, task: int, node: int) -> Bind:
        ssn = self._ssn
        pod = ssn.tasks.pod[task]
        assert pod is not None
        first = ssn.before_bind(task)
        writes = tuple(each for each in first if not isinstance(each, ClaimsBound))
        awaits = next((each for each in first if isinstance(each, ClaimsBound)), None)
        return Bind(ssn.task_key(task), ssn.nodes.name[node], pod.metadata.uid, before=writes, awaits=awaits)

    def _evict(self, step: Step) -> Evict:
        ssn = self._ssn
        task = step.tasks[0]
        pod = ssn.tasks.pod[task]
        assert pod is not None
        return Evict(ssn.task_key(task), step.reason, pod.metadata.uid)

    def keep(self) -> None:
        """Nothing reaches the cluster, yet what was promised stays promised to the end of the session."""
        self._open = False

    def discard(self) -> None:
        """Undo everything, last first. What each task had is remembered for its message (closing.py)."""
        ssn = self._ssn
        for step in reversed(self._steps):
            if step.what != _EVICT:
                for task, node in zip(step.tasks, step.nodes, strict=True):
                    ssn.last_transaction[task] = (int(ssn.task_status[task]), node, step.after_eviction)
            self._undo(step)
        self._steps.clear()
        self._open = False

    def merge(self, other: Statement) -> None:
        """Take over the steps of another statement, which is then closed."""
        self._steps.extend(other._steps)
        other._steps = []
        other._open = False

    def replay(self, steps: Iterable[Step]) -> None:
        """Do again what was done and undone: the session must stand as it did then."""
        for step in steps:
            self._do(step)

    def take_back(self, task: int) -> None:
        """A task that another statement promised room is pending again."""
        self._undo(Step(_PIPELINE, (task,), (int(self._ssn.task_node[task]),)))

    def only_promise(self) -> None:
        """Whoever has taken idle room here is merely promised it: a commit then binds none of them."""
        steps = self.steps
        for step in reversed(steps):
            self._undo(step)
        self._steps.clear()
        self.replay(replace(step, what=_PIPELINE) if step.what == _ALLOCATE else step for step in steps)

    # --- the state itself -------------------------------------------------------------------------------------------------

    def _do(self, step: Step) -> None:
        ssn = self._ssn
        job, request = ssn.job_of(step.tasks[0]), ssn.request(step.tasks[0])
        if step.what == _EVICT:
            ssn.set_status(step.tasks, job, request, step.old, st.RELEASING)
            self._release(step, +1)
            ssn.tell("deallocated", job, step.tasks, step.nodes, request)
        else:
            ssn.task_node[list(step.tasks)] = step.nodes
            new = st.ALLOCATED if step.what == _ALLOCATE else st.PIPELINED
            ssn.set_status(step.tasks, job, request, st.PENDING, new)
            self._take(step, +1)
            if step.after_eviction:
                ssn.promised_by_eviction.update(step.tasks)
            ssn.tell("allocated", job, step.tasks, step.nodes, request)
        self._steps.append(step)

    def _undo(self, step: Step) -> None:
        ssn = self._ssn
        job, request = ssn.job_of(step.tasks[0]), ssn.request(step.tasks[0])
        if step.what == _EVICT:
            ssn.set_status(step.tasks, job, request, st.RELEASING, step.old)
            self._release(step, -1)
            ssn.tell("allocated", job, step.tasks, step.nodes, request)
        else:
            now = st.ALLOCATED if step.what == _ALLOCATE else st.PIPELINED
            ssn.set_status(step.tasks, job, request, now, st.PENDING)
            self._take(step, -1)
            ssn.task_node[list(step.tasks)] = -1
            ssn.promised_by_eviction.difference_update(step.tasks)
            ssn.tell("deallocated", job, step.tasks, step.nodes, request)

    def _take(self, step: Step, sign: int) -> None:
        """Pending tasks take (or give back) room on their nodes."""
        ssn = self._ssn
        shape = ssn.shape_of(step.tasks[0])
        job = ssn.job_of(step.tasks[0])
        if job >= 0 and shape.best_effort:
            ssn.job_pending_best_effort[job] -= sign * len(step.tasks)
        request, width = shape.request, len(shape.request)
        rows: Any
        if len(step.nodes) == 1:
            rows, change, nonzero = step.nodes[0], sign * request, sign * shape.nonzero
            ssn.touched.append(rows)
        else:
            rows, times = np.unique(np.array(step.nodes), return_counts=True)
            change, nonzero = sign * times[:, None] * request, sign * times[:, None] * shape.nonzero
            ssn.touched.extend(rows.tolist())
        ssn.requested[rows, :width] += change
        ssn.nonzero[rows] += nonzero
        ssn.future[rows, :width] -= change
        if step.what == _ALLOCATE:
            ssn.used[rows, :width] += change
            ssn.idle[rows, :width] -= change

    def _release(self, step: Step, sign: int) -> None:
        """A victim's room becomes (or stops being) room that is being released."""
        ssn = self._ssn
        node = step.nodes[0]
        shape = ssn.shape_of(step.tasks[0])
        change, width = sign * shape.request, len(shape.request)
        ssn.releasing[node, :width] += change
        ssn.future[node, :width] += change
        ssn.touched.append(node)
        if self._scores_follow(step.tasks[0], sign):
            ssn.requested[node, :width] -= change
            ssn.nonzero[node] -= sign * shape.nonzero
        else:
            ssn.requested[node, PODS] -= change[PODS]

    def _scores_follow(self, task: int, sign: int) -> bool:
        """Scores follow an eviction, but not its being taken back, unless it was a mere trial (Session.displaceable)."""
        known = self._ssn.displaceable
        if task not in known and sign < 0 and not self._trial:
            known.add(task)
            return False
        return task not in known


def _all_waiting(binds: list[Bind]) -> list[Bind]:
    """Where one member of a gang has to wait for its claims the others wait for it."""
    seconds = max((bind.awaits.seconds for bind in binds if bind.awaits is not None), default=None)
    if seconds is None:
        return binds
    return [bind if bind.awaits is not None else replace(bind, awaits=ClaimsBound((), seconds)) for bind in binds]
