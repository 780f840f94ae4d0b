"""Waiting for what a real cluster does in its own time. The only place where tests sleep."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 240.0  # seconds, as long as a very busy machine may need: only a test that fails waits for their end
_STEP = 0.05


def wait_until(holds: Callable[[], object], what: str, patience: float = PATIENCE) -> None:
    """Raises AssertionError where `what` has not come about in time."""
    deadline = time.monotonic() + patience
    while not holds():
        assert time.monotonic() < deadline, f"waited {patience:.0f} s for {what}"
        time.sleep(_STEP)
