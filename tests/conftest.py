"""Shared by all tests: `@pytest.mark.cases("sessions")` runs a test once for each case file of that folder.

The test takes the argument `case`, a Path (read it with extender.testing.cases.load). Where the cases are not on this
machine the test is skipped and says how to point to them."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from extender.testing import cases

pytest_plugins = ("tests.controlplane.fixtures",)

# How long a busy machine takes says nothing about the code.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite the output half of YAML pairs; read the diff afterwards")


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marker = metafunc.definition.get_closest_marker("cases")
    if marker is None:
        return
    subdir, *pattern = marker.args
    files = cases.case_files(subdir, *pattern)
    if files:
        metafunc.parametrize("case", files, ids=[file.stem for file in files])
    else:
        absent = pytest.param(None, id="missing", marks=pytest.mark.skip(reason=cases.missing(subdir)))
        metafunc.parametrize("case", [absent])
