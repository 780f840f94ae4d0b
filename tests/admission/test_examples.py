"""Requests and answers as YAML pairs: NAME.input.yaml is sent, NAME.output.yaml is what must come of it.

The input has the keys of a recorded case (see conftest.py). `pytest tests/admission --update` writes the outputs anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

INPUTS = sorted(Path(__file__).parent.glob("*.input.yaml"))


@pytest.mark.parametrize("asked", INPUTS, ids=[path.name.removesuffix(".input.yaml") for path in INPUTS])
def test_the_answer_is_as_written(asked: Path, ask: Any, update: bool) -> None:
    """The verdict, every fault with its words, and the operations of the patches."""
    result = ask(yaml.safe_load(asked.read_text()))
    answer: dict[str, Any] = {"allowed": result.allowed}
    if result.denied_by:
        answer |= {"deniedBy": result.denied_by, "faults": [str(fault) for fault in result.faults]}
    if result.patches:
        answer["patches"] = result.patches
    expected = asked.with_name(asked.name.replace(".input.", ".output."))
    if update:
        expected.write_text(yaml.safe_dump(answer, sort_keys=False, width=130, allow_unicode=True))
    assert expected.exists(), f"{expected.name} is missing: run with --update and read what it says"
    assert answer == yaml.safe_load(expected.read_text())
