"""Reviews of a small vcjob, sent to a webhook and timed: as fast as it goes by wrk, or at a given pace by threads of ours.

A review at a given pace is timed from the moment at which it was due, so that one that is slow does not hide those that had to
wait behind it."""

from __future__ import annotations

import http.client
import json
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from extender.api.errors import PumiceError
from extender.api.meta import JOB, Json

PATH = "/jobs/mutate?timeout=10s"
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, */*", "User-Agent": "kube-apiserver-admission"}
NEW_CONNECTION_EVERY = 10  # reviews of one thread, where connections shall come and go
_PATIENCE = 30.0  # seconds for one answer
_PERCENTILES = (50.0, 99.0)
_TOO_SHORT = "--seconds are too few for so many --connections"

# What wrk sends, and what it tells in the end as one line of JSON.
_SCRIPT = """\
wrk.method, wrk.body = "POST", %s
for name, value in pairs(%s) do wrk.headers[name] = value end
function done(summary, latency)
  local failed = summary.errors
  print(string.format("\\n{\\"reviews\\": %%d, \\"seconds\\": %%f, \\"failures\\": %%d, \\"milliseconds\\": [%%f, %%f]}",
    summary.requests, summary.duration / 1e6, failed.connect + failed.read + failed.write + failed.status + failed.timeout,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
"""


@dataclass(frozen=True, slots=True)
class Sent:
    """`milliseconds`: the median and the 99th percentile from sending (or being due) to the whole answer."""

    reviews: int
    seconds: float
    failures: int
    milliseconds: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Target:
    """A webhook on this machine. `authority`: a file of those that may have signed its certificate."""

    port: int
    authority: Path
    host: str


def review() -> bytes:
    """As an API server asks about a small job."""
    containers = [{"name": "main", "image": "registry.example/train:1", "command": ["python", "train.py"],
                   "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]  # fmt: skip
    job: Json = {
        "apiVersion": JOB.api_version, "kind": JOB.name,
        "metadata": {"name": "train", "namespace": "default", "labels": {"app": "train"}},
        "spec": {"minAvailable": 2, "tasks": [{"name": "worker", "replicas": 2, "template": {
            "metadata": {"labels": {"app": "train"}}, "spec": {"restartPolicy": "Never", "containers": containers}}}]},
    }  # fmt: skip
    kind = {"group": JOB.group, "version": JOB.version, "kind": JOB.name}
    resource = {"group": JOB.group, "version": JOB.version, "resource": JOB.plural}
    request: Json = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "kind": kind, "resource": resource, "requestKind": kind,
        "requestResource": resource, "name": "train", "namespace": "default", "operation": "CREATE",
        "userInfo": {"username": "somebody", "groups": ["system:authenticated"]}, "object": job, "oldObject": None,
        "dryRun": False, "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }  # fmt: skip
    whole = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
    return json.dumps(whole, separators=(",", ":")).encode()


def by_wrk(wrk: str, target: Target, connections: int, seconds: float, folder: Path) -> Sent:
    """As many as it takes, on one thread. wrk trusts any certificate."""
    script = folder / "review.lua"
    headers = ", ".join(f"[{_lua(name)}] = {_lua(value)}" for name, value in HEADERS.items())
    script.write_text(_SCRIPT % (_lua(review().decode()), f"{{{headers}}}"))
    command = [wrk, "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", f"--timeout={_PATIENCE:.0f}s", f"-s{script}",
               f"https://{target.host}:{target.port}{PATH}"]  # fmt: skip
    ran = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    try:
        told = json.loads(ran.stdout.strip().rpartition("\n")[2])
    except ValueError:
        raise PumiceError(f"wrk ended with {ran.returncode}:\n{(ran.stderr or ran.stdout)[-1000:]}") from None
    if not told["reviews"]:
        raise PumiceError(f"no review was answered: {told['failures']} failures, or {_TOO_SHORT}")
    return Sent(told["reviews"], told["seconds"], told["failures"], tuple(told["milliseconds"]))


def by_threads(target: Target, connections: int, seconds: float, rate: float | None = None, *, reconnect: bool = False) -> Sent:
    """`rate`: so many a second, all threads together; None: as many as it takes. `reconnect`: connections come and go."""
    context = ssl.create_default_context(cafile=str(target.authority))
    senders = [_Sender(target, context, reconnect) for _ in range(connections)]
    began = time.perf_counter()
    pace = _Pace(rate, began + seconds)
    threads = [threading.Thread(target=sender.run, args=(pace,), daemon=True) for sender in senders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    times = sorted(t for sender in senders for t in sender.seconds)
    failures = [failure for sender in senders for failure in sender.failures]
    if not times:
        raise PumiceError(f"no review was answered: {failures[0] if failures else _TOO_SHORT}")
    return Sent(len(times), time.perf_counter() - began, len(failures), _percentiles(times))


class _Pace:
    """When the next review is due: shared by all senders. None once the time is over."""

    def __init__(self, rate: float | None, end: float) -> None:
        self._between, self._end, self._lock = 1 / rate if rate else 0.0, end, threading.Lock()
        self._next = time.perf_counter()

    def __call__(self) -> float | None:
        with self._lock:
            due = self._next if self._between else time.perf_counter()
            self._next += self._between
        return due if due < self._end else None


class _Sender:
    """One connection at a time."""

    def __init__(self, target: Target, context: ssl.SSLContext, reconnect: bool) -> None:
        self._reconnect = reconnect
        self._body = review()
        self._connection = http.client.HTTPSConnection(target.host, target.port, timeout=_PATIENCE, context=context)
        self.seconds: list[float] = []
        self.failures: list[str] = []

    def run(self, pace: Callable[[], float | None]) -> None:
        with closing(self._connection):
            while (due := pace()) is not None:
                time.sleep(max(0.0, due - time.perf_counter()))
                try:
                    self._send()
                    self.seconds.append(time.perf_counter() - due)
                except (OSError, http.client.HTTPException, ValueError) as error:
                    self.failures.append(repr(error))
                    self._connection.close()
                if self._reconnect and len(self.seconds) % NEW_CONNECTION_EVERY == 0:
                    self._connection.close()

    def _send(self) -> None:
        """Raises ValueError for an answer that is not the patch."""
        self._connection.request("POST", PATH, self._body, HEADERS)
        answer = self._connection.getresponse()
        body = answer.read()
        if answer.status != 200 or not json.loads(body)["response"].get("patch"):
            raise ValueError(f"{answer.status}: {body[:200]!r}")


def _percentiles(times: Sequence[float]) -> tuple[float, float]:
    median, slow = (times[min(len(times) - 1, int(len(times) * part / 100))] * 1000 for part in _PERCENTILES)
    return median, slow


def _lua(text: str) -> str:
    """A string of Lua."""
    return json.dumps(text)
