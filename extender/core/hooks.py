"""What a plugin may answer: every hook with its signature. docs/plugins.md is made of this and of extension_points.py.

Jobs, queues, tasks and nodes are row numbers; `cls` is a class of tasks that cannot be told apart when it comes to nodes
(plugin.py). K places are judged at once (`At`), N is the number of all nodes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from extender.api.operations import Prior
from extender.core.axis import BoolN, FloatN, IntN, IntR, Rows

if TYPE_CHECKING:
    from extender.core.hyper_nodes import Eviction, Gradient, HyperNode, Purpose
    from extender.core.plugin import Across, At, Change, Refusal, Refused, TaskClass, Vote
    from extender.core.session import Session
    from extender.core.sub_jobs import SubJob

Key = Any  # a number, a string, or a tuple of such; the keys of one hook must be comparable with each other


class Hooks(Protocol):
    """No plugin has all of these. A hook that is not among the extension points is asked of each plugin by itself."""

    # --- order --------------------------------------------------------------------------------------------------------

    def job_order(self, ssn: Session, job: int) -> Key:
        """Which job of a queue goes first; asked again when shares move."""

    def queue_order(self, ssn: Session, queue: int) -> Key:
        """Which queue goes first."""

    def task_order(self, ssn: Session, task: int) -> Key:
        """Which task of a job goes first."""

    def sub_job_order(self, ssn: Session, sub_job: SubJob) -> Key:
        """Which sub-job of a job goes first, among those that its minimum needs and again among the others."""

    def cluster_order(self, ssn: Session, cluster: str) -> Key:
        """Which cluster goes first. No action of Pumice asks it."""

    def victim_queue_order(self, ssn: Session, queue: int, preemptor_queue: int) -> Key:
        """From which queue tasks are evicted first."""

    # --- nodes --------------------------------------------------------------------------------------------------------

    def distinguish(self, ssn: Session, task: int) -> Hashable:
        """What makes this plugin treat tasks differently, besides what they ask for and say: it parts classes."""

    def pre_predicate(self, ssn: Session, cls: TaskClass) -> str | None:
        """Why no node at all can take the class."""

    def predicate(self, ssn: Session, cls: TaskClass, at: At) -> list[Refusal]:
        """Which of the K places refuse the class, each judged by itself."""

    def predicate_across(self, ssn: Session, cls: TaskClass) -> list[Refusal] | None:
        """Which of the N nodes refuse, where that depends on other nodes; asked again after each placement. None: it does not
        concern the class."""

    def node_order(self, ssn: Session, cls: TaskClass, at: At) -> FloatN | None:
        """(K,) points for the places, each judged by itself."""

    def batch_node_order(self, ssn: Session, cls: TaskClass, feasible: BoolN) -> Across | None:
        """(N,) points that depend on which nodes are feasible."""

    def node_map(self, ssn: Session, cls: TaskClass, at: At) -> FloatN | None:
        """(K,) raw points for the places, which `node_reduce` then brings to a scale."""

    def node_reduce(self, ssn: Session, cls: TaskClass, points: IntN, feasible: BoolN) -> None:
        """Change the (N,) points of `node_map` in place; only those of feasible nodes matter."""

    def best_node(self, ssn: Session, cls: TaskClass, scores: FloatN) -> int | None:
        """The node to take instead of the one with the best of the (N,) scores; -inf: not feasible."""

    # --- HyperNodes ---------------------------------------------------------------------------------------------------

    def hyper_node_gradient_for_job(self, ssn: Session, job: int, root: HyperNode, purpose: Purpose) -> Gradient:
        """In which HyperNodes to look for room, the next list only if no HyperNode of the one before has it. Asked for jobs
        with sub-groups or a network topology."""

    def hyper_node_gradient_for_sub_job(self, ssn: Session, sub_job: SubJob, root: HyperNode, purpose: Purpose) -> Gradient:
        """The same for a sub-job, within the HyperNode that its job is tried in."""

    def hyper_node_order(self, ssn: Session, sub_job: SubJob, candidates: Mapping[str, HyperNode]) -> Mapping[str, float]:
        """Points for the HyperNodes of one list that have room for the sub-job."""

    # --- victims ------------------------------------------------------------------------------------------------------

    def preemptable(self, ssn: Session, task: int, candidates: Sequence[int]) -> Sequence[int] | None:
        """Which of the candidates of its queue or job may be evicted for the task, in their order. None abstains."""

    def reclaimable(self, ssn: Session, task: int, candidates: Sequence[int]) -> Sequence[int] | None:
        """The same for candidates of other queues."""

    def unified_evictable(self, ssn: Session, eviction: Eviction, candidates: Sequence[int]) -> Sequence[int] | None:
        """The same for a whole job at once. Asked by actions that evict for gangs."""

    def evictable(self, ssn: Session, hook: str, task: int, rows: Rows) -> BoolN:
        """For speed, beside `preemptable` or `reclaimable` (`hook`): (K,) which tasks it may give up at all. It never gives up
        one that is False here."""

    def victim_tasks(self, ssn: Session, tasks: Sequence[int]) -> Sequence[int]:
        """Which of the running tasks are to be evicted whoever waits."""

    # --- queues -------------------------------------------------------------------------------------------------------

    def overused(self, ssn: Session, queue: int) -> bool:
        """The queue has had its share: none of its jobs is placed."""

    def preemptive(self, ssn: Session, queue: int, request: IntR) -> bool:
        """The queue may take back from others for a task that asks `request`."""

    def allocatable(self, ssn: Session, queue: int, request: IntR, count: int) -> int:
        """How many of `count` tasks that ask `request` each the queue may take."""

    def allocatable_claims(self, ssn: Session, queue: int, tasks: Sequence[int]) -> int:
        """How many of the tasks, in their order, for what `request` does not show."""

    def explain_queue(self, ssn: Session, queue: int, request: IntR) -> tuple[str, dict[str, object]] | None:
        """Why `allocatable` takes no task that asks `request`: a text, and numbers by resource, such as
        `{"cpu": {"used": "12", "asked": "8", "capability": "16"}}`."""

    # --- jobs ---------------------------------------------------------------------------------------------------------

    def job_valid(self, ssn: Session, job: int) -> Refused | None:
        """Why the job cannot run whatever room there is."""

    def job_ready(self, ssn: Session, job: int) -> bool:
        """It has enough tasks placed to be bound."""

    def job_pipelined(self, ssn: Session, job: int) -> Vote:
        """It may keep room that is about to become free."""

    def sub_job_ready(self, ssn: Session, sub_job: SubJob) -> bool:
        """As job_ready, for a sub-job; asked where the job has sub-groups."""

    def sub_job_pipelined(self, ssn: Session, sub_job: SubJob) -> Vote:
        """As job_pipelined, for a sub-job; asked where the job has sub-groups."""

    def tasks_to_ready(self, ssn: Session, job: int) -> int:
        """For speed: at least so many tasks more does `job_ready` wait for. They are placed at once."""

    def tasks_to_sub_job_ready(self, ssn: Session, sub_job: SubJob) -> int:
        """The same for `sub_job_ready`."""

    def job_starving(self, ssn: Session, job: int) -> bool:
        """It may preempt and reclaim."""

    def job_enqueueable(self, ssn: Session, job: int) -> Vote:
        """It may leave Pending. Who rejects says why in `ssn.enqueue_refusals[job]`, a NotAdmitted."""

    def job_enqueued(self, ssn: Session, job: int) -> None:
        """It has left Pending."""

    def target_job(self, ssn: Session, jobs: Sequence[int]) -> int | None:
        """The job that nodes are to be reserved for. No action of Pumice asks it."""

    def reserved_nodes(self, ssn: Session) -> None:
        """Reserve nodes for the target job. No action of Pumice asks it."""

    # --- what happens -------------------------------------------------------------------------------------------------

    def before_bind(self, ssn: Session, task: int) -> list[Prior]:
        """What must be written, and come about then, before the task, which has its node, may be bound."""

    def allocated(self, ssn: Session, change: Change) -> None:
        """Tasks of one class and job took nodes, or were promised them. Also called to undo `deallocated`: the two must mirror
        each other."""

    def deallocated(self, ssn: Session, change: Change) -> None:
        """Tasks gave their nodes back, or are being evicted. Also called to undo `allocated`."""
