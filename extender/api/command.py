"""Command (bus.volcano.sh/v1alpha1): a flat request to act on a Job or a Queue; whoever takes it deletes it first."""

from __future__ import annotations

from extender.api import job, queue
from extender.api.meta import JOB, QUEUE, Kind
from extender.api.views import Metadata, OwnerReference, View


class Command(View, frozen=True):
    metadata: Metadata = Metadata()
    action: str = ""
    target: OwnerReference = OwnerReference()
    reason: str = ""
    message: str = ""


# What a Command may ask of whom; a target of another kind, or another word, comes to nothing. That of a task or pod alone
# is for policies: a Command cannot name one.
ACTIONS: dict[Kind, tuple[str, ...]] = {
    JOB: (job.ABORT_JOB, job.COMPLETE_JOB, job.RESTART_JOB, job.RESUME_JOB, job.SYNC_JOB, job.TERMINATE_JOB),
    QUEUE: (queue.CLOSE_QUEUE, queue.OPEN_QUEUE, queue.SYNC_QUEUE),
}
