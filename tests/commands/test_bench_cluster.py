"""`pumice bench cluster`: its parts without a server, and a small measurement on a real control plane."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
import yaml
from click.testing import CliRunner

from extender.api.errors import UsageError
from extender.api.meta import NODE, POD, Json, Key
from extender.cluster.clock import VirtualClock
from extender.cluster.kubernetes import KubernetesCluster
from extender.cluster.memory import MemoryCluster
from extender.ctl.bench_cluster import cluster as command
from extender.ctl.measuring import load
from extender.ctl.measuring.bindings import Bindings
from extender.ctl.measuring.child import Child
from extender.ctl.measuring.counts import BINDING, Write, between, writes
from extender.ctl.measuring.report import Idle, Stage, as_json, lines
from extender.ctl.measuring.schedulers import chosen, extended
from extender.testing.builders import pod
from tests.controlplane.plane import NOT_PLAYED, Plane
from tests.controlplane.waiting import wait_until

METRICS = """\
# TYPE apiserver_request_total counter
apiserver_request_total{code="201",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="binding",verb="POST",version="v1"} 5000
apiserver_request_total{code="409",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="binding",verb="POST",version="v1"} 3
apiserver_request_total{code="201",component="apiserver",dry_run="",group="",resource="events",scope="resource",subresource="",verb="POST",version="v1"} 1.2e+06
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="cluster",subresource="",verb="LIST",version="v1"} 17
apiserver_request_total{code="200",component="apiserver",dry_run="",group="coordination.k8s.io",resource="leases",scope="resource",subresource="",verb="PUT",version="v1"} 400
apiserver_request_total{code="200",component="",dry_run="",group="",resource="",scope="",subresource="/readyz",verb="GET",version=""} 9
apiserver_request_terminations_total{code="200",resource="pods",verb="POST"} 4
"""  # noqa: E501


# --- what is counted ----------------------------------------------------------------------------------------------------


def test_writes_are_summed_over_answers_and_reads_and_leases_are_not_counted() -> None:
    assert writes(METRICS) == {BINDING: 5003, Write("POST", "events"): 1_200_000}


def test_only_what_became_more_is_told() -> None:
    before = {BINDING: 5, Write("POST", "events"): 7}
    assert between(before, {**before, BINDING: 8, Write("PATCH", "pods/status"): 1}) == {
        BINDING: 3,
        Write("PATCH", "pods/status"): 1,
    }


# --- who decides --------------------------------------------------------------------------------------------------------


def test_ours_gets_its_flags() -> None:
    ours = chosen("pumice", "", "/k")
    assert ours.scheduler_name == "pumice-bench"
    assert ours.commands[0][0] == sys.executable
    assert ours.commands[0][-3:] == ("--kubeconfig=/k", "--scheduler-name=pumice-bench", "--leader-elect=false")


def test_kube_scheduler_gets_its_flags_and_takes_the_pods_of_its_own_name() -> None:
    kube = chosen("/opt/kube-scheduler", "", "/k")
    assert (kube.name, kube.scheduler_name, kube.commands[0][:2]) == (
        "kube-scheduler", "default-scheduler", ("/opt/kube-scheduler", "--kubeconfig=/k"),
    )  # fmt: skip


def test_any_other_command_stays_as_it_is_but_for_the_names() -> None:
    other = chosen("kube-scheduler --config 'a b' --x={kubeconfig} {name}", "mine", "/k")
    assert other.commands == (("kube-scheduler", "--config", "a b", "--x=/k", "mine"),)


def test_the_extender_comes_before_kube_scheduler_and_is_in_its_configuration(tmp_path: Path) -> None:
    both = extended("/opt/kube-scheduler", "/k", 8090, tmp_path)
    assert "--extender-address=127.0.0.1:8090" in both.commands[0]
    assert both.commands[1][:2] == ("/opt/kube-scheduler", f"--config={tmp_path / 'kube-scheduler.yaml'}")
    written = yaml.safe_load((tmp_path / "kube-scheduler.yaml").read_text())
    assert written["extenders"][0]["urlPrefix"] == "http://127.0.0.1:8090/extender/v1"
    assert written["clientConnection"]["kubeconfig"] == "/k"
    assert both.scheduler_name == written["profiles"][1]["schedulerName"]


def test_plain_pods_go_by_the_default_profile(tmp_path: Path) -> None:
    assert extended("/opt/kube-scheduler", "/k", 8090, tmp_path, plain=True).scheduler_name == "default-scheduler"


@pytest.mark.parametrize("words", ["", "  ", "a 'b"])
def test_a_command_that_is_none(words: str) -> None:
    with pytest.raises(UsageError, match="--scheduler"):
        chosen(words, "", "/k")


# --- the process --------------------------------------------------------------------------------------------------------


def test_what_a_process_used(tmp_path: Path) -> None:
    """50 MiB and a tenth of a second, at least."""
    code = "import time\nx = b'x' * (50 << 20)\nwhile time.process_time() < 0.1: pass\nprint('done', flush=True)\ntime.sleep(60)"
    child = Child([sys.executable, "-c", code], tmp_path / "log")
    wait_until(lambda: "done" in child.says(), "the process to be done")
    assert child.status() is None
    assert child.resident_mebibytes() > 50
    used = child.end()
    assert used.cpu_seconds >= 0.1
    assert 50 < used.peak_mebibytes < 150
    assert child.status() == -15
    assert child.end() == used


def test_one_that_ends_by_itself(tmp_path: Path) -> None:
    child = Child([sys.executable, "-c", "import sys; sys.exit('no such flag')"], tmp_path / "log")
    wait_until(lambda: child.status() is not None, "its end")
    assert (child.status(), child.says()) == (1, "no such flag\n")
    assert child.end().cpu_seconds > 0


# --- bindings -----------------------------------------------------------------------------------------------------------


def test_pods_are_counted_when_they_get_a_node() -> None:
    cluster = MemoryCluster(VirtualClock())
    load.make_nodes(cluster, 1, 0.0, {})
    for name in ("a", "b", "elsewhere"):
        cluster.create(POD, {**pod(name), "metadata": {"name": name, "namespace": "x" if name == "elsewhere" else "default"}})
    bindings = Bindings(cluster, "default")
    for key in (Key("default", "a"), Key("default", "b"), Key("x", "elsewhere")):
        cluster.bind(key, load.node_name(0))
    assert bindings.wait(2, seconds=5)
    assert set(bindings.at) == {"a", "b"}
    assert (bindings.first_to_last, bindings.rate) == (0.0, None)
    assert not bindings.wait(3, seconds=60, going_on=lambda: False)
    bindings.close()


# --- the load -----------------------------------------------------------------------------------------------------------


def gangs(**more: object) -> load.Load:
    return load.Load(namespace="ns", scheduler_name="s", gangs=2, size=3, **more)  # type: ignore[arg-type]


def test_gangs_have_groups_and_plain_pods_have_none() -> None:
    assert [each["spec"]["minMember"] for each in load.groups(gangs())] == [3, 3]
    assert list(load.groups(gangs(plain=True))) == []
    assert sum("annotations" in each["metadata"] for each in load.pods(gangs())) == 6
    assert sum("annotations" in each["metadata"] for each in load.pods(gangs(plain=True))) == 0


def test_running_pods_are_spread_over_the_nodes() -> None:
    on = [each["spec"]["nodeName"] for each in load.pods(gangs(), nodes=2)]
    assert on == ["pumice-bench-0", "pumice-bench-1"] * 3


# --- the report ---------------------------------------------------------------------------------------------------------

RAW = Stage("raw", 10, 10, 1.0, 1000.0, 1.1)
OURS = Stage("pumice", 10, 10, 2.0, 500.0, 3.0, 1.03, {"POST events": 10}, 4.5, 99.0)


def test_a_share_of_raw_is_told_where_raw_was_measured() -> None:
    assert as_json(5, [RAW, OURS])["stages"][1]["share_of_raw"] == 0.5
    assert "share_of_raw" not in as_json(5, [OURS])["stages"][0]


def test_a_rate_that_could_not_be_measured_is_not_told_as_none_at_all() -> None:
    """Ten bindings may be seen in one look at the watch."""
    at_once = replace(RAW, first_to_last_seconds=0.0, binds_per_second=None)
    assert as_json(5, [at_once])["stages"][0]["binds_per_second"] is None
    assert "share_of_raw" not in as_json(5, [at_once, OURS])["stages"][1]
    assert ["binds", "a", "second", "-", "500"] in [line.split() for line in lines(5, [at_once, OURS])]


def test_a_column_for_each_stage() -> None:
    told = {line[:31].strip(): line[31:].split() for line in lines(5, [RAW, OURS])}
    assert told[""] == ["raw", "pumice"]
    assert told["binds a second"] == ["1,000", "500"]
    assert told["writes a pod besides the bind"] == ["-", "1.03"]


def test_idle_is_told_in_cores() -> None:
    told = [line.split() for line in lines(5, [Idle("pumice", 10, 60.0, 0.0123, 90.0, 95.0)])]
    assert ["idle,", "cores", "0.012"] in told


# --- on a real control plane --------------------------------------------------------------------------------------------


def measured(plane: Plane, *arguments: str) -> list[Json]:
    """kwok does not play the nodes, so that nothing is written but by the scheduler."""
    words = [f"--kubeconfig={plane.kubeconfig}", "-o", "json", "--nodes=5", "--gangs=2", "--size=5", "--timeout=60",
             f"--node-label={NOT_PLAYED}=true", *arguments]  # fmt: skip
    result = CliRunner().invoke(command, words)
    if result.exception is not None:
        raise result.exception
    stages: list[Json] = orjson.loads(result.stdout)["stages"]
    return stages


def test_a_small_measurement(plane: Plane, kubernetes: KubernetesCluster) -> None:
    """Ours and the API server alone; then nothing is left."""
    raw, ours = measured(plane, "--raw", "--scheduler=pumice")
    assert (raw["scheduler"], raw["bound"]) == ("raw", 10)
    assert (ours["scheduler"], ours["bound"], ours["writes"]["POST pods/binding"]) == ("pumice", 10, 10)
    assert ours["cpu_seconds"] > 0
    assert ours["peak_mebibytes"] > 20
    assert raw["binds_per_second"] is None or raw["share_of_raw"] == 1.0
    assert kubernetes.list(NODE, label_selector=load.OURS).objects == []
    assert kubernetes.list(POD, label_selector=load.OURS).objects == []


@pytest.mark.parametrize(
    "arguments", [["--raw", "--idle=1"], ["--node-label", "x"], ["--scheduler", "a 'b"], ["--gangs=1000000"]]
)
def test_wrong_words(arguments: list[str]) -> None:
    result = CliRunner().invoke(command, arguments)
    assert isinstance(result.exception, UsageError)
