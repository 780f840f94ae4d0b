"""vc-controller-manager on the embedded cluster: what its flags choose, what it serves, how it starts and ends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack

import pytest

from controller.cli import PROGRAM, Assembled, Options, assemble
from controller.reconciler import Settings
from controller.sharding import ShardFlags
from extender.api.errors import ConfError, PumiceError, Unavailable, UsageError
from extender.api.meta import JOB, LEASE, NAMESPACE, POD, POD_GROUP, QUEUE, Key, Kind, key_of
from extender.cluster.clock import SystemClock
from extender.cluster.flags import parse
from extender.cluster.memory import MemoryCluster
from extender.cluster.port import Listing
from extender.testing.builders import pod, queue
from tests.daemons.running import ELECTED, PATIENCE, Runs, ask, until

SERVING = ("--enable-healthz", "--enable-metrics", "--healthz-address=127.0.0.1:0", "--listen-address=127.0.0.1:0")


class Server(MemoryCluster):
    """Does not answer as long as it is `starting`."""

    def __init__(self) -> None:
        super().__init__(SystemClock())
        self.starting, self.asked = False, threading.Event()
        self.create(NAMESPACE, {"metadata": {"name": "volcano-system"}})
        self.load([queue()])

    def list(self, kind: Kind, namespace: str = "", label_selector: str = "", field_selector: str = "") -> Listing:
        self.asked.set()
        if self.starting:
            raise Unavailable("the server is starting")
        return super().list(kind, namespace, label_selector, field_selector)


class Manages(Runs):
    """The controllers in a thread."""

    def __init__(self, assembled: Assembled) -> None:
        super().__init__(assembled.daemon)
        self.assembled = assembled

    def ask(self, path: str) -> tuple[int, str]:
        return ask(self.assembled.servers, path)


Start = Callable[..., Manages]


def given(*argv: str, environ: Mapping[str, str] | None = None) -> Options:
    return parse(Options(), argv, environ or {}, PROGRAM).options


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def start(server: Server) -> Iterator[Start]:
    with ExitStack() as stack:

        def begin(*argv: str) -> Manages:
            running = Manages(assemble(given(*ELECTED, *argv), server, {}))
            stack.callback(running.stop)
            return running

        yield begin


def test_it_works_as_the_leader(server: Server, start: Start) -> None:
    """A plain pod of ours gets a PodGroup; asked to end it ends, and lets go of the lease."""
    running = start()
    server.load([pod("p").scheduler("volcano").cpu(1)])
    made = until(lambda: bool(server.list(POD_GROUP).objects))
    status = running.stop()
    assert (made, status, server.get(LEASE, Key("volcano-system", PROGRAM))["spec"]["holderIdentity"]) == (True, 0, "")


def test_pods_of_others_are_left_alone(server: Server, start: Start) -> None:
    start("--scheduler-name=blue")
    server.load([pod("p").scheduler("volcano").cpu(1), pod("q").cpu(1).scheduler("blue")])
    until(lambda: bool(server.list(POD_GROUP).objects))
    owners = [group["metadata"]["ownerReferences"][0]["name"] for group in server.list(POD_GROUP).objects]
    assert owners == ["q"]


def test_it_is_ready_when_every_list_has_come(server: Server, start: Start) -> None:
    server.starting = True
    running = start(*SERVING)
    until(lambda: running.ask("/readyz")[0] == 500)
    assert (running.ask("/readyz/informer-sync"), running.ask("/livez")[0]) == (
        (500, "internal server error: not every list has come\n"), 200,
    )  # fmt: skip


def test_metrics_of_the_work(server: Server, start: Start) -> None:
    """Worked out when they are scraped; without the names of jobs."""
    running = start(*SERVING)
    task = {"name": "a", "replicas": 1, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}
    spec = {"minAvailable": 1, "queue": "default", "schedulerName": "volcano", "tasks": [task]}
    server.create(JOB, {"metadata": {"name": "j", "namespace": "default"}, "spec": spec})
    wanted = ('volcano_jobs{phase="Pending",queue_name="default"} 1.0', "volcano_leader 1.0", "volcano_controller_requests ",
              'volcano_queue_pod_group_pending_count{queue_name="default"} 1.0', "volcano_build_info{")  # fmt: skip

    def missing() -> list[str]:
        said = running.ask("/metrics")[1]
        return [line for line in wanted if line not in said]

    assert until(lambda: not missing()), missing()
    assert "volcano_job_completed_phase_count" not in running.ask("/metrics")[1]


def test_how_soon_a_job_gets_its_pods_is_told(server: Server, start: Start) -> None:
    """One for each pod that it was given, and none for pods that are nobody's."""
    running = start(*SERVING)
    task = {"name": "a", "replicas": 2, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}
    spec = {"minAvailable": 2, "queue": "default", "schedulerName": "volcano", "tasks": [task]}
    server.create(JOB, {"metadata": {"name": "j", "namespace": "default"}, "spec": spec})
    until(lambda: bool(server.list(POD_GROUP).objects))
    (group,) = server.list(POD_GROUP).objects
    server.patch(POD_GROUP, key_of(group), {"status": {"phase": "Inqueue"}})
    until(lambda: len(server.list(POD).objects) == 2)
    name = "volcano_controller_job_to_pod_creation_latency_milliseconds"
    until(lambda: f"{name}_count 2.0" in running.ask("/metrics")[1])
    (total,) = [float(line.split()[1]) for line in running.ask("/metrics")[1].splitlines() if line.startswith(f"{name}_sum")]
    assert 0 <= total < 2 * 60_000


def test_a_follower_does_nothing(server: Server, start: Start) -> None:
    first = start()
    until(lambda: first.assembled.daemon.leading.is_set())
    second = start()
    server.load([pod("p").scheduler("volcano").cpu(1)])
    until(lambda: bool(server.list(POD_GROUP).objects))
    assert second.assembled.controllers.manager is None


CHOSEN: dict[str, tuple[list[str], list[str]]] = {
    "one": (["--controllers=queue-controller"], ["queue-controller"]),
    "two words": (["--controllers=+queue-controller,pg-controller"], ["queue-controller", "pg-controller"]),
    "a value that begins with a dash": (["--controllers", "-job-controller,queue-controller"], ["queue-controller"]),
}


@pytest.mark.parametrize(("argv", "want"), CHOSEN.values(), ids=CHOSEN)
def test_which_controllers_run(server: Server, argv: list[str], want: list[str]) -> None:
    assert assemble(given(*argv), server, {}).controllers.names == want


def test_all_but_sharding_run_by_default(server: Server) -> None:
    names = assemble(given(), server, {}).controllers.names
    assert ("sharding-controller" in names, "job-controller" in names, len(names)) == (False, True, 9)


@pytest.mark.parametrize("words", ["*", "cronjob-controller,job-controller"])
def test_a_feature_gate_leaves_its_controller_out(server: Server, words: str) -> None:
    options = given("--feature-gates=CronVolcanoJobSupport=false", f"--controllers={words}")
    assert "cronjob-controller" not in assemble(options, server, {}).controllers.names


def test_settings_by_default() -> None:
    assert given().settings({}) == Settings(workers=5)


RELEASE = {"KUBE_POD_NAMESPACE": "ns", "HELM_RELEASE_NAME": "r"}
SETTINGS: dict[str, tuple[list[str], dict[str, str], str, object]] = {
    "names": (["--scheduler-name=a", "--scheduler-name=b"], {}, "scheduler_names", ("a", "b")),
    "for ever": (["--max-requeue-num=-1"], {}, "max_requeue", -1),
    "no annotations": (["--inherit-owner-annotations=false"], {}, "inherit_owner_annotations", False),
    "no workloads": (["--feature-gates=WorkLoadSupport=false"], {}, "workload_support", False),
    "workers": (["--worker-threads=8"], {}, "workers", 8),
    "the release": ([], RELEASE, "configuration", Key("ns", "r-controller-configmap")),
    "shards by flags": (
        ["--scheduler-configs=a:volcano:0:1:false:0:0", "--shard-sync-period=5s", "--enable-node-event-trigger=false"],
        {},
        "shard_flags",
        ShardFlags(("a:volcano:0:1:false:0:0",), 5.0, False),
    ),
    "shards": (["--sharding-configmap=s", "--sharding-configmap-namespace=ns"], {}, "sharding", Key("ns", "s")),
}


@pytest.mark.parametrize(("argv", "environ", "name", "want"), SETTINGS.values(), ids=SETTINGS)
def test_settings(argv: list[str], environ: dict[str, str], name: str, want: object) -> None:
    """Flags, and what the environment says about the release."""
    assert getattr(given(*argv).settings(environ), name) == want


WRONG: dict[str, tuple[list[str], type[PumiceError], str]] = {
    "no such controller": (["--controllers=job-contoller"], ConfError, "did you mean 'job-controller'?"),
    "a shard that is none": (["--scheduler-configs=a:volcano:0"], ConfError, "'a:volcano:0' has 3 parts, not 7"),
    "a shard without a range": (["--scheduler-configs=a:volcano:x:1:false:0:0"], ConfError, "--scheduler-configs: scheduler a"),
    "no pause": (["--shard-sync-period=0s"], ConfError, "must be more than 0"),
    "twice": (["--controllers=job-controller,-job-controller"], ConfError, "more than once"),
    "no workers": ([f"--worker-threads{each}=0" for each in ("", "-for-cronjob", "-for-podgroup", "-for-queue", "-for-gc")],
                   UsageError, "at least one worker"),
    "a lease shorter than its deadline": (["--leader-elect-lease-duration=5s"], UsageError, "must be longer"),
}  # fmt: skip


@pytest.mark.parametrize(("argv", "error", "said"), WRONG.values(), ids=WRONG)
def test_flags_that_cannot_work(argv: list[str], error: type[PumiceError], said: str) -> None:
    with pytest.raises(error, match=said.replace("?", r"\?")):
        given(*argv).check()


def test_it_starts_anew_where_the_server_did_not_answer(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """What half a start has taken in is dropped with it."""
    monkeypatch.setattr("controller.cli.BACKOFF", 0.01)
    server.starting = True
    running = Manages(assemble(given("--leader-elect=false"), server, {}))
    server.asked.wait(PATIENCE)
    server.load([pod("p").scheduler("volcano").cpu(1)])
    server.starting = False
    made = until(lambda: bool(server.list(POD_GROUP).objects))
    assert (made, running.stop(), server.get(QUEUE, Key("", "default"))["status"]["state"], bool(server.list(POD).objects)) == (
        True, 0, "Open", True,
    )  # fmt: skip
