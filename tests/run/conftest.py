"""Runs `pumice ...` in this process, as the console script does, in a folder of its own."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from extender.ctl.pumice import main


class Ran(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def fault(self) -> str:
        """What follows `error: `, "" where nothing is wrong."""
        _, found, text = self.err.rpartition("error: ")
        return text.strip() if found else ""


Command = Callable[..., Ran]


@pytest.fixture
def pumice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """`pumice("run", "jobs.yaml", files={"jobs.yaml": text}, stdin=...)`. Standard output is no terminal."""
    monkeypatch.chdir(tmp_path)
    for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)

    def command(*words: str, files: dict[str, str | bytes] | None = None, stdin: str = "") -> Ran:
        for name, content in (files or {}).items():
            file = tmp_path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content if isinstance(content, bytes) else content.encode())
        monkeypatch.setattr(sys, "argv", ["pumice", *words])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        capsys.readouterr()
        status = 0
        try:
            main()
        except SystemExit as done:
            status = done.code if isinstance(done.code, int) else int(bool(done.code))
        captured = capsys.readouterr()
        return Ran(status, captured.out, captured.err)

    return command
