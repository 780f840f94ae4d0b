"""The extender with a plugin of its user that fails: it says so, decides nothing, and works again when the plugin does."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from extender.api.errors import PluginError
from extender.api.meta import POD, Key
from extender.cluster.clock import VirtualClock
from extender.cluster.memory import MemoryCluster
from extender.service import NotReady, Service, Settings
from extender.testing.builders import queue
from extender.vocabulary import vocabulary
from tests.extending.world import gang, machines

CONF = 'actions: "enqueue, allocate"\ntiers: [{plugins: [{name: gang}, {name: fragile}]}]\n'
FRAGILE = """
import pathlib
from extender.core.plugin import Plugin

class Fragile(Plugin[None]):
    def job_order(self, ssn, job):
        return 0

    def open(self, ssn):
        if pathlib.Path(__file__).with_name("broken").exists():
            raise RuntimeError("no rack has that name")

def new(arguments):
    return Fragile(None)
"""


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """As long as this file is there the plugin fails."""
    (tmp_path / "fragile.py").write_text(FRAGILE)
    file = tmp_path / "broken"
    file.touch()
    return file


@pytest.fixture
def service(broken: Path) -> Service:
    clock = VirtualClock(1000.0)
    cluster = MemoryCluster(clock)
    cluster.load([queue("root"), queue(), *machines(2), *gang("g", 2)])
    made = Service(cluster, vocabulary(str(broken.parent)).read(CONF, "conf"), clock, Settings(period=0.01))
    made.start()
    return made


def about(service: Service, pod: str = "g-0") -> bytes:
    found = service._cluster.get(POD, Key("default", pod))
    return msgspec.json.encode({"Pod": found, "NodeNames": ["n0", "n1"]})


def answered(service: Service, verb: str, body: bytes) -> Any:
    return msgspec.json.decode(service.answer(verb, body).body)


def test_filter_says_which_plugin_failed_and_why(service: Service) -> None:
    told = answered(service, "filter", about(service))
    assert "fragile.py:11: RuntimeError: no rack has that name" in told["Error"]
    assert not told.get("NodeNames")


def test_a_verb_without_a_field_for_errors_is_refused(service: Service) -> None:
    body = msgspec.json.encode({"Pod": msgspec.json.decode(about(service))["Pod"], "NodeNameToMetaVictims": {}})
    with pytest.raises(NotReady, match="no rack has that name"):
        service.answer("preempt", body)


def test_it_works_again_when_the_plugin_does(service: Service, broken: Path) -> None:
    service.answer("filter", about(service))
    broken.unlink()
    assert answered(service, "filter", about(service))["NodeNames"] == ["n0"]


def test_it_does_not_end_by_it(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    """Nor by the survey, which nobody asks for."""
    with pytest.raises(PluginError):
        service.survey()
    stop = threading.Event()
    periods: list[None] = []

    def each_period() -> None:
        periods.append(None)
        if len(periods) == 3:
            stop.set()

    with caplog.at_level(logging.ERROR):
        service.run(stop, each_period)
    assert (len(periods), "no rack has that name" in str(caplog.records[0].__dict__["about"])) == (3, True)
