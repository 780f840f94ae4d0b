"""vc-scheduler with plugins of its user: they decide and are measured as those that are built in, and may fail."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from extender.api.errors import ConfError
from extender.cli import assemble
from extender.cluster.clock import VirtualClock
from extender.cluster.options import LeaderOptions
from extender.options import Options
from extender.testing.builders import node
from tests.daemons.running import PATIENCE
from tests.daemons.test_scheduler import Server, Start, node_of, server, start

__all__ = ["server", "start"]

CONF = 'actions: "allocate"\ntiers: [{plugins: [{name: gang}, {name: picky}]}]\n'
PICKY = """
import numpy as np
from extender.core.plugin import Plugin, Refusal

class Picky(Plugin[None]):
    def predicate(self, ssn, cls, at):
        return [Refusal("too near", np.array([ssn.nodes.name[row] == "n1" for row in at.rows]))]

def new(arguments):
    return Picky(None)
"""


def flags(folder: Path, text: str = PICKY) -> list[str]:
    (folder / "scheduler.conf").write_text(CONF)
    plugins = folder / "plugins"
    plugins.mkdir(exist_ok=True)
    (plugins / "picky.py").write_text(text)
    return [f"--scheduler-conf={folder / 'scheduler.conf'}", f"--plugins-dir={plugins}"]


def test_a_plugin_decides_and_is_measured(server: Server, start: Start, tmp_path: Path) -> None:
    server.load([node("n2").cpu(4).memory("8Gi")])
    running = start("--enable-metrics", "--listen-address=127.0.0.1:0", *flags(tmp_path))
    assert server.bound.wait(PATIENCE)
    assert node_of(server, "g-0") == "n2"
    assert 'OnSession="OnSessionOpen",plugin="picky"' in running.ask("/metrics")[1]


def test_a_plugin_that_fails_is_told_and_tried_again(server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is bound meanwhile, and the scheduler stays."""
    words = flags(tmp_path, PICKY.replace("return [Refusal", "return 1 / 0, [Refusal"))
    folder = words[1].removeprefix("--plugins-dir=")
    alone = LeaderOptions(leader_elect=False)
    options = Options(scheduler_conf=str(tmp_path / "scheduler.conf"), plugins_dir=folder, leader=alone)
    scheduler = assemble(options, server, {}, clock=VirtualClock())
    with caplog.at_level(logging.ERROR):
        pauses = [scheduler.standalone.turn() for _ in range(2)]
    scheduler.standalone.loop.close()
    assert (pauses, node_of(server, "g-0")) == ([5.0, 5.0], "")
    assert f"{folder}/picky.py:7: ZeroDivisionError" in str(caplog.records[-1].__dict__["about"])


def test_a_plugin_that_failed_once_is_tried_again_though_nothing_happens(server: Server, tmp_path: Path) -> None:
    """After sessions that went well, and with a cluster that stands still."""
    once = PICKY.replace(
        "        return [Refusal",
        """        import pathlib
        broken = pathlib.Path(__file__).with_name("broken")
        if broken.exists():
            raise OSError("the list of racks cannot be had")
        return [Refusal""",
    )
    words = flags(tmp_path, once)
    folder = words[1].removeprefix("--plugins-dir=")
    alone = LeaderOptions(leader_elect=False)
    options = Options(scheduler_conf=str(tmp_path / "scheduler.conf"), plugins_dir=folder, leader=alone)
    scheduler = assemble(options, server, {}, clock=VirtualClock())
    scheduler.standalone.turn()
    broken = Path(folder, "broken")
    broken.touch()
    server.load([node("n2").cpu(4).memory("8Gi")])
    pauses = [scheduler.standalone.turn()]
    broken.unlink()
    pauses.append(scheduler.standalone.turn())
    scheduler.standalone.loop.close()
    assert (pauses, node_of(server, "g-0")) == ([5.0, 1.0], "n2")


def test_a_plugin_that_cannot_be_loaded_is_an_error_at_the_start(server: Server, tmp_path: Path) -> None:
    words = flags(tmp_path, "x = = 1\n")
    options = Options(scheduler_conf=str(tmp_path / "scheduler.conf"), plugins_dir=words[1].removeprefix("--plugins-dir="))
    with pytest.raises(ConfError, match=r"picky\.py:1: SyntaxError"):
        assemble(options, server, {})
