"""Helm, with folders of its own: nothing of whoever runs the tests is read or written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.manifests.helm import Helm


@pytest.fixture(scope="session")
def helm_environ(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("helm")
    return {f"HELM_{name}_HOME": str(folder / name.lower()) for name in ("CACHE", "CONFIG", "DATA")} | {"HOME": str(folder)}


@pytest.fixture(scope="session")
def helm(helm_program: Path, helm_environ: dict[str, str]) -> Helm:
    return Helm(helm_program, helm_environ)
