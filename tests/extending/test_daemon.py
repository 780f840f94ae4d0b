"""vc-scheduler --extender-only: its flags, TLS, and who answers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import urllib3

from extender import cli
from extender.api.errors import UsageError
from extender.cluster.clock import SteadyClock
from extender.cluster.flags import parse
from extender.cluster.memory import MemoryCluster
from extender.extending import ExtenderOptions
from extender.options import Options
from tests.controlplane.pki import Authority

ALONE = ExtenderOptions(extender_address="127.0.0.1:0", extender_only=True)


@pytest.fixture
def daemon() -> Iterator[cli.Extender]:
    """Assembled: it serves, and has not begun to work."""
    made = assembled()
    yield made
    made.extending.server.close()


def assembled(*words: str) -> cli.Extender:
    given = parse(Options(), ["--extender-only", "--extender-address=127.0.0.1:0", "--leader-elect=false", *words], {}, "x")
    return cli.assemble_extender(given.options, MemoryCluster(SteadyClock()), {})


def status_of(url: str, authority: Path | None = None) -> int:
    with urllib3.PoolManager(ca_certs=str(authority) if authority else None, retries=False, timeout=10.0) as http:
        return http.request("GET", url).status


def test_it_is_alive_but_not_ready_until_it_leads(daemon: cli.Extender) -> None:
    address = f"http://127.0.0.1:{daemon.extending.server.port}"
    assert (status_of(f"{address}/livez"), status_of(f"{address}/readyz")) == (200, 500)


def test_it_is_ready_once_it_has_the_lists(daemon: cli.Extender) -> None:
    address = f"http://127.0.0.1:{daemon.extending.server.port}"
    ended: list[int] = []
    working = threading.Thread(target=lambda: ended.append(daemon.daemon.run()))
    working.start()
    while status_of(f"{address}/readyz") != 200:
        threading.Event().wait(0.01)
    daemon.daemon.ask_to_stop()
    working.join()
    assert ended == [0]


def test_it_ends_where_it_can_follow_the_cluster_no_more(daemon: cli.Extender, caplog: pytest.LogCaptureFixture) -> None:
    """A mirror that stands still unnoticed would give rooms away twice; the next one begins with new lists."""

    def fails(*_: object) -> None:
        raise ArithmeticError("what the watch brought")

    daemon.extending.service.intake.listeners.append(fails)
    assert daemon.daemon.run() == 1
    assert "what the watch brought" in caplog.text


WRONG = {
    "alone without an address": ExtenderOptions(extender_only=True),
    "a certificate without a key": ExtenderOptions(":8090", True, extender_tls_cert_file="x"),
    "too few threads": ExtenderOptions(":8090", True, extender_threads=64),
    "a reservation that ends before the wait": ExtenderOptions(":8090", True, extender_reservation=10.0),
    "no address": ExtenderOptions("here", True),
}


@pytest.mark.parametrize("options", WRONG.values(), ids=WRONG)
def test_what_cannot_work_together_is_refused(options: ExtenderOptions) -> None:
    with pytest.raises(UsageError):
        options.check()


def test_its_lease_is_its_own() -> None:
    """A standalone scheduler in the same namespace does not wait for it."""
    assert (Options(extender=ALONE).lease.name, Options().lease.name) == ("vc-extender", "volcano")


def test_https(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair = authority.serving("extender", ["127.0.0.1"])
    made = assembled(f"--extender-tls-cert-file={pair.certificate}", f"--extender-tls-private-key-file={pair.key}")
    assert status_of(f"https://127.0.0.1:{made.extending.server.port}/livez", authority.certificate) == 200
    made.extending.server.close()
