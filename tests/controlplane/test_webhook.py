"""vc-webhook-manager as a process, asked by a real API server through the configurations of manifests/webhooks."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from extender.api.errors import ClusterError, Denied, NotFound
from extender.api.labels import GROUP_NAME, QUEUE_NAME_ANNOTATION, SCHEDULE
from extender.api.meta import (
    JOB,
    NAMESPACE,
    POD,
    POD_GROUP,
    QUEUE,
    REPLICA_SET,
    Json,
    Key,
    Kind,
    annotations_of,
    owner_reference,
)
from extender.cluster.kubernetes import KubernetesCluster
from tests.controlplane.daemons import WEBHOOKS, Daemons, admission, answers
from tests.controlplane.plane import Plane
from tests.controlplane.waiting import wait_until
from webhook.routes import ROUTES

QUEUE_NAME = "webhook-test"
TESTED = {"key": "pumice.io/webhook-test", "operator": "Exists"}  # only namespaces of these tests
CONTAINER = {"name": "main", "image": "example.test/app:1", "resources": {"requests": {"cpu": "1m"}}}


@pytest.fixture(scope="module")
def queue(kubernetes: KubernetesCluster) -> Iterator[None]:
    kubernetes.create(QUEUE, {"metadata": {"name": QUEUE_NAME}, "spec": {"weight": 1}})
    kubernetes.patch(QUEUE, Key("", QUEUE_NAME), {"status": {"state": "Open"}}, subresource="status")
    yield
    with suppress(NotFound):
        kubernetes.delete(QUEUE, Key("", QUEUE_NAME))


@pytest.fixture(scope="module")
def webhook(plane: Plane, kubernetes: KubernetesCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemons]:
    routes = [route for route in ROUTES if route.kind in (JOB, POD, POD_GROUP)]
    with admission(plane, kubernetes, tmp_path_factory.mktemp("webhook"), routes, TESTED) as running:
        yield running


@pytest.fixture
def ns(webhook: Daemons, queue: None, kubernetes: KubernetesCluster, new_namespace: Callable[[], str]) -> str:
    """A namespace of these tests; nothing in it asks for our scheduler. Its webhooks answer."""
    del webhook, queue  # they are there
    name = new_namespace()
    kubernetes.patch(NAMESPACE, Key("", name), {"metadata": {"labels": {TESTED["key"]: "true"}}})
    wait_until(lambda: answers(kubernetes, job(name)), "the webhooks to be asked about jobs")
    probe = pod(name, "probe", **{SCHEDULE: "true"})
    wait_until(lambda: scheduler_of(kubernetes.create(POD, probe, dry_run=True)) == "volcano", "and about pods")
    return name


def job(ns: str, name: str = "train", **spec: object) -> Json:
    tasks = [{"name": "w", "replicas": 2, "template": {"spec": {"containers": [CONTAINER], "restartPolicy": "Never"}}}]
    return {"metadata": {"name": name, "namespace": ns}, "spec": {"queue": QUEUE_NAME, "minAvailable": 2, "tasks": tasks, **spec}}


def pod(ns: str, name: str, **labels: str) -> Json:
    return {"metadata": {"name": name, "namespace": ns, "labels": labels}, "spec": {"containers": [CONTAINER]}}


def ask_for_our_scheduler(kubernetes: KubernetesCluster, ns: str) -> None:
    """And for a queue."""
    asking = {"labels": {SCHEDULE: "true"}, "annotations": {QUEUE_NAME_ANNOTATION: QUEUE_NAME}}
    kubernetes.patch(NAMESPACE, Key("", ns), {"metadata": asking})
    wait_until(lambda: scheduler_of(kubernetes.create(POD, pod(ns, "probe"), dry_run=True)) == "volcano", "the label to be seen")


def scheduler_of(made: Json) -> str:
    return str(made["spec"]["schedulerName"])


def exists(kubernetes: KubernetesCluster, kind: Kind, key: Key) -> bool:
    try:
        kubernetes.get(kind, key)
    except NotFound:
        return False
    return True


def test_a_job_gets_its_defaults(kubernetes: KubernetesCluster, ns: str) -> None:
    made = kubernetes.create(JOB, job(ns))
    assert (made["spec"]["schedulerName"], made["spec"]["maxRetry"]) == ("volcano", 3)
    assert made["spec"]["tasks"][0]["minAvailable"] == 2


def test_a_job_of_many_faults_is_refused_with_all_of_them(kubernetes: KubernetesCluster, ns: str) -> None:
    with pytest.raises(Denied, match=r'admission webhook "validatejob\.volcano\.sh" denied the request') as caught:
        kubernetes.create(JOB, job(ns, queue="nowhere", minAvailable=5))
    assert "nowhere" in str(caught.value)
    assert "minAvailable" in str(caught.value)


def test_a_foreign_pod_stays_as_it_is(kubernetes: KubernetesCluster, ns: str) -> None:
    assert scheduler_of(kubernetes.create(POD, pod(ns, "foreign"))) == "default-scheduler"


def test_a_pod_may_ask_for_itself(kubernetes: KubernetesCluster, ns: str) -> None:
    assert scheduler_of(kubernetes.create(POD, pod(ns, "mine", **{SCHEDULE: "true"}))) == "volcano"


def test_pods_of_a_workload_join_their_group(kubernetes: KubernetesCluster, ns: str) -> None:
    """In a namespace that asks; the group is the workload's, with what that says about it."""
    ask_for_our_scheduler(kubernetes, ns)
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [CONTAINER]}}
    owner = kubernetes.create(REPLICA_SET, {
        "metadata": {"name": "web", "namespace": ns, "annotations": {"scheduling.volcano.sh/group-min-member": "3"}},
        "spec": {"replicas": 3, "selector": {"matchLabels": labels}, "template": template},
    })  # fmt: skip
    wait_until(lambda: len(kubernetes.list(POD, ns, "app=web").objects) == 3, "three pods")
    key = Key(ns, f"podgroup-{owner['metadata']['uid']}")
    pods = kubernetes.list(POD, ns, "app=web").objects
    assert {(scheduler_of(each), annotations_of(each)[GROUP_NAME]) for each in pods} == {("volcano", key.name)}
    wait_until(lambda: exists(kubernetes, POD_GROUP, key), "the group")
    group = kubernetes.get(POD_GROUP, key)
    assert (group["spec"]["minMember"], group["spec"]["queue"]) == (3, QUEUE_NAME)
    assert group["metadata"]["ownerReferences"][0]["uid"] == owner["metadata"]["uid"]


def test_a_dry_run_makes_nothing(kubernetes: KubernetesCluster, ns: str) -> None:
    """What would be is shown: schedulerName and the name of the group."""
    ask_for_our_scheduler(kubernetes, ns)
    owner = kubernetes.create(REPLICA_SET, {
        "metadata": {"name": "none", "namespace": ns},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "x"}},
                 "template": {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [CONTAINER]}}},
    })  # fmt: skip
    asked = pod(ns, "dry")
    asked["metadata"]["ownerReferences"] = [owner_reference(owner)]
    shown = kubernetes.create(POD, asked, dry_run=True)
    assert annotations_of(shown)[GROUP_NAME] == f"podgroup-{owner['metadata']['uid']}"
    kubernetes.create(POD, pod(ns, "later"))  # of the same worker or another one, after it
    assert not exists(kubernetes, POD, Key(ns, "dry"))
    assert kubernetes.list(POD_GROUP, ns).objects == []


def test_while_it_is_down_foreign_pods_are_made_and_jobs_are_not(
    webhook: Daemons, kubernetes: KubernetesCluster, ns: str
) -> None:
    """The last test: it ends the webhook. Even pods that asked for it are made; the controllers make up for it."""
    ask_for_our_scheduler(kubernetes, ns)
    assert webhook.end(WEBHOOKS, signal.SIGTERM) == 0
    assert scheduler_of(kubernetes.create(POD, pod(ns, "foreign"))) == "default-scheduler"
    with pytest.raises(ClusterError, match="failed calling webhook"):
        kubernetes.create(JOB, job(ns, "refused"))
    log = webhook.says(WEBHOOKS)
    assert "Traceback" not in log, json.dumps(log[-2000:])
