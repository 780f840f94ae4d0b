"""The line that says how a run goes."""

from __future__ import annotations

import io

from rich.console import Console

from extender.cluster.clock import VirtualClock
from extender.ctl.progress import Progress


def told(*, terminal: bool, encoding: str = "utf-8") -> str:
    """What is written while objects are created, and the controllers then make 12,000 pods of them."""
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    made = [0]
    with Progress(Console(file=file, force_terminal=terminal, width=100), 0.0, lambda: made[0], VirtualClock(0)) as progress:
        assert list(progress.of(["a", "b"], "creating objects:")) == ["a", "b"]
        made[0] = 12_000
    file.flush()
    assert isinstance(file.buffer, io.BytesIO)
    return file.buffer.getvalue().decode(encoding)


def test_a_terminal_shows_how_many_pods_the_controllers_have_made() -> None:
    """Before the first cycle nobody else tells."""
    assert "controllers at work, 12,000 pods made" in told(terminal=True)


def test_elsewhere_nothing_is_said_of_what_is_done_at_once() -> None:
    assert told(terminal=False) == ""


def test_a_terminal_without_unicode() -> None:
    assert "controllers at work" in told(terminal=True, encoding="ascii")
