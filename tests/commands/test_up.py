"""`pumice up` and `pumice down`: what is made and removed, what is told, and all of it on a real control plane."""

from __future__ import annotations

import threading
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path

import pytest

from extender.actions import ACTIONS
from extender.api.errors import Denied, PumiceError, UsageError
from extender.api.meta import (
    DEPLOYMENT,
    JOB,
    LEASE,
    MUTATING_WEBHOOKS,
    NAMESPACE,
    NODE,
    POD,
    QUEUE,
    VALIDATING_WEBHOOKS,
    Json,
    Key,
    Kind,
)
from extender.cluster.clock import VirtualClock
from extender.cluster.first_queues import first_queues
from extender.cluster.kubernetes import KubernetesCluster, connect
from extender.cluster.memory import MemoryCluster
from extender.core import conf
from extender.ctl import down, installing, permitted, up
from extender.ctl.admitting import called_by_url, reached
from extender.ctl.installing import CRD, Installed
from extender.ctl.telling import Telling
from extender.local import Local
from extender.plugins import PLUGINS
from extender.testing.builders import Built, node, queue
from tests.controlplane.daemons import answers
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


@pytest.mark.parametrize(("labels", "replicas", "warned"), [
    ({"app": "volcano-scheduler"}, 1, True), ({"app": "volcano-controller"}, 2, True), ({"app": "volcano-scheduler"}, 0, False),
    ({"app": "web"}, 1, False),
])  # fmt: skip
def test_an_installed_scheduler_is_warned_of(cluster: MemoryCluster, labels: dict[str, str], replicas: int, warned: bool) -> None:
    spec = {"replicas": replicas, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "m", "image": "i"}]}}}  # fmt: skip
    cluster.create(DEPLOYMENT, Built(DEPLOYMENT, "it").labels(labels) | {"spec": spec})
    assert [line.partition(" is here too")[0] for line in up.neighbours(cluster)] == ["Deployment default/it"] * warned


def test_a_few_are_named_and_many_counted() -> None:
    made = [Installed(CRD, Key("", f"c{i}"), "made") for i in range(4)]
    assert up.told([*made, Installed(QUEUE, Key("", "root"), "found")]) == [
        "made 4 CustomResourceDefinitions",
        "found Queue root",
    ]


# --- who may, and who is at work ----------------------------------------------------------------------------------------


class Grudging(MemoryCluster):
    """Answers reviews of access: `denied` names what is not allowed. It keeps what was asked."""

    def __init__(self, *denied: str, silent: bool = False) -> None:
        super().__init__(VirtualClock())
        self.denied, self.silent = denied, silent
        self.asked: list[Json] = []

    def create(self, kind: Kind, obj: Json, *, dry_run: bool = False) -> Json:
        if kind != permitted.REVIEW:
            return super().create(kind, obj, dry_run=dry_run)
        if self.silent:
            raise Denied("reviews are not for you")
        asked = obj["spec"]["resourceAttributes"]
        self.asked.append(asked)
        return {"status": {"allowed": f"{asked['verb']} {asked['resource']}" not in self.denied}}


def test_what_is_not_allowed_is_named_and_nothing_made() -> None:
    rights = permitted.wanted("ns", webhooks=False)
    with pytest.raises(permitted.NotAllowed, match=r"may not list, watch nodes; create customresourcedefinitions\.apiextensions"):
        permitted.check(Grudging("list nodes", "watch nodes", "create customresourcedefinitions"), rights)


def test_many_that_are_not_allowed_are_counted() -> None:
    rights = permitted.wanted("ns", webhooks=False)
    denied = {f"{right.verb} {right.resource}" for right in rights}
    with pytest.raises(permitted.NotAllowed, match=r"and more of \d+ other kinds; what pumice up needs is in manifests/rbac"):
        permitted.check(Grudging(*denied), rights)


def test_all_that_is_needed_is_asked_for_where_it_is_needed() -> None:
    cluster = Grudging()
    permitted.check(cluster, permitted.wanted("my-system", webhooks=True))
    fields = ("group", "resource", "verb", "namespace", "name")
    asked = [permitted.Right(*(each[field] for field in fields)) for each in cluster.asked]
    assert permitted.Right("coordination.k8s.io", "leases", "update", "my-system", "volcano") in asked
    assert permitted.Right("", "nodes", "watch") in asked
    assert permitted.Right("admissionregistration.k8s.io", "validatingwebhookconfigurations", "create") in asked
    assert any(each["resource"] == "pods" and each["subresource"] == "binding" for each in cluster.asked)


def test_a_cluster_that_does_not_tell_is_believed_to_allow() -> None:
    permitted.check(Grudging(silent=True), permitted.wanted("ns", webhooks=False))


LEASE_NAME = Key("ns", "volcano")


def held(holder: str) -> Json:
    meta = {"namespace": LEASE_NAME.namespace, "name": LEASE_NAME.name}
    return {"apiVersion": LEASE.api_version, "kind": LEASE.name, "metadata": meta,
            "spec": {"holderIdentity": holder, "renewTime": "2025-01-06T00:00:00.000000Z"}}  # fmt: skip


@pytest.fixture
def leased(cluster: MemoryCluster) -> MemoryCluster:
    cluster.create(NAMESPACE, {"metadata": {"name": "ns"}})
    cluster.create(LEASE, held("host_1"))
    return cluster


def renews(cluster: MemoryCluster, when: str) -> Callable[[float], None]:
    return lambda _: _drop(cluster.patch(LEASE, LEASE_NAME, {"spec": {"renewTime": when}}))


def _drop(_: object) -> None:
    """What the caller wants is what has been done."""


def test_down_leaves_alone_who_is_at_work(leased: MemoryCluster) -> None:
    with pytest.raises(down.AtWork, match="host_1 holds the lease ns/volcano"):
        down.refuse_at_work(leased, [LEASE_NAME], renews(leased, "2025-01-06T00:00:02.000000Z"))


def test_down_does_not_wait_for_who_was_killed(leased: MemoryCluster) -> None:
    waited: list[float] = []
    down.refuse_at_work(leased, [LEASE_NAME], waited.append)
    assert len(waited) == 1


@pytest.mark.parametrize("holder", [None, ""])
def test_down_asks_once_where_nobody_holds_a_lease(cluster: MemoryCluster, holder: str | None) -> None:
    cluster.create(NAMESPACE, {"metadata": {"name": "ns"}})
    if holder is not None:
        cluster.create(LEASE, held(holder))
    waited: list[float] = []
    down.refuse_at_work(cluster, [LEASE_NAME], waited.append)
    assert waited == []


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


@pytest.mark.parametrize("silent", [False, True])
def test_it_is_said_that_admission_is_off_unless_it_is_wanted_so(silent: bool) -> None:
    said: list[str] = []
    with up.admission_of(up.Plan(without_webhooks=silent), Grudging(), said.append, threading.Event()):
        assert [line.partition(":")[0] for line in said] == ([] if silent else ["admission is off"])


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
    """Admission fills the job in, the controllers make its pods, the scheduler binds them; the end takes it all back."""
    ns, system = new_namespace(), "up-system"
    kubernetes.create(NODE, {**node("up-1").cpu(8).memory("8Gi"), "metadata": {"name": "up-1"}})
    (port,) = free_ports(1)
    running = Running(plane, up.Plan(system, admission=reached(f"127.0.0.1:{port}")))
    try:
        wait_until(lambda: running.error or any("are ours" in line for line in running.said), "pumice up to begin")
        wait_until(lambda: answers(kubernetes, job("probe", 3, ns)), "admission to answer")
        made = kubernetes.create(JOB, job("train", 3, ns))
        assert made["spec"]["tasks"][0]["minAvailable"] == 3  # which the schema does not say
        wait_until(lambda: any(line.endswith(f"{ns}/train: 3 pods placed: up-1 x3") for line in running.said), "the gang")
        assert len(ours(kubernetes)) == 7
    finally:
        running.end()
        kubernetes.delete(NODE, Key("", "up-1"))
    assert ours(kubernetes) == []
    assert [pod["spec"]["nodeName"] for pod in kubernetes.list(POD, ns).objects] == ["up-1"] * 3
    assert f"Namespace {system}" in list(down.remove(kubernetes))
    assert installing.made_by(kubernetes, NAMESPACE, OWNER) == []
    assert list(down.remove(kubernetes)) == []


def test_a_second_one_says_whom_it_waits_for_and_down_does_not_pull_the_rug(plane: Plane, kubernetes: KubernetesCluster) -> None:
    system = "second-system"
    first = Running(plane, up.Plan(system))
    second = None
    try:
        wait_until(lambda: first.error or any("are ours" in line for line in first.said), "the first to begin")
        second = Running(plane, up.Plan(system))
        wait_until(lambda: second.error or sum("waiting until it is free" in line for line in second.said) == 2, "the second")
        assert any(f"holds the lease {system}/volcano: waiting" in line for line in second.said)
        with pytest.raises(down.AtWork, match=f"holds the lease {system}/"):
            down.refuse_at_work(kubernetes, up.Plan(system).leases(), lambda seconds: _drop(first.stop.wait(seconds)))
    finally:
        for each in (first, second):
            if each is not None:
                each.end()
    down.refuse_at_work(kubernetes, up.Plan(system).leases(), lambda _: pytest.fail("there is nobody to wait for"))
    assert f"Namespace {system}" in list(down.remove(kubernetes))


NOTHING_MADE = {
    "a configuration with a mistake": (lambda conf: up.Plan("wrong", conf=conf), "did you mean 'allocate'"),
    "plugins that are not there": (lambda conf: up.Plan("wrong", plugins_dir=f"{conf}.d"), "there is no such folder"),
    "a namespace that cannot be": (lambda _: up.Plan("Wrong"), "metadata.name"),
}


@pytest.mark.parametrize(("plan", "said"), NOTHING_MADE.values(), ids=NOTHING_MADE)
def test_a_mistake_makes_nothing(
    plane: Plane, kubernetes: KubernetesCluster, tmp_path: Path, plan: Callable[[str], up.Plan], said: str
) -> None:
    conf_file = tmp_path / "scheduler.conf"
    conf_file.write_text("actions: alocate")
    with pytest.raises(PumiceError, match=said):
        up.run(plan(str(conf_file)), lambda name: connect(str(plane.kubeconfig), user_agent=name), print, threading.Event())
    assert [key for kind in (CRD, QUEUE, NAMESPACE) for key in installing.made_by(kubernetes, kind, OWNER)] == []


def test_who_is_not_allowed_is_told_before_anything_is_made(
    plane: Plane, kubernetes: KubernetesCluster, new_namespace: Callable[[], str]
) -> None:
    """The service account of a namespace may do next to nothing."""
    kubeconfig = str(plane.kubeconfig_of_service_account(new_namespace(), "default"))
    with pytest.raises(permitted.NotAllowed, match="nothing was made, for this user may not"):
        up.run(up.Plan("limited"), lambda name: connect(kubeconfig, user_agent=name), print, threading.Event())
    assert installing.made_by(kubernetes, NAMESPACE, OWNER) == []
