"""Each program under its own account on a real API server: all of its work gets done, and nothing is refused."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from base64 import b64decode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import urllib3

from certs.install import Place, keep
from extender.api.errors import AlreadyExists, NotFound
from extender.api.labels import RETRY
from extender.api.meta import (
    COMMAND,
    CONFIG_MAP,
    DEPLOYMENT,
    EVENT,
    HYPER_NODE,
    JOB,
    JOB_FLOW,
    JOB_TEMPLATE,
    LEASE,
    NODE,
    NODE_SHARD,
    POD,
    POD_GROUP,
    PVC,
    QUEUE,
    REPLICA_SET,
    SECRET,
    SERVICE,
    VALIDATING_WEBHOOKS,
    Json,
    Key,
    Kind,
    annotations_of,
    key_of,
    owner_reference,
)  # fmt: skip
from extender.api.operations import Create
from extender.cluster.clock import SystemClock
from extender.cluster.kubernetes import KubernetesCluster, connect
from extender.testing.builders import Built, node, podgroup, task
from tests.controlplane.plane import Plane
from tests.controlplane.processes import free_ports
from tests.controlplane.waiting import wait_until
from tests.manifests.reading import MANIFESTS, installed, objects, of_kind
from tests.manifests.test_overlays import path_of
from webhook.errands import Errands
from webhook.routes import ROUTES
from webhook.watched import WatchedView

SYSTEM = "volcano-system"
EXTENDER = "vc-extender"
PROGRAMS = {"volcano-scheduler": "extender.cli", "volcano-controllers": "controller.cli", EXTENDER: "extender.cli"}
RIGHTS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
SHORT, LONG = {"pumice.io/run-seconds": "1"}, {"pumice.io/run-seconds": "600"}


@pytest.fixture(scope="module", autouse=True)
def _rights(plane: Plane) -> Iterator[None]:
    """Accounts and roles of the manifests, really installed, and seen by whoever decides in the API server."""
    plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": SYSTEM}})
    more = [*objects(MANIFESTS / "kube-scheduler"), *objects(MANIFESTS / "components" / "sharding")]
    objs = [obj for obj in [*installed(), *more] if obj["kind"] in RIGHTS]
    for obj in objs:
        status, answer = plane.request("POST", path_of(obj).partition("?")[0], obj)
        assert status in (201, 409), answer  # the extender's are there where it was at work before
    for binding in (obj for obj in objs if obj["kind"].endswith("Binding")):
        wait_until(lambda binding=binding: counts(plane, binding, objs), f"{binding['metadata']['name']} to count")  # type: ignore[misc]
    yield
    for obj in objs:
        plane.request("DELETE", f"{path_of(obj).partition('?')[0]}/{obj['metadata']['name']}")


def counts(plane: Plane, binding: Json, objs: list[Json]) -> bool:
    """May its first subject do the first thing that its role allows?"""
    role = next(obj for obj in objs if obj["kind"] == binding["roleRef"]["kind"]
                and obj["metadata"]["name"] == binding["roleRef"]["name"]
                and obj["metadata"].get("namespace") == binding["metadata"].get("namespace"))  # fmt: skip
    rule, subject = role["rules"][0], binding["subjects"][0]
    plural, _, subresource = rule["resources"][0].partition("/")
    asked = {"namespace": binding["metadata"].get("namespace", ""), "verb": rule["verbs"][0], "group": rule["apiGroups"][0],
             "resource": plural, "subresource": subresource, "name": (rule.get("resourceNames") or [""])[0]}  # fmt: skip
    spec = {"user": f"system:serviceaccount:{subject['namespace']}:{subject['name']}", "resourceAttributes": asked}
    _, answer = plane.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": spec})
    return bool(answer["status"]["allowed"])


@pytest.fixture
def run(plane: Plane, kubernetes: KubernetesCluster) -> Iterator[Callable[..., None]]:
    """Starts a program under its account."""
    started = []

    def start(account: str, *flags: str) -> None:
        kubeconfig = plane.kubeconfig_of_service_account(SYSTEM, account)
        code = f"from {PROGRAMS[account]} import main; main()"
        plane.processes.start(account, [sys.executable, "-c", code, f"--kubeconfig={kubeconfig}", "-v=3", *flags])
        started.append(account)

    yield start
    for account in started:
        plane.processes.end(account, signal.SIGTERM)
    for lease in kubernetes.list(LEASE, SYSTEM).objects:
        kubernetes.delete(LEASE, Key(SYSTEM, lease["metadata"]["name"]))


@pytest.fixture
def rack(kubernetes: KubernetesCluster) -> Iterator[Key]:
    """A HyperNode of one node."""
    members = [{"type": "Node", "selector": {"exactMatch": {"name": "n1"}}}]
    kubernetes.create(NODE, node("n1").cpu(64).memory("64Gi").pods(500))
    kubernetes.create(HYPER_NODE, Built(HYPER_NODE, "rack", "") | {"spec": {"tier": 1, "members": members}})
    yield Key("", "rack")
    kubernetes.delete(HYPER_NODE, Key("", "rack"))
    kubernetes.delete(NODE, Key("", "n1"))


def account(plane: Plane, name: str) -> KubernetesCluster:
    return connect(str(plane.kubeconfig_of_service_account(SYSTEM, name)))


def pod_template(notes: Json) -> Json:
    containers = [{"name": "main", "image": "example.test/app:1", "resources": {"requests": {"cpu": "100m"}}}]
    return {"metadata": {"annotations": notes}, "spec": {"containers": containers, "restartPolicy": "Never"}}


def job_spec(notes: Json, **more: object) -> Json:
    tasks = [{"name": "worker", "replicas": 2, "template": pod_template(notes)}]
    return {"schedulerName": "volcano", "queue": "default", "minAvailable": 2, "tasks": tasks, **more}


def deployment(ns: str) -> Json:
    template = pod_template({})
    template["metadata"] = {"labels": {"app": "web"}}
    template["spec"] |= {"restartPolicy": "Always", "schedulerName": "volcano"}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "replicas": 2, "template": template}
    return Built(DEPLOYMENT, "web", ns) | {"spec": spec}


def test_scheduler_and_controllers_do_all_their_work(
    plane: Plane, kubernetes: KubernetesCluster, new_namespace: Callable[[], str], run: Callable[..., None], rack: Key
) -> None:
    """Jobs with plugins, claims and an end, a Command, a flow, a HyperNode, a plain Deployment; nodes by NodeShard."""
    run("volcano-scheduler", "--schedule-period=100ms", "--scheduler-sharding-mode=soft")
    run("volcano-controllers", "--worker-threads=2", "--controllers=*")
    wait_until(lambda: state_of(kubernetes, QUEUE, Key("", "default")) == "Open", "the default queue to open")
    ns = new_namespace()

    plugins: Json = {"env": [], "svc": [], "ssh": []}
    kubernetes.create(JOB, Built(JOB, "ends", ns) | {"spec": job_spec(SHORT, plugins=plugins)})
    kubernetes.create(JOB, Built(JOB, "goes", ns) | {"spec": job_spec(SHORT, plugins=plugins, ttlSecondsAfterFinished=0)})
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    volumes = [{"mountPath": "/data", "volumeClaim": claim}]
    kubernetes.create(JOB, Built(JOB, "claims", ns) | {"spec": job_spec(LONG, volumes=volumes, plugins=plugins)})
    kubernetes.create(JOB, Built(JOB, "stops", ns) | {"spec": job_spec(LONG)})
    kubernetes.create(JOB_TEMPLATE, Built(JOB_TEMPLATE, "step", ns) | {"spec": job_spec(SHORT)})
    flow = {"flows": [{"name": "step"}], "jobRetainPolicy": "delete"}
    kubernetes.create(JOB_FLOW, Built(JOB_FLOW, "flow", ns) | {"spec": flow})
    kubernetes.create(DEPLOYMENT, deployment(ns))

    wait_until(lambda: state_of(kubernetes, JOB, Key(ns, "stops")) == "Running", "the job that is to stop")
    stops = kubernetes.get(JOB, Key(ns, "stops"))
    command = {"metadata": {"name": "stop", "namespace": ns, "ownerReferences": [owner_reference(stops)]},
               "target": owner_reference(stops), "action": "AbortJob"}  # fmt: skip
    kubernetes.create(COMMAND, command)

    wait_until(lambda: state_of(kubernetes, JOB, Key(ns, "stops")) == "Aborted", "the job to stop")
    wait_until(lambda: state_of(kubernetes, JOB, Key(ns, "ends")) == "Completed", "the job with plugins to end")
    wait_until(lambda: not there(kubernetes, JOB, Key(ns, "goes")), "the job to go after its end")
    wait_until(lambda: state_of(kubernetes, JOB_FLOW, Key(ns, "flow")) == "Succeed", "the flow to end")
    wait_until(lambda: kubernetes.list(PVC, ns).objects, "the claim")
    wait_until(lambda: sum(1 for pod in kubernetes.list(POD, ns).objects if pod["metadata"].get("labels", {}).get("app") == "web"
                           and pod["spec"].get("nodeName")) == 2, "the pods of the Deployment to be bound")  # fmt: skip
    wait_until(lambda: in_use(kubernetes, "volcano") == ["n1"], "the scheduler to take its shard")
    wait_until(lambda: kubernetes.get(HYPER_NODE, rack).get("status", {}).get("nodeCount") == 1, "the HyperNode")
    wait_until(lambda: ("volcano", "Scheduled") in reasons(kubernetes, ns), "the event of a binding, which holds none up")
    for kind, name in ((SERVICE, "claims"), (CONFIG_MAP, "claims-svc"), (SECRET, "claims-ssh")):
        wait_until(lambda kind=kind, name=name: there(kubernetes, kind, Key(ns, name)), f"{kind} {name}")  # type: ignore[misc]
    assert [line for account in ("volcano-scheduler", "volcano-controllers") for line in refused(plane, account)] == []


def refused(plane: Plane, account: str) -> list[str]:
    """What a program says it was not allowed to do, but for the namespace of an earlier test, which goes in its own time."""
    lines = plane.processes.said(account).splitlines()
    return [line for line in lines if "forbidden" in line.lower() and "because it is being terminated" not in line]


def reasons(cluster: KubernetesCluster, ns: str) -> set[tuple[str, str]]:
    """Of events, with who told them."""
    return {(event["source"]["component"], event["reason"]) for event in cluster.list(EVENT, ns).objects}


def test_the_extender_does_all_its_work(
    plane: Plane, kubernetes: KubernetesCluster, new_namespace: Callable[[], str], run: Callable[..., None], rack: Key
) -> None:
    """A gang is let in, planned and bound, its PodGroup told; one that did not fit is told when there is room."""
    del rack  # its node has room for one of the two gangs
    for queue in of_kind(objects(MANIFESTS / "queues"), "Queue").values():
        with contextlib.suppress(AlreadyExists):
            kubernetes.create(QUEUE, queue)
        kubernetes.patch(QUEUE, key_of(queue), {"status": {"state": "Open"}}, subresource="status")
    (port,) = free_ports(1)
    run(EXTENDER, "--extender-only", f"--extender-address=127.0.0.1:{port}")
    asked = Asked(f"http://127.0.0.1:{port}")
    wait_until(lambda: asked.ready(), "the extender to be ready")
    ns = new_namespace()
    gangs = {name: gang(kubernetes, ns, name, cpu) for name, cpu in (("fits", 20), ("waits", 30))}

    wait_until(lambda: [asked.filter(pod) for pod in gangs["fits"]] == [["n1"], ["n1"]], "the gang to be let in")
    with ThreadPoolExecutor(2) as together:  # each bind waits for the other
        assert list(together.map(lambda pod: asked.bind(pod, "n1"), gangs["fits"])) == ["", ""]
    wait_until(lambda: [asked.filter(pod) for pod in gangs["waits"]] == [[], []], "the other one to be kept waiting")
    for pod in gangs["fits"]:
        kubernetes.delete(POD, key_of(pod))
    wait_until(lambda: all(RETRY in annotations_of(kubernetes.get(POD, key_of(pod))) for pod in gangs["waits"]), "the touch")
    wait_until(lambda: (kubernetes.get(POD_GROUP, Key(ns, "waits")).get("status") or {}).get("phase") == "Inqueue", "its phase")
    assert refused(plane, EXTENDER) == []


def gang(cluster: KubernetesCluster, ns: str, name: str, cpu: int) -> list[Json]:
    """Two pods of the default scheduler, which nobody runs here, and their PodGroup."""
    cluster.create(POD_GROUP, podgroup(name, ns).members(2))
    return [cluster.create(POD, task(f"{name}-{i}", name, ns).cpu(cpu).scheduler("default-scheduler")) for i in range(2)]


class Asked:
    """The extender, as kube-scheduler asks it."""

    def __init__(self, url: str) -> None:
        self._url = url

    def ready(self) -> bool:
        try:
            return urllib3.request("GET", f"{self._url}/readyz", retries=False, timeout=2.0).status == 200
        except urllib3.exceptions.HTTPError:
            return False

    def filter(self, pod: Json) -> list[str] | None:
        """None where it has not heard of the pod yet."""
        answer = self._post("filter", {"Pod": pod, "NodeNames": ["n1"]})
        return None if answer.get("Error") else list(answer["NodeNames"] or ())

    def bind(self, pod: Json, on: str) -> str:
        meta = pod["metadata"]
        asked = {"PodName": meta["name"], "PodNamespace": meta["namespace"], "PodUID": meta["uid"], "Node": on}
        return str(self._post("bind", asked)["Error"])

    def _post(self, verb: str, body: Json) -> Json:
        answer = urllib3.request("POST", f"{self._url}/extender/v1/{verb}", json=body, timeout=60.0)
        assert answer.status == 200, answer.data
        return dict(answer.json())


def state_of(cluster: KubernetesCluster, kind: Kind, key: Key) -> str:
    try:
        state = (cluster.get(kind, key).get("status") or {}).get("state", "")
    except NotFound:
        return ""
    return str(state.get("phase", "")) if isinstance(state, dict) else str(state)


def in_use(cluster: KubernetesCluster, shard: str) -> list[str]:
    with contextlib.suppress(NotFound):
        return list((cluster.get(NODE_SHARD, Key("", shard)).get("status") or {}).get("nodesInUse") or ())
    return []


def there(cluster: KubernetesCluster, kind: Kind, key: Key) -> bool:
    with contextlib.suppress(NotFound):
        cluster.get(kind, key)
        return True
    return False


def test_certificates_are_made_and_told(plane: Plane, kubernetes: KubernetesCluster) -> None:
    """Secrets written, the authority in a webhook configuration; the second time there is nothing to do."""
    configuration = of_kind(installed(), "ValidatingWebhookConfiguration")["volcano-admission-service-jobflows-validate"]
    kubernetes.create(VALIDATING_WEBHOOKS, configuration)
    cluster, place, now = account(plane, "volcano-certs"), Place(), SystemClock().now()
    try:
        assert keep(cluster, place, now)
        assert keep(cluster, place, now) == []
        name = configuration["metadata"]["name"]
        (webhook,) = kubernetes.get(VALIDATING_WEBHOOKS, Key("", name))["webhooks"]
        authority = kubernetes.get(SECRET, place.serving)["data"]["ca.crt"]
        assert b64decode(webhook["clientConfig"]["caBundle"]) == b64decode(authority)
    finally:
        kubernetes.delete(VALIDATING_WEBHOOKS, Key("", configuration["metadata"]["name"]))
        for key in (place.serving, place.authority):
            with contextlib.suppress(NotFound):
                kubernetes.delete(SECRET, key)
        cluster.close()


def test_admission_sees_and_makes_what_it_must(
    plane: Plane, kubernetes: KubernetesCluster, new_namespace: Callable[[], str]
) -> None:
    ns, cluster, clock = new_namespace(), account(plane, "volcano-admission"), SystemClock()
    kubernetes.create(DEPLOYMENT, deployment(ns))
    wait_until(lambda: kubernetes.list(REPLICA_SET, ns).objects, "the ReplicaSet")
    (workload,) = kubernetes.list(REPLICA_SET, ns).objects
    kinds = {kind for route in ROUTES for kind in route.reads}
    view = WatchedView(cluster, clock, kinds)
    for kind in kinds:
        view.step(kind)
    assert (view.missing, view.namespace(ns) is not None) == ([], True)
    key = Key(ns, workload["metadata"]["name"])
    assert view.owner(REPLICA_SET, key, workload["metadata"]["uid"]) is not None
    outcomes: list[str] = []
    errands = Errands(cluster, clock, outcomes.append)
    group = podgroup("made", ns) | {"apiVersion": POD_GROUP.api_version, "kind": POD_GROUP.name}
    group["metadata"]["ownerReferences"] = [owner_reference({"apiVersion": "apps/v1", "kind": "ReplicaSet", **workload})]
    errands.take([Create(POD_GROUP, group)])
    errands.run_one()
    assert outcomes == ["made"]
    view_closed = threading.Event()
    view_closed.set()
    for kind in kinds:
        view.follow(kind, view_closed)
    cluster.close()
