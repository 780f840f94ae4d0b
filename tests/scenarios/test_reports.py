"""Stories of faults that people met in systems like this one, played on the embedded cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from extender.testing import cases, scenario


@pytest.mark.cases("reports")
def test_report(case: Path) -> None:
    """Every expectation of the story holds."""
    story = cases.load(case)
    lacking = scenario.out_of_scope(story)
    if lacking:
        pytest.skip(lacking)
    assert scenario.judge(story) == []
