"""Command lines: what Go's pflag accepts is accepted, flags win over variables, mistakes name the nearest flag."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from certs import cli as certs
from controller import cli as controllers
from extender import options as scheduler
from extender.api.errors import UsageError
from extender.cluster.flag_pages import documentation
from extender.cluster.flags import DURATION, LIST, SWITCHES, Asked, flag, group, parse, parse_or_exit, rows
from webhook import cli as webhook

PAGE = Path(__file__).resolve().parents[2] / "docs" / "flags.md"


@dataclass(frozen=True, slots=True)
class Client:
    kube_api_qps: float = flag(50.0, "requests a second")
    kubeconfig: str = flag("", "path")


CLIENT = Client(kube_api_qps=2000.0)


@dataclass(frozen=True, slots=True)
class Options:
    schedule_period: float = flag(1.0, "pause between sessions", kind=DURATION)
    scheduler_name: tuple[str, ...] = flag(("volcano",), "whose pods")
    node_selector: tuple[str, ...] = flag((), "which nodes", kind=LIST)
    leader_elect: bool = flag(True, "one at a time")
    priority_class: bool = flag(True, "watch them", unused="always")
    worker_threads: int = flag(3, "how many")
    mode: str = flag("none", "sharding", choices=("none", "hard", "soft"))
    feature_gates: tuple[tuple[str, bool], ...] = flag((), "gates", kind=SWITCHES)
    verbosity: int = flag(0, "how much to tell", name="v")
    client: Client = field(default=CLIENT, metadata=group("API server"))


def given(*argv: str, **environ: str) -> Any:
    return parse(Options(), argv, environ, "program")


READ: dict[str, tuple[list[str], str, object]] = {
    "a default": ([], "schedule_period", 1.0),
    "equals": (["--schedule-period=1m30s"], "schedule_period", 90.0),
    "the next word": (["--schedule-period", "300ms"], "schedule_period", 0.3),
    "underscores": (["--schedule_period=2s"], "schedule_period", 2.0),
    "the last one counts": (["--schedule-period=2s", "--schedule-period=3s"], "schedule_period", 3.0),
    "a switch alone": (["--leader-elect"], "leader_elect", True),
    "a switch off": (["--leader-elect=false"], "leader_elect", False),
    "a switch as Go reads it": (["--leader-elect=F"], "leader_elect", False),
    "a switch takes no word": (["--leader-elect=false", "--leader-elect"], "leader_elect", True),
    "repeated names replace the default": (["--scheduler-name=a", "--scheduler-name=b"], "scheduler_name", ("a", "b")),
    "a repeated name keeps its comma": (["--scheduler-name=a,b"], "scheduler_name", ("a,b",)),
    "a list": (["--node-selector=a:b,c:d", "--node-selector=e:f"], "node_selector", ("a:b", "c:d", "e:f")),
    "a negative number": (["--worker-threads", "-1"], "worker_threads", -1),
    "a value that looks like a flag": (["--scheduler-name", "--x"], "scheduler_name", ("--x",)),
    "a choice": (["--mode=soft"], "mode", "soft"),
    "gates": (["--feature-gates=A=true,B=false"], "feature_gates", (("A", True), ("B", False))),
    "short with equals": (["-v=3"], "verbosity", 3),
    "short and apart": (["-v", "4"], "verbosity", 4),
    "short in one": (["-v5"], "verbosity", 5),
    "long of one letter": (["--v=6"], "verbosity", 6),
    "a redirection that no shell has seen": (["--v=2", "2>&1"], "verbosity", 2),
}


@pytest.mark.parametrize(("argv", "name", "want"), READ.values(), ids=READ)
def test_reading(argv: list[str], name: str, want: object) -> None:
    """What stands on the command line."""
    assert getattr(given(*argv).options, name) == want


VARIABLES: dict[str, tuple[list[str], dict[str, str], str, object]] = {
    "a variable": ([], {"PUMICE_SCHEDULE_PERIOD": "5s"}, "schedule_period", 5.0),
    "a flag wins": (["--schedule-period=2s"], {"PUMICE_SCHEDULE_PERIOD": "5s"}, "schedule_period", 2.0),
    "several values": ([], {"PUMICE_SCHEDULER_NAME": "a,b"}, "scheduler_name", ("a", "b")),
    "of one letter": ([], {"PUMICE_V": "4"}, "verbosity", 4),
    "of another program": ([], {"SCHEDULE_PERIOD": "5s"}, "schedule_period", 1.0),
}


@pytest.mark.parametrize(("argv", "environ", "name", "want"), VARIABLES.values(), ids=VARIABLES)
def test_variables(argv: list[str], environ: dict[str, str], name: str, want: object) -> None:
    """One variable for each flag."""
    assert getattr(given(*argv, **environ).options, name) == want


def test_groups_have_the_defaults_of_the_program() -> None:
    assert given().options.client == Client(2000.0, "")


def test_groups_take_flags() -> None:
    assert given("--kubeconfig=/k", "--kube-api-qps", "10").options.client == Client(10.0, "/k")


WRONG: dict[str, tuple[list[str], str]] = {
    "a flag nobody knows": (["--schedul-period=1s"], "unknown flag: --schedul-period; did you mean 'schedule-period'?"),
    "a short one nobody knows": (["-x"], "unknown flag: --x"),
    "a word": (["start"], "unexpected argument 'start': there are only flags"),
    "no value": (["--schedule-period"], "flag needs an argument: --schedule-period"),
    "no duration": (["--schedule-period=5"], "invalid value '5' for --schedule-period: '5' is not a duration"),
    "no number": (["--worker-threads=many"], "invalid value 'many' for --worker-threads: must be a whole number"),
    "no switch": (["--leader-elect=perhaps"], "invalid value 'perhaps' for --leader-elect: must be true or false"),
    "no choice": (["--mode=sof"], "invalid value 'sof' for --mode; did you mean 'soft'?"),
    "no gate": (["--feature-gates=A"], "invalid value 'A' for --feature-gates: 'A' must be name=true or name=false"),
}


@pytest.mark.parametrize(("argv", "want"), WRONG.values(), ids=WRONG)
def test_mistakes(argv: list[str], want: str) -> None:
    """The message names the flag, the value and what would be right."""
    with pytest.raises(UsageError) as error:
        given(*argv)
    assert str(error.value).startswith(want)


def test_a_mistake_in_a_variable_names_the_variable() -> None:
    with pytest.raises(UsageError, match="for PUMICE_WORKER_THREADS: must be a whole number"):
        given(PUMICE_WORKER_THREADS="x")


def test_leftovers_of_klog_are_one_warning() -> None:
    argv = ["--logtostderr", "--stderrthreshold=INFO", "--log_dir", "/tmp", "--vmodule=a=1", "--priority-class=false"]
    assert given(*argv).warnings == (
        "without effect here: --logtostderr, --stderrthreshold, --log-dir, --vmodule, --priority-class",
    )


def test_a_switch_of_klog_takes_no_word() -> None:
    assert given("--logtostderr", "--v=3").options.verbosity == 3


@pytest.mark.parametrize("argv", [["--help"], ["-h"], ["--v=1", "--help"]], ids=" ".join)
def test_help_names_every_flag_with_its_default(argv: list[str]) -> None:
    with pytest.raises(Asked) as answer:
        given(*argv)
    words = str(answer.value).split()
    assert ("--schedule-period" in words, "--kube-api-qps" in words, "2000)" in words, "[no" in words) == (True,) * 4


def test_version_names_version_commit_and_python() -> None:
    with pytest.raises(Asked, match=r"^program \S+, git commit \S+, Python 3\.\d+\.\d+"):
        given("--version")


def test_a_program_answers_help_with_status_0(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        parse_or_exit(Options(), ["--help"], {}, "program")
    assert (end.value.code, capsys.readouterr().out.startswith("usage: program [flags]")) == (0, True)


def test_a_program_answers_mistakes_with_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        parse_or_exit(Options(), ["--nope"], {}, "program")
    assert (end.value.code, capsys.readouterr().err.startswith("error: unknown flag: --nope")) == (2, True)


def test_the_page_is_current(update: bool) -> None:
    """docs/flags.md, made of the declarations."""
    certificates = {f"vc-certs {name}": command.options for name, command in certs.COMMANDS.items()}
    text = documentation({
        "vc-scheduler": scheduler.Options(), "vc-controller-manager": controllers.Options(),
        "vc-webhook-manager": webhook.Options(), **certificates,
    })  # fmt: skip
    if update:
        PAGE.write_text(text)
    assert PAGE.read_text() == text, "pytest tests/daemons --update writes it anew"


SCHEDULER_DEFAULTS = {
    "scheduler-name": "volcano", "scheduler-conf": "", "disable-default-scheduler-config": "false", "schedule-period": "1s",
    "default-queue": "default", "node-selector": "", "resource-sync-timeout": "1m0s", "cache-dumper": "true",
    "cache-dump-dir": "/tmp", "enable-pprof": "false", "scheduler-sharding-mode": "none", "scheduler-sharding-name": "volcano",
    "minimum-feasible-nodes": "100", "minimum-percentage-nodes-to-find": "5", "percentage-nodes-to-find": "0",
    "node-worker-threads": "20", "gate-removal-worker-num": "5", "priority-class": "true", "csi-storage": "true",
    "ignored-provisioners": "", "resync-period": "0s", "plugins-dir": "", "master": "", "kubeconfig": "", "kube-api-qps": "2000",
    "kube-api-burst": "2000", "leader-elect": "true", "leader-elect-lease-duration": "15s", "leader-elect-renew-deadline": "10s",
    "leader-elect-retry-period": "2s", "leader-elect-resource-lock": "leases", "lock-object-namespace": "",
    "leader-elect-resource-namespace": "volcano-system",
    "enable-healthz": "false", "healthz-address": ":11251", "enable-metrics": "false",
    "listen-address": ":8080", "ca-cert-file": "", "tls-cert-file": "", "tls-private-key-file": "", "feature-gates": "",
}  # fmt: skip
CONTROLLER_DEFAULTS = {
    "controllers": "*,-sharding-controller", "scheduler-name": "volcano", "worker-threads": "3",
    "worker-threads-for-cronjob": "3", "worker-threads-for-podgroup": "5", "worker-threads-for-queue": "5",
    "worker-threads-for-gc": "1", "max-requeue-num": "15",
    "inherit-owner-annotations": "true", "listen-address": ":8081", "kube-api-qps": "50", "kube-api-burst": "100",
    "leader-elect-resource-name": "vc-controller-manager", "leader-elect": "true", "healthz-address": ":11251",
    "shard-sync-period": "1m0s", "enable-node-event-trigger": "true", "sharding-configmap": "volcano-sharding-configmap",
    "sharding-configmap-namespace": "volcano-system",
}  # fmt: skip


REFERENCE = {
    "vc-scheduler": (scheduler.Options(), SCHEDULER_DEFAULTS),
    "vc-controller-manager": (controllers.Options(), CONTROLLER_DEFAULTS),
}


@pytest.mark.parametrize(("options", "want"), REFERENCE.values(), ids=REFERENCE)
def test_flags_and_defaults_are_those_of_the_reference(options: Any, want: dict[str, str]) -> None:
    shown = {row.name: row.flag.kind.show(row.default) for row in rows(options)}
    assert {name: shown.get(name) for name in want} == want


CHARTS = {
    "the scheduler's": (
        scheduler.Options(),
        "--logtostderr --scheduler-conf=/volcano.scheduler/volcano-scheduler.conf --enable-healthz=true --enable-metrics=true "
        "--leader-elect=false --kube-api-qps=2000 --kube-api-burst=2000 --schedule-period=1s --node-worker-threads=20 -v=3 2>&1"),
    "the controllers'": (
        controllers.Options(),
        "--logtostderr --enable-healthz=true --enable-metrics=true --leader-elect=false --kube-api-qps=50 --kube-api-burst=100 "
        "--worker-threads=3 --worker-threads-for-gc=5 --worker-threads-for-podgroup=5 -v=4 2>&1"),
}  # fmt: skip


@pytest.mark.parametrize(("options", "line"), CHARTS.values(), ids=CHARTS)
def test_command_lines_of_the_reference_s_chart(options: Any, line: str) -> None:
    """They stand as they are."""
    parse(options, line.split(), {}, "program").options.check()
