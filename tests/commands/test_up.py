"""`pumice up` and `pumice down`: what is made and removed, what is told, and all of it on a real control plane."""

from __future__ import annotations

import threading
from base64 import b64decode
from collections.abc import Callable

import pytest

from extender.actions import ACTIONS
from extender.api.errors import Denied, UsageError
from extender.api.meta import JOB, MUTATING_WEBHOOKS, NAMESPACE, NODE, POD, QUEUE, VALIDATING_WEBHOOKS, Json, Key
from extender.cluster.clock import VirtualClock
from extender.cluster.first_queues import first_queues
from extender.cluster.kubernetes import KubernetesCluster, connect
from extender.cluster.memory import MemoryCluster
from extender.core import conf
from extender.ctl import installing, up
from extender.ctl.admitting import called_by_url, reached
from extender.ctl.installing import CRD, Installed
from extender.ctl.telling import Telling
from extender.local import Local
from extender.plugins import PLUGINS
from extender.testing.builders import Built, node, queue
from tests.controlplane.plane import Plane
from tests.controlplane.processes import free_ports
from tests.controlplane.waiting import wait_until
from webhook.manifests import configurations

OWNER = up.OWNER


@pytest.fixture
def cluster() -> MemoryCluster:
    return MemoryCluster(VirtualClock())


# --- what is made and removed -------------------------------------------------------------------------------------------


def test_what_is_missing_is_made_and_labelled(cluster: MemoryCluster) -> None:
    assert [each.how for each in installing.install_queues(cluster, OWNER)] == ["made", "made"]
    assert installing.made_by(cluster, QUEUE, OWNER) == [Key("", "default"), Key("", "root")]


def test_a_second_time_all_is_found(cluster: MemoryCluster) -> None:
    installing.install_queues(cluster, OWNER)
    assert [each.how for each in installing.install_queues(cluster, OWNER)] == ["found", "found"]


def test_what_others_have_made_is_left_as_it_is(cluster: MemoryCluster) -> None:
    theirs = cluster.create(QUEUE, queue("default").weight(7))
    installing.install_queues(cluster, OWNER)
    assert cluster.get(QUEUE, Key("", "default")) == theirs


def test_an_older_one_of_ours_is_brought_up_to_date(cluster: MemoryCluster) -> None:
    wanted = first_queues()[1]
    installing.install(cluster, QUEUE, wanted, OWNER)
    newer = {**wanted, "spec": {"weight": 2}}
    assert installing.install(cluster, QUEUE, newer, OWNER).how == "changed"
    assert cluster.get(QUEUE, Key("", "default"))["spec"]["weight"] == 2


def test_removing_twice_is_no_fault(cluster: MemoryCluster) -> None:
    installing.install_queues(cluster, OWNER)
    assert [installing.remove(cluster, QUEUE, Key("", "root")) for _ in range(2)] == [True, False]


def test_objects_of_others_that_would_go_are_counted(cluster: MemoryCluster) -> None:
    """The queues that came with the CRDs are nobody's loss."""
    installing.install_queues(cluster, OWNER)
    cluster.create(QUEUE, queue("team"))
    names = ["queues.scheduling.volcano.sh", "jobs.batch.volcano.sh"]
    assert list(installing.held(cluster, names, OWNER)) == [installing.Held("queues.scheduling.volcano.sh", 1)]


def test_every_crd_names_a_kind_that_we_know() -> None:
    """`held` looks kinds up by the names of CRDs."""
    cluster = MemoryCluster(VirtualClock())
    assert list(installing.held(cluster, [crd["metadata"]["name"] for crd in installing.crds()], OWNER)) == []


def test_a_few_are_named_and_many_counted() -> None:
    made = [Installed(CRD, Key("", f"c{i}"), "made") for i in range(4)]
    assert up.told([*made, Installed(QUEUE, Key("", "root"), "found")]) == [
        "made 4 CustomResourceDefinitions",
        "found Queue root",
    ]


# --- where the API server reaches us ------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", ["", "host", ":8443", "host:0", "host:x", "host:70000"])
def test_an_address_that_is_none(words: str) -> None:
    with pytest.raises(UsageError, match="--webhook-url"):
        reached(words)


@pytest.mark.parametrize(
    ("words", "url"), [("10.0.0.7:8443", "https://10.0.0.7:8443"), ("[fd00::7]:8443", "https://[fd00::7]:8443")]
)
def test_the_url(words: str, url: str) -> None:
    assert reached(words).url == url


def test_webhooks_are_called_by_url() -> None:
    for made in configurations():
        changed = called_by_url(made, "https://h:1", b"pem")
        path = made["webhooks"][0]["clientConfig"]["service"]["path"]
        assert changed["metadata"] == {"name": "pumice-up" + path.replace("/", "-")}
        assert {each["clientConfig"]["url"] for each in changed["webhooks"]} == {f"https://h:1{path}"}
        assert {b64decode(each["clientConfig"]["caBundle"]) for each in changed["webhooks"]} == {b"pem"}
        assert [each["rules"] for each in changed["webhooks"]] == [each["rules"] for each in made["webhooks"]]


# --- what is told -------------------------------------------------------------------------------------------------------


def job(name: str, workers: int, ns: str = "default") -> Json:
    resources = {"requests": {"cpu": "2"}}
    template = {"spec": {"containers": [{"name": "main", "image": "example.test/app:1", "resources": resources}]}}
    tasks = [{"name": "worker", "replicas": workers, "template": template}]
    return Built(JOB, name, ns) | {"spec": {"schedulerName": "volcano", "minAvailable": workers, "tasks": tasks}}


def test_one_line_for_each_job_and_nothing_twice() -> None:
    said: list[str] = []
    local = Local(conf.load(conf.DEFAULT, PLUGINS, ACTIONS), VirtualClock())
    local.load([node("n1").cpu(4).memory("8Gi"), node("n2").cpu(4).memory("8Gi")])
    local.create([job("fits", 3), job("waits", 3)])
    assert local.loop is not None
    local.loop.observers.append(Telling(said.append))
    local.run(until=20)
    told = [line.partition("  ")[2] for line in said]
    assert [line for line in told if "placed" in line] == ["default/fits: 3 pods placed: n1 x2, n2"]
    about_the_other = [line for line in told if line.startswith("default/waits waits: ")]
    assert about_the_other
    assert len(about_the_other) == len(set(about_the_other))


# --- on a real control plane --------------------------------------------------------------------------------------------


class Running:
    """`pumice up` in a thread."""

    def __init__(self, plane: Plane, plan: up.Plan) -> None:
        self.said: list[str] = []
        self.error: Exception | None = None
        self.stop = threading.Event()
        self._plane, self._plan = plane, plan
        self._thread = threading.Thread(target=self._run, name="up")
        self._thread.start()

    def _run(self) -> None:
        try:
            up.run(self._plan, lambda name: connect(str(self._plane.kubeconfig), user_agent=name), self.said.append, self.stop)
        except Exception as error:
            self.error = error

    def end(self) -> None:
        self.stop.set()
        self._thread.join()
        if self.error:
            raise self.error


def ours(cluster: KubernetesCluster) -> list[Key]:
    return [key for kind in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS) for key in installing.made_by(cluster, kind, OWNER)]


def test_a_job_runs_and_nothing_is_left(plane: Plane, kubernetes: KubernetesCluster, new_namespace: Callable[[], str]) -> None:
    """Admission gives the job its queue, the controllers make its pods, the scheduler binds them; the end takes it all back."""
    ns, system = new_namespace(), "up-system"
    kubernetes.create(NODE, {**node("up-1").cpu(8).memory("8Gi"), "metadata": {"name": "up-1"}})
    (port,) = free_ports(1)
    running = Running(plane, up.Plan(system, admission=reached(f"127.0.0.1:{port}")))
    try:
        wait_until(lambda: running.error or any("are ours" in line for line in running.said), "pumice up to begin")
        wait_until(lambda: _created(kubernetes, job("train", 3, ns)), "admission to answer")
        assert kubernetes.get(JOB, Key(ns, "train"))["spec"]["queue"] == "default"
        wait_until(lambda: any(line.endswith(f"{ns}/train: 3 pods placed: up-1 x3") for line in running.said), "the gang")
        assert len(ours(kubernetes)) == 7
    finally:
        running.end()
        kubernetes.delete(NODE, Key("", "up-1"))
    assert ours(kubernetes) == []
    assert [pod["spec"]["nodeName"] for pod in kubernetes.list(POD, ns).objects] == ["up-1"] * 3
    assert f"Namespace {system}" in list(up.remove(kubernetes))
    assert installing.made_by(kubernetes, NAMESPACE, OWNER) == []
    assert list(up.remove(kubernetes)) == []


def _created(cluster: KubernetesCluster, obj: Json) -> bool:
    """The API server takes a moment to see a new webhook, and the controllers to open a new queue."""
    try:
        cluster.create(JOB, obj)
    except Denied:
        return False
    if cluster.get(JOB, Key(obj["metadata"]["namespace"], obj["metadata"]["name"]))["spec"].get("queue"):
        return True
    cluster.delete(JOB, Key(obj["metadata"]["namespace"], obj["metadata"]["name"]))
    return False
