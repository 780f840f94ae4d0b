"""Signals to the real processes, and their exit status. No cluster is needed: the server that they ask refuses, or is silent."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from extender.cluster.serving import Answer, HttpServer, Request

SCHEDULER, CONTROLLERS = "extender.cli", "controller.cli"
BOTH = pytest.mark.parametrize("program", [SCHEDULER, CONTROLLERS])
PATIENCE = 60  # seconds, the start of a process on a busy machine included


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(PATIENCE)
        yield server


@pytest.fixture
def refusing() -> Iterator[str]:
    """The address of a server that lets nobody do anything."""

    def page(_: Request) -> Answer:
        return Answer(403, '{"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403}', "application/json")

    server = HttpServer(("127.0.0.1", 0), {"/": page})
    yield f"http://127.0.0.1:{server.port}"
    server.close()


@contextlib.contextmanager
def running(program: str, master: str, *flags: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", f"from {program} import main; main()", f"--master={master}", "--kubeconfig=", *flags]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={"HOME": "/nonexistent"})
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def address(server: socket.socket) -> str:
    return f"http://127.0.0.1:{server.getsockname()[1]}"


def told(process: subprocess.Popen[str], words: str) -> bool:
    """Reads what the process says until the words come."""
    assert process.stderr is not None
    return any(words in line for line in process.stderr)


@BOTH
def test_an_end_while_the_server_refuses_is_clean(program: str, refusing: str) -> None:
    with running(program, refusing, "--leader-elect=false") as process:
        asked = told(process, "the API server does not answer as it should")
        process.send_signal(signal.SIGTERM)
        assert (asked, process.wait(PATIENCE)) == (True, 0)


@BOTH
def test_an_end_while_waiting_for_the_lease_is_clean(program: str, refusing: str) -> None:
    with running(program, refusing) as process:
        asked = told(process, "the lease cannot be taken")
        process.send_signal(signal.SIGINT)
        assert (asked, process.wait(PATIENCE)) == (True, 0)


@BOTH
def test_a_second_signal_ends_at_once(program: str, silent: socket.socket) -> None:
    """The first waits for a request that is on its way, and for which there will be no answer for long."""
    with running(program, address(silent), "--leader-elect=false") as process:
        connection, _ = silent.accept()
        with connection:
            process.send_signal(signal.SIGTERM)
            stopping = told(process, "stopping")
            process.send_signal(signal.SIGTERM)
            assert (stopping, process.wait(PATIENCE)) == (True, 1)


@BOTH
def test_logs_are_lines_of_json_on_request(program: str) -> None:
    with running(program, "http://127.0.0.1:1", "--leader-elect=false", "--logging-format=json", "--logtostderr") as process:
        assert process.stderr is not None
        line = process.stderr.readline()
    said = json.loads(line)
    assert (said["level"], said["msg"]) == ("warning", "without effect here: --logtostderr")


WRONG: dict[str, tuple[str, list[str], int, str]] = {
    "a flag": (SCHEDULER, ["--nope"], 2, "error: unknown flag: --nope"),
    "a value": (SCHEDULER, ["--schedule-period=1"], 2, "error: invalid value '1' for --schedule-period"),
    "flags that do not fit": (SCHEDULER, ["--leader-elect-lease-duration=1s"], 2, "error: --leader-elect-lease-duration must be"),
    "a configuration": (SCHEDULER, ["--scheduler-conf=/nonexistent"], 1, "error: /nonexistent: cannot be read"),
    "a kubeconfig": (SCHEDULER, ["--kubeconfig=/nonexistent"], 1, "error: /nonexistent: "),
    "a controller": (CONTROLLERS, ["--controllers=jobs"], 1, "error: --controllers: there is no controller 'jobs'"),
    "an address": (CONTROLLERS, ["--listen-address=x"], 2, "error: --listen-address: 'x' is no address"),
}


@pytest.mark.parametrize(("program", "flags", "status", "said"), WRONG.values(), ids=WRONG)
def test_what_keeps_them_from_starting(program: str, flags: list[str], status: int, said: str) -> None:
    """A line that says what is wrong, no traceback; status 2 for the command line, 1 for all else."""
    with running(program, "http://127.0.0.1:1", *flags) as process:
        assert process.stderr is not None
        text = process.stderr.read()
        assert (process.wait(PATIENCE), said in text, "Traceback" in text) == (status, True, False)
