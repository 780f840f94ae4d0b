"""What `pumice up` says while it runs: one line for each job that is placed, waits, or loses pods; nothing twice.

12:03:41  default/train: 4 pods placed: node-1 x2, node-2 x2
12:03:42  default/big waits: gang of 8: 4 fit, 4 lack a node; 0/2 nodes are unavailable ... [InsufficientResources]"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime

from extender.api.grouping import without_uid
from extender.api.meta import Key
from extender.api.operations import Bind, Evict
from extender.loop import Cycle

_NODES = 4  # nodes of a job that are named

Say = Callable[[str], None]


class Telling:
    """An observer of the loop. `say` gets lines without an end."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._waits: dict[str, tuple[str, str]] = {}  # job -> what was said last

    def __call__(self, cycle: Cycle) -> None:
        at = datetime.fromtimestamp(cycle.at).strftime("%H:%M:%S")
        for line in (*self._placed(cycle), *self._evicted(cycle), *self._waiting(cycle)):
            self._say(f"{at}  {line}")

    def _placed(self, cycle: Cycle) -> Iterator[str]:
        failed = {id(failure.operation) for failure in cycle.failures}
        nodes: dict[str, Counter[str]] = defaultdict(Counter)
        for each in cycle.result.operations:
            if isinstance(each, Bind) and id(each) not in failed:
                nodes[_job_of(cycle, each)][each.node] += 1
        for job, counts in nodes.items():
            pods = sum(counts.values())
            yield f"{job}: {pods} pod{'s' if pods > 1 else ''} placed: {_named(counts)}"
        for failure in cycle.failures:
            if isinstance(failure.operation, Bind):
                yield f"{failure.operation.pod} could not be bound to {failure.operation.node}: {failure.error}"

    def _evicted(self, cycle: Cycle) -> Iterator[str]:
        for each in cycle.result.operations:
            if isinstance(each, Evict):
                yield f"{each.pod} evicted: {each.message or each.reason}"

    def _waiting(self, cycle: Cycle) -> Iterator[str]:
        waits = {each.job: (str(each.reason), each.message) for each in cycle.result.waiting}
        for job, (reason, message) in waits.items():
            if self._waits.get(job) != (reason, message):
                yield f"{without_uid(Key(*job.split('/', 1)))} waits: {message} [{reason}]"
        self._waits = waits


def _job_of(cycle: Cycle, bind: Bind) -> str:
    """A pod without a group stands for itself."""
    ssn = cycle.result.session
    row = ssn.tasks.rows.get(bind.pod)
    job = int(ssn.tasks.job[row]) if row is not None else -1
    return without_uid(ssn.job_key(job)) if job >= 0 else f"Pod {bind.pod}"


def _named(counts: Counter[str]) -> str:
    shown = [f"{node} x{count}" if count > 1 else node for node, count in counts.most_common(_NODES)]
    more = len(counts) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
