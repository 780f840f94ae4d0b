"""vc-scheduler on the embedded cluster: what it waits for, what it serves, how it ends."""

from __future__ import annotations

import errno
import io
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from extender.api.errors import ConfError, Unavailable, UsageError
from extender.api.meta import EVENT, LEASE, NAMESPACE, NODE, POD, Json, Key, Kind
from extender.cli import Scheduler, assemble, check_conf, main
from extender.cluster.clock import SystemClock, VirtualClock
from extender.cluster.flags import parse
from extender.cluster.memory import MemoryCluster
from extender.cluster.port import Listing
from extender.dump import write
from extender.options import PROGRAM, Options, node_filter, unused
from extender.testing.builders import node, podgroup, queue, task
from tests.daemons.running import ELECTED, PATIENCE, Runs, ask, until

LEASE_NAME = Key("volcano-system", "volcano")
SERVING = ("--enable-healthz", "--enable-metrics", "--healthz-address=127.0.0.1:0", "--listen-address=127.0.0.1:0")
QUICK = ("--schedule-period=10ms", *ELECTED)


class Server(MemoryCluster):
    """Kinds in `silent` cannot be listed yet. `bound` is set when a pod has been bound; `slow` holds a binding up."""

    def __init__(self) -> None:
        super().__init__(SystemClock())
        self.silent: set[Kind] = set()
        self.bound, self.asked = threading.Event(), threading.Event()
        self.slow: threading.Event | None = None
        self.create(NAMESPACE, {"metadata": {"name": LEASE_NAME.namespace}})
        self.load([queue(), node("n1").cpu(4).memory("8Gi"), podgroup("g"), task("g-0", "g").cpu(1)])

    def list(self, kind: Kind, namespace: str = "", label_selector: str = "", field_selector: str = "") -> Listing:
        if kind in self.silent:
            raise Unavailable("the server is starting")
        return super().list(kind, namespace, label_selector, field_selector)

    def bind(self, pod: Key, node: str, *, uid: str = "", annotations: dict[str, str] | None = None) -> None:
        self.asked.set()
        if self.slow is not None:
            self.slow.wait(PATIENCE)
        super().bind(pod, node, uid=uid, annotations=annotations)
        self.bound.set()


class Schedules(Runs):
    """A scheduler in a thread."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__(scheduler.daemon)
        self.scheduler = scheduler

    def ask(self, path: str) -> tuple[int, str]:
        return ask(self.scheduler.servers, path)


Start = Callable[..., Schedules]


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def start(server: Server) -> Iterator[Start]:
    with ExitStack() as stack:

        def begin(*argv: str, environ: Mapping[str, str] | None = None) -> Schedules:
            options = parse(Options(), [*QUICK, *argv], {}, PROGRAM).options
            running = Schedules(assemble(options, server, environ or {}))
            stack.callback(running.stop)
            return running

        yield begin


def node_of(cluster: MemoryCluster, pod: str) -> str:
    found: Json = cluster.get(POD, Key("default", pod))
    return str(found["spec"].get("nodeName", ""))


SHOWN = (
    'volcano_schedule_attempts_total{result="scheduled"} 1.0',
    "volcano_leader 1.0",
    "volcano_config_last_reload_successful 1.0",
    'volcano_task_scheduling_latency_milliseconds_count{stage="Bound"} 1.0',
    "volcano_e2e_scheduling_latency_milliseconds_count",
    'volcano_scheduling_stage_duration_milliseconds_count{stage="Bind"} 1.0',
    'volcano_queue_allocated_milli_cpu{queue_name="default"}',
    'volcano_action_scheduling_latency_milliseconds_count{action="allocate"}',
    'volcano_plugin_scheduling_latency_milliseconds_count{OnSession="OnSessionOpen",plugin="gang"}',
    "volcano_build_info{",
    "process_resident_memory_bytes",
)

# --- work -----------------------------------------------------------------------------------------------------------------


def test_it_binds_as_the_leader(server: Server, start: Start) -> None:
    start()
    assert (server.bound.wait(PATIENCE), node_of(server, "g-0")) == (True, "n1")
    assert server.get(LEASE, LEASE_NAME)["spec"]["holderIdentity"]


def test_it_makes_no_lease_where_it_is_not_to_be_elected(server: Server, start: Start) -> None:
    start("--leader-elect=false")
    assert (server.bound.wait(PATIENCE), server.list(LEASE).objects) == (True, [])


def test_a_second_one_does_nothing(server: Server, start: Start) -> None:
    """Until the first has gone."""
    first = start()
    server.bound.wait(PATIENCE)
    second = start()
    server.load([podgroup("h"), task("h-0", "h").cpu(1)])
    bound_by_first = until(lambda: bool(node_of(server, "h-0")))
    idle = second.scheduler.standalone.loop.last is None
    first.stop()
    server.load([podgroup("i"), task("i-0", "i").cpu(1)])
    assert (bound_by_first, idle, until(lambda: bool(node_of(server, "i-0")))) == (True, True, True)


def test_schedulers_of_different_names_have_leases_of_their_own(server: Server, start: Start) -> None:
    """The reference gives both the same one, and they wait for each other."""
    running = start("--scheduler-name=blue")
    until(lambda: running.daemon.leading.is_set())
    assert server.get(LEASE, Key("volcano-system", "blue"))


def test_no_session_before_every_list_has_come(server: Server, start: Start) -> None:
    """A node that is not known yet looks like one that is not there, and a pod like free room."""
    server.silent.add(NODE)
    running = start("--enable-healthz", "--healthz-address=127.0.0.1:0")
    lagging = until(lambda: running.ask("/readyz")[0] == 500)
    status, said = running.ask("/readyz?verbose")
    alive = running.ask("/livez")[0]
    idle = running.scheduler.standalone.loop.last is None
    assert (lagging, status, "informer-sync failed: not listed yet: " in said and "nodes" in said, alive, idle) == (
        True, 500, True, 200, True,
    )  # fmt: skip


def test_what_was_begun_is_finished(server: Server, start: Start) -> None:
    """Asked to end in the middle of a binding it waits for it, and only then lets go of the lease."""
    server.slow = threading.Event()
    running = start()
    server.asked.wait(PATIENCE)
    running.daemon.ask_to_stop()
    held = str(server.get(LEASE, LEASE_NAME)["spec"]["holderIdentity"])
    server.slow.set()
    status = running.stop()
    released = server.get(LEASE, LEASE_NAME)["spec"]["holderIdentity"]
    assert (bool(held), status, node_of(server, "g-0"), released) == (True, 0, "n1", "")


def test_only_nodes_of_the_selector_are_ours(server: Server, start: Start) -> None:
    """One label is enough; a node that loses it is not ours any more."""
    server.load([node("n2").cpu(4).memory("8Gi").labels(pool="gang")])
    start("--node-selector=pool:batch,pool:gang")
    first = until(lambda: node_of(server, "g-0") == "n2")
    server.patch(NODE, Key("", "n2"), {"metadata": {"labels": {"pool": None}}})
    server.load([podgroup("h"), task("h-0", "h").cpu(1)])
    told = until(lambda: "0/0 nodes" in json.dumps(server.get(POD, Key("default", "h-0"))["status"]))
    assert (first, told) == (True, True)


SELECTORS: dict[str, tuple[list[str], dict[str, str], bool]] = {
    "the label": (["a:b"], {"a": "b"}, True),
    "another value": (["a:b"], {"a": "c"}, False),
    "one of two": (["a:b", "c:d"], {"c": "d"}, True),
    "spaces": ([" a : b "], {"a": "b"}, True),
    "a value with a colon": (["a:b:c"], {"a": "b:c"}, True),
}


@pytest.mark.parametrize(("selector", "labels", "want"), SELECTORS.values(), ids=SELECTORS)
def test_node_selectors(selector: list[str], labels: dict[str, str], want: bool) -> None:
    chosen = node_filter(selector)
    assert chosen is not None
    assert chosen({"metadata": {"labels": labels}}) == want


# --- what it serves -------------------------------------------------------------------------------------------------------


def test_probes(server: Server, start: Start) -> None:
    running = start(*SERVING)
    server.bound.wait(PATIENCE)
    assert [running.ask(path)[0] for path in ("/healthz", "/healthz/ping", "/livez/loop", "/readyz/informer-sync")] == [200] * 4


def test_metrics_of_the_work(server: Server, start: Start) -> None:
    """Upstream's names and ours."""
    running = start(*SERVING)
    server.bound.wait(PATIENCE)

    def missing() -> list[str]:
        said = running.ask("/metrics")[1]
        return [line for line in SHOWN if line not in said]

    assert until(lambda: not missing()), missing()


def test_pages_for_people(start: Start) -> None:
    running = start("--enable-pprof", "--listen-address=127.0.0.1:0", "--default-queue=main")
    flags = json.loads(running.ask("/debug/flags")[1])
    assert (flags["--default-queue"], "extender" in running.ask("/debug/stacks")[1]) == ("main", True)


def test_it_explains(server: Server, start: Start) -> None:
    running = start(*SERVING)
    server.bound.wait(PATIENCE)
    said = (200, "default/g does not wait: 1 of 1 pods have a node\n")
    assert until(lambda: running.ask("/explain?pod=g-0") == said)


def test_one_address_for_everything(start: Start) -> None:
    running = start(*SERVING)
    assert (running.ask("/healthz")[0], running.ask("/metrics")[0]) == (200, 200)


def test_an_address_that_cannot_be_had(server: Server, start: Start) -> None:
    """Probes that cannot be served are an error, as in the reference; metrics are not."""
    taken = start("--enable-healthz", "--healthz-address=127.0.0.1:0").scheduler.servers[0].port
    options = parse(Options(), ["--enable-healthz", f"--healthz-address=127.0.0.1:{taken}"], {}, PROGRAM).options
    with pytest.raises(UsageError, match=f"--healthz-address 127.0.0.1:{taken}"):
        assemble(options, server, {})
    assert start("--enable-metrics", f"--listen-address=127.0.0.1:{taken}").scheduler.servers == []


# --- configuration and dumps ----------------------------------------------------------------------------------------------


def test_a_reload_is_used_by_the_next_session(tmp_path: Path) -> None:
    """Without a restart; and an event about our pod says so."""
    server, clock = Server(), VirtualClock(1_000_000.0)
    path = tmp_path / "scheduler.conf"
    path.write_text('actions: "enqueue"\ntiers: []\n')
    options = Options(scheduler_conf=str(path))
    environ = {"POD_NAME": "scheduler-0", "POD_NAMESPACE": "volcano-system"}
    scheduler = assemble(replace(options, leader=replace(options.leader, leader_elect=False)), server, environ, clock=clock)
    scheduler.standalone.turn()
    before = node_of(server, "g-0")
    path.write_text('actions: "enqueue, allocate"\ntiers: [{plugins: [{name: gang}]}]\n')
    clock.sleep(5)
    scheduler.standalone.turn()
    told = [event["reason"] for event in server.list(EVENT, "volcano-system").objects]
    assert (before, node_of(server, "g-0"), told) == ("", "n1", ["ConfigReloaded"])


def test_a_loop_that_does_not_get_on_is_not_alive() -> None:
    """Neither a turn nor a binding for five minutes; many bindings may well take longer than that."""
    server, clock = Server(), VirtualClock(1_000_000.0)
    standalone = assemble(Options(), server, {}, clock=clock).standalone
    waits_for_the_lease = standalone.alive()
    standalone.turn()
    clock.sleep(299)
    standalone.beat()
    clock.sleep(299)
    busy = standalone.alive()
    clock.sleep(1)
    assert (waits_for_the_lease, busy, standalone.alive()) == (None, None, "nothing has got on for 300 s")


def test_a_dump_is_one_object_without_secrets(server: Server, start: Start, tmp_path: Path) -> None:
    """Names, amounts and states."""
    secret = task("h-0", "h").cpu(1)
    secret["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": "hunter2"}]
    server.load([podgroup("h"), secret])
    running = start(f"--cache-dump-dir={tmp_path}")
    until(lambda: bool(node_of(server, "h-0")))
    running.scheduler.standalone.ask_for_dump()
    until(lambda: bool(list(tmp_path.glob("snapshot-*.json"))))
    (file,) = tmp_path.glob("snapshot-*.json")
    dumped: dict[str, Any] = json.loads(file.read_text())
    assert (dumped["tasks"]["default/h-0"]["node"], dumped["jobs"]["default/h"]["queue"], "hunter2" in file.read_text(),
            oct(file.stat().st_mode & 0o777)) == ("n1", "default", False, "0o600")  # fmt: skip


def test_a_dump_is_there_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it is written nobody sees it by its name; one that could not be written leaves nothing."""
    while_written: list[Path] = []

    class Full(io.BytesIO):
        def write(self, _: object) -> int:
            while_written.extend(tmp_path.glob("snapshot-*.json"))
            raise OSError(errno.ENOSPC, "No space left on device")

    def opened(file: int, _: str) -> Full:
        os.close(file)
        return Full()

    monkeypatch.setattr("extender.dump.os.fdopen", opened)
    with pytest.raises(OSError, match="No space"):
        write({"tasks": {}}, str(tmp_path), 1_000_000.0)
    assert (while_written, list(tmp_path.iterdir())) == ([], [])


CONFS: dict[str, tuple[str, int, str]] = {
    "good": ('actions: "allocate"\ntiers: []\n', 0, "can be used"),
    "a warning": ('actions: "allocate"\ntiers: [{plugins: [{name: gang, arguments: {x: 1}}]}]\n', 0, "nobody reads this"),
    "mistakes": ('actions: "alocate"\ntears: []\n', 1, "did you mean 'tiers'?"),
}


@pytest.mark.parametrize(("text", "status", "said"), CONFS.values(), ids=CONFS)
def test_check_conf(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, status: int, said: str) -> None:
    """All mistakes at once, with path and nearest word; the exit status is for scripts."""
    path = tmp_path / "scheduler.conf"
    path.write_text(text)
    found = check_conf(Options(scheduler_conf=str(path)))
    assert (found, said in "".join(capsys.readouterr())) == (status, True)


def test_check_conf_asks_no_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "scheduler.conf"
    path.write_text('actions: "alocate"\n')
    with pytest.raises(SystemExit) as end:
        main(["--check-conf", f"--scheduler-conf={path}"])
    assert (end.value.code, "unknown action 'alocate'" in capsys.readouterr().err) == (1, True)


def test_a_configuration_that_cannot_be_used_is_an_error_at_the_start(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "scheduler.conf"
    path.write_text('actions: "alocate"\n')
    with pytest.raises(ConfError, match="alocate"):
        assemble(Options(scheduler_conf=str(path)), server, {})


WRONG: dict[str, tuple[list[str], str]] = {
    "a lease shorter than its deadline": (["--leader-elect-lease-duration=5s"], "--leader-elect-lease-duration must be longer"),
    "a deadline for one attempt": (["--leader-elect-retry-period=9s"], "--leader-elect-renew-deadline must be longer"),
    "no address": (["--healthz-address=here"], "'here' is no address"),
    "no selector": (["--node-selector=a"], "must be label:value"),
    "no default and no file": (["--disable-default-scheduler-config"], "needs --scheduler-conf"),
    "a negative period": (["--schedule-period=-1s"], "must not be negative"),
}


@pytest.mark.parametrize(("argv", "said"), WRONG.values(), ids=WRONG)
def test_flags_that_cannot_work(argv: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse(Options(), argv, {}, PROGRAM).options.check()


def test_the_leader_s_rules_do_not_hold_without_election() -> None:
    parse(Options(), ["--leader-elect=false", "--leader-elect-lease-duration=5s"], {}, PROGRAM).options.check()


def test_a_variable_that_does_nothing_is_named() -> None:
    environ = {"BATCH_BIND_NUM": "5", "POD_NAME": "p"}
    assert unused(environ) == ["BATCH_BIND_NUM has no effect: bindings are written side by side, not gathered"]
