"""The plane itself: what kwok plays and what not, and that nothing is left over, however a test run ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from extender.api import labels
from extender.api.meta import NODE, POD, Key
from extender.cluster.kubernetes import KubernetesCluster
from extender.testing.builders import node, pod
from tests.controlplane.plane import NOT_PLAYED, PROJECT
from tests.controlplane.waiting import wait_until

PLAYED, LEFT_ALONE = "plane-played", "plane-left-alone"


@pytest.fixture
def nodes(kubernetes: KubernetesCluster) -> Iterator[None]:
    kubernetes.create(NODE, node(PLAYED).cpu(4))
    kubernetes.create(NODE, node(LEFT_ALONE).cpu(4).labels({NOT_PLAYED: "true"}))
    yield
    for name in (PLAYED, LEFT_ALONE):
        kubernetes.delete(NODE, Key("", name))


class Playing:
    """Binds pods and tells what became of them."""

    def __init__(self, cluster: KubernetesCluster, ns: str) -> None:
        self.cluster, self.ns = cluster, ns

    def bind(self, name: str, on: str = PLAYED, **annotations: str) -> None:
        asked = pod(name, self.ns)
        asked["metadata"]["annotations"] = annotations
        self.cluster.create(POD, asked)
        self.cluster.bind(Key(self.ns, name), on)

    def phase(self, name: str) -> str:
        return str(self.cluster.get(POD, Key(self.ns, name))["status"]["phase"])

    def becomes(self, name: str, phase: str) -> None:
        wait_until(lambda: self.phase(name) == phase, f"{name} to be {phase}")


@pytest.fixture
def playing(nodes: None, kubernetes: KubernetesCluster, new_namespace: Callable[[], str]) -> Playing:  # noqa: ARG001
    return Playing(kubernetes, new_namespace())


def test_a_pod_runs_and_goes_on_running(playing: Playing) -> None:
    playing.bind("p")
    playing.becomes("p", "Running")


ENDS = {"0": "Succeeded", "3": "Failed"}


@pytest.mark.parametrize(("code", "phase"), ENDS.items(), ids=ENDS.values())
def test_a_pod_ends_as_its_annotations_say(playing: Playing, code: str, phase: str) -> None:
    playing.bind("p", **{labels.RUN_SECONDS: "1", labels.EXIT_CODE: code})
    playing.becomes("p", phase)
    status = playing.cluster.get(POD, Key(playing.ns, "p"))["status"]["containerStatuses"][0]
    assert status["state"]["terminated"]["exitCode"] == int(code)


def test_a_pod_may_be_held(playing: Playing) -> None:
    playing.bind("held", **{labels.HOLD: "true"})
    playing.bind("other")
    playing.becomes("other", "Running")
    assert playing.phase("held") == "Pending"


def test_a_node_may_be_left_alone(playing: Playing) -> None:
    playing.bind("alone", on=LEFT_ALONE)
    playing.bind("other")
    playing.becomes("other", "Running")
    assert playing.phase("alone") == "Pending"


def test_a_pod_goes_at_once_when_it_is_deleted(playing: Playing) -> None:
    playing.bind("p")
    playing.becomes("p", "Running")
    playing.cluster.delete(POD, Key(playing.ns, "p"))
    wait_until(lambda: not playing.cluster.list(POD, playing.ns).objects, "the pod to go")


# --- the end of a run ---------------------------------------------------------------------------------------------------

LEAVES_ONE_BEHIND = """
import os, signal, sys
from pathlib import Path
from tests.controlplane.processes import Processes

processes = Processes(Path(sys.argv[1]))
print(processes.start("sleeper", ["sleep", "600"]), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_run_leaves_behind_is_ended_and_its_folder_removed(tmp_path: Path) -> None:
    folder = tmp_path / "plane"
    folder.mkdir()
    ran = subprocess.run([sys.executable, "-c", LEAVES_ONE_BEHIND, str(folder)], cwd=PROJECT, text=True, capture_output=True)
    assert ran.returncode == -signal.SIGKILL, ran.stderr
    wait_until(lambda: not is_running(int(ran.stdout)), "the program to end")
    wait_until(lambda: not folder.exists(), "its folder to go")


def is_running(pid: int) -> bool:
    """A zombie has ended; whoever adopted it has yet to look."""
    try:
        os.kill(pid, 0)
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False
