"""Our own whole-cluster stories: the YAML files beside this one."""

from __future__ import annotations

from pathlib import Path

import pytest

from extender.testing import cases, scenario

STORIES = sorted(Path(__file__).parent.glob("*.yaml"))


@pytest.mark.parametrize("file", STORIES, ids=lambda file: file.stem)
def test_story(file: Path) -> None:
    """Every expectation of the story holds."""
    assert scenario.judge(cases.load(file)) == []
