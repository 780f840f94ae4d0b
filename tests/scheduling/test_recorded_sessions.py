"""Single sessions recorded from the reference: the same objects and configuration must give the same decisions."""

from __future__ import annotations

from pathlib import Path

import pytest

from extender.testing import cases, sessions


@pytest.mark.cases("sessions")
def test_recorded_session(case: Path) -> None:
    """A session decides what the reference decided."""
    _holds(case)


@pytest.mark.cases("random-sessions")
def test_recorded_random_session(case: Path) -> None:
    """A session over generated objects decides all that the reference decided seven times out of seven."""
    _holds(case)


def _holds(file: Path) -> None:
    case = cases.load(file)
    lacking = sessions.out_of_scope(case)
    if lacking:
        pytest.skip(lacking)
    assert sessions.judge(case) == []
