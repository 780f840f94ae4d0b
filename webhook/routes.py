"""All admissions in one table: what is sent where, and who answers. Serving and the webhook manifests come from here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from extender.api import shapes as pod_shapes
from extender.api.errors import ConfError, nearest
from extender.api.meta import CRON_JOB, HYPER_NODE, JOB, JOB_FLOW, NAMESPACE, POD, POD_GROUP, QUEUE, Kind
from extender.cluster.port import AdmissionRequest
from webhook import shapes
from webhook.cronjobs import validate as cronjobs_validate
from webhook.hypernodes import validate as hypernodes_validate
from webhook.jobflows import validate as jobflows_validate
from webhook.jobs import mutate as jobs_mutate
from webhook.jobs import validate as jobs_validate
from webhook.podgroups import mutate as podgroups_mutate
from webhook.podgroups import validate as podgroups_validate
from webhook.pods import mutate as pods_mutate
from webhook.pods import validate as pods_validate
from webhook.queues import mutate as queues_mutate
from webhook.queues import validate as queues_validate
from webhook.settings import Settings
from webhook.verdict import Verdict
from webhook.view import ClusterView

Handler = Callable[[AdmissionRequest, ClusterView, Settings], Verdict]

CREATE, UPDATE, DELETE = "CREATE", "UPDATE", "DELETE"


@dataclass(frozen=True, slots=True)
class Route:
    """`path` is the URL, `name` the webhook's name in its configuration, `shape` what the object must look like, `reads`
    the kinds of which the handler sees a ClusterView."""

    path: str
    name: str
    kind: Kind
    operations: tuple[str, ...]
    shape: pod_shapes.Fields = field(repr=False)
    handler: Handler
    reads: tuple[Kind, ...] = ()
    other_operations: str = "refused"  # or "allowed"

    @property
    def mutating(self) -> bool:
        return self.path.endswith("/mutate")


ROUTES: tuple[Route, ...] = (
    Route("/jobs/mutate", "mutatejob.volcano.sh", JOB, (CREATE,), shapes.JOB, jobs_mutate.mutate),
    Route("/jobs/validate", "validatejob.volcano.sh", JOB, (CREATE, UPDATE), shapes.JOB, jobs_validate.validate,
          (QUEUE,)),
    Route("/podgroups/mutate", "mutatepodgroup.volcano.sh", POD_GROUP, (CREATE,), shapes.POD_GROUP, podgroups_mutate.mutate,
          (NAMESPACE,)),
    Route("/podgroups/validate", "validatepodgroup.volcano.sh", POD_GROUP, (CREATE,), shapes.POD_GROUP,
          podgroups_validate.validate, (QUEUE,)),
    Route("/queues/mutate", "mutatequeue.volcano.sh", QUEUE, (CREATE,), shapes.QUEUE, queues_mutate.mutate),
    Route("/queues/validate", "validatequeue.volcano.sh", QUEUE, (CREATE, UPDATE, DELETE), shapes.QUEUE,
          queues_validate.validate, (QUEUE,)),
    Route("/pods/mutate", "mutatepod.volcano.sh", POD, (CREATE,), pod_shapes.POD, pods_mutate.mutate, (NAMESPACE,)),
    Route("/pods/validate", "validatepod.volcano.sh", POD, (CREATE,), pod_shapes.POD, pods_validate.validate),
    Route("/jobflows/validate", "validatejobflow.volcano.sh", JOB_FLOW, (CREATE, UPDATE), shapes.JOB_FLOW,
          jobflows_validate.validate),
    Route("/cronjobs/validate", "validatecronjob.volcano.sh", CRON_JOB, (CREATE, UPDATE), shapes.CRON_JOB,
          cronjobs_validate.validate),
    Route("/hypernodes/validate", "validatehypernodes.volcano.sh", HYPER_NODE, (CREATE, UPDATE), shapes.HYPER_NODE,
          hypernodes_validate.validate, other_operations="allowed"),
)  # fmt: skip

BY_PATH: Mapping[str, Route] = {route.path: route for route in ROUTES}


def enabled_paths(text: str) -> tuple[str, ...]:
    """The value of --enabled-admission. Raises ConfError on a path that is not served; an empty value serves nothing."""
    paths = tuple(path for word in text.split(",") if (path := word.strip()))
    for path in paths:
        if path not in BY_PATH:
            raise ConfError(f"--enabled-admission: no such path '{path}'{nearest(path, BY_PATH)}")
    return paths
