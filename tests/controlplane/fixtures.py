"""The fixture `plane`: one real control plane for the whole run, started by the first test that asks for it; and `helm`.

Tests that need it are in one xdist group, so that one worker has them all. Where there are neither programs nor a Go toolchain
to build them, they are skipped; with CI=true they fail. Programs are built while tests are collected: a test's time limit
would be too short for it."""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from extender.api.errors import NotFound
from extender.api.meta import CONFIG_MAP, NAMESPACE, SERVICE_ACCOUNT, Key, Kind
from extender.cluster.kubernetes import KubernetesCluster, connect
from extender.cluster.port import Cluster
from tests.controlplane import build
from tests.controlplane.plane import Plane, start
from tests.controlplane.waiting import wait_until

MARK = "controlplane"
AT_FIRST = "wrong at first"  # a property of tests that were right when played again: they say so in the end
_LONGEST = 1200  # seconds of one test: a dozen processes share the machine with it
_PROGRAMS: pytest.StashKey[Path | build.Unavailable] = pytest.StashKey()
_HELM: pytest.StashKey[Path | build.Unavailable] = pytest.StashKey()
_PLANE: pytest.StashKey[Plane] = pytest.StashKey()
_NUMBERS = itertools.count()
_GIVEN = ((SERVICE_ACCOUNT, "default"), (CONFIG_MAP, "kube-root-ca.crt"))  # to each namespace, by controllers in their own time


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{MARK}: needs a real control plane (tests/controlplane)")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "programs" in getattr(item, "fixturenames", ()):
            item.add_marker(MARK)
        if item.get_closest_marker(MARK):
            item.add_marker(pytest.mark.xdist_group(MARK))
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(_LONGEST))


def pytest_collection_finish(session: pytest.Session) -> None:
    if session.config.option.collectonly:
        return
    if any(item.get_closest_marker(MARK) for item in session.items):
        session.config.stash[_PROGRAMS] = _found(build.programs)
    if any("helm_program" in getattr(item, "fixturenames", ()) for item in session.items):
        session.config.stash[_HELM] = _found(build.helm)


def _found(find: Callable[[build.Say], Path]) -> Path | build.Unavailable:
    try:
        return find(lambda line: print(line, file=sys.__stderr__, flush=True))
    except build.Unavailable as error:
        return error


def _there(found: Path | build.Unavailable) -> Path:
    """Skips the test where it is not, and fails it in CI."""
    if isinstance(found, Path):
        return found
    if os.environ.get("CI") == "true":
        pytest.fail(str(found))
    pytest.skip(str(found))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """A test that failed shows what the control plane said."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    plane = item.config.stash.get(_PLANE, None)
    if report.failed and plane is not None and item.get_closest_marker(MARK):
        report.sections += [(f"end of the log of {name}", text) for name, text in plane.logs().items()]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for report in terminalreporter.getreports("passed"):
        for what in dict(report.user_properties).get(AT_FIRST, ()):
            terminalreporter.write_line(f"{AT_FIRST}, {report.nodeid}: {what}")


@pytest.fixture(scope="session")
def programs(pytestconfig: pytest.Config) -> Path:
    """The folder with the programs of a control plane, for a test that starts one of its own or only asks kubectl."""
    return _there(pytestconfig.stash[_PROGRAMS])


@pytest.fixture(scope="session")
def helm_program(pytestconfig: pytest.Config) -> Path:
    return _there(pytestconfig.stash[_HELM])


@pytest.fixture(scope="session")
def plane(pytestconfig: pytest.Config, programs: Path) -> Iterator[Plane]:
    running = start(programs)
    pytestconfig.stash[_PLANE] = running
    yield running
    del pytestconfig.stash[_PLANE]
    running.stop()


@pytest.fixture(scope="session")
def kubernetes(plane: Plane) -> Iterator[KubernetesCluster]:
    """The plane's API server, asked as its administrator."""
    cluster = connect(str(plane.kubeconfig))
    yield cluster
    cluster.close()


@pytest.fixture
def new_namespace(kubernetes: KubernetesCluster) -> Iterator[Callable[[], str]]:
    """Call it for a namespace that is empty and lets pods in; all go when the test is over."""
    with namespaces(kubernetes) as make:
        yield make


@contextlib.contextmanager
def namespaces(cluster: Cluster) -> Iterator[Callable[[], str]]:
    """Makes namespaces that are ready for pods and to which nothing comes of itself any more, and removes them in the end."""
    made: list[str] = []

    def make() -> str:
        name = f"t-{next(_NUMBERS)}"
        cluster.create(NAMESPACE, {"metadata": {"name": name}})
        made.append(name)
        for kind, given in _GIVEN:
            wait_until(partial(_is_there, cluster, kind, Key(name, given)), f"{kind} {given} of namespace {name}")
        return name

    yield make
    for name in made:
        with contextlib.suppress(NotFound):
            cluster.delete(NAMESPACE, Key("", name))


def _is_there(cluster: Cluster, kind: Kind, key: Key) -> bool:
    try:
        cluster.get(kind, key)
    except NotFound:
        return False
    return True
