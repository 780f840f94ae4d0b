"""The examples that come along: each runs with the command that stands in it and ends with the status that stands there."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from pathlib import Path

import pytest

from extender.cluster import manifests
from tests.run.conftest import Command

FOLDER = manifests.folder() / "examples"
FILES = sorted(FOLDER.glob("*.yaml"))
_COMMAND = re.compile(r"^# +pumice (run .*?) +ends with ([0-9])$", re.MULTILINE)


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_an_example(pumice: Command, file: Path) -> None:
    """Nothing in it is refused, mistyped or unknown."""
    found = _COMMAND.search(file.read_text())
    assert found is not None, "the comment at its top must say how to run it and how that ends"
    words = shlex.split(found[1])
    assert words[1] == f"manifests/examples/{file.name}"
    ran = pumice("run", str(file), *words[2:])
    assert (ran.status, ran.fault) == (int(found[2]), "")
    assert "warning" not in ran.err


def test_the_readme_lists_them_all() -> None:
    listed = re.findall(r"^\| \[([^]]+)\]", (FOLDER / "README.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(["demo/", *(file.name for file in FILES)])


def test_the_demo(pumice: Command) -> None:
    """Gangs whole, a share reclaimed, a preemption, a launcher after its workers; one job waits and it is said why."""
    ran = pumice("run", *map(str, sorted((FOLDER / "demo").glob("*.yaml"))), "-o", "json")
    told = json.loads(ran.out)
    assert (ran.status, "warning" in ran.err) == (3, False)
    assert told["jobs"] == {
        "default/pretrain": "Completed",
        "default/sweep": "Completed",
        "default/simulate": "Completed",
        "default/inference": "Running",
        "default/hotfix": "Completed",
        "default/train-70b": "Pending",
    }
    by_action = Counter((each["pod"].rsplit("-", 2)[0], each["reason"]) for each in told["evictions"])
    assert by_action == {("default/sweep", "reclaim"): 4, ("default/sweep", "preempt"): 2}
    (waits,) = told["waiting"]
    assert waits["job"] == "default/train-70b"
    assert waits["message"].startswith("gang of 3: 2 fit, 1 lack a node; ")
