"""The frame of the daemons: work only with the lease, a clean end, the right exit status."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from extender.api.meta import LEASE, NAMESPACE, Key
from extender.cluster.clock import SteadyClock
from extender.cluster.daemon import Daemon
from extender.cluster.lease import Election
from extender.cluster.memory import MemoryCluster
from tests.daemons.running import PATIENCE, TERMS, Runs

NAME = Key("volcano-system", "volcano")


class Work:
    """Work that says when it began, and ends when it is told to."""

    def __init__(self, at_the_end: Callable[[], None] = lambda: None) -> None:
        self.began, self.ended = threading.Event(), threading.Event()
        self._at_the_end = at_the_end

    def __call__(self, stop: threading.Event) -> None:
        self.began.set()
        stop.wait(PATIENCE)
        self._at_the_end()
        self.ended.set()


@pytest.fixture
def cluster() -> MemoryCluster:
    cluster = MemoryCluster(SteadyClock())
    cluster.create(NAMESPACE, {"metadata": {"name": NAME.namespace}})
    return cluster


def election(cluster: MemoryCluster, who: str) -> Election:
    return Election(cluster, SteadyClock(), NAME, who, TERMS)


def waiting(release: threading.Event) -> None:
    release.wait(PATIENCE)


def holder(cluster: MemoryCluster) -> str:
    return str(cluster.get(LEASE, NAME)["spec"]["holderIdentity"])


def test_a_clean_end_has_status_0() -> None:
    """What was begun is finished first."""
    work = Work()
    daemon = Runs(Daemon(work))
    assert (work.began.wait(PATIENCE), daemon.stop(), work.ended.is_set()) == (True, 0, True)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_work_that_fails_has_status_1(error: type[BaseException], caplog: pytest.LogCaptureFixture) -> None:
    """Whatever it raises: a process that lives on without its work would be taken for one that works."""

    def work(_: threading.Event) -> None:
        raise error("a mistake")

    assert (Runs(Daemon(work)).wait(), f"{error.__name__}: a mistake" in caplog.text) == (1, True)


def test_an_election_that_fails_ends_the_process(cluster: MemoryCluster, caplog: pytest.LogCaptureFixture) -> None:
    """Who could never lead any more is no standby."""
    cluster.create(LEASE, {"metadata": {"namespace": NAME.namespace, "name": NAME.name}, "spec": {"holderIdentity": "a"}})
    broken = election(cluster, "b")
    broken.step = lambda: 1 / 0  # type: ignore[method-assign]
    assert (Runs(Daemon(Work(), broken)).wait(), "the election failed" in caplog.text) == (1, True)


def test_work_that_just_ends_has_status_1() -> None:
    assert Runs(Daemon(lambda _: None)).wait() == 1


def test_work_that_does_not_end_has_status_1() -> None:
    release = threading.Event()
    work = Work(lambda: waiting(release))
    daemon = Runs(Daemon(work, grace=0.1))
    work.began.wait(PATIENCE)
    status = daemon.stop()
    release.set()
    assert status == 1


def test_the_lease_is_released_after_the_work(cluster: MemoryCluster) -> None:
    """While the last writes are on their way nobody else may begin."""
    held_at_the_end: list[str] = []
    work = Work(lambda: held_at_the_end.append(holder(cluster)))
    daemon = Runs(Daemon(work, election(cluster, "a")))
    work.began.wait(PATIENCE)
    assert (daemon.stop(), held_at_the_end, holder(cluster)) == (0, ["a"], "")


def test_who_does_not_lead_does_not_work(cluster: MemoryCluster) -> None:
    first, second = Work(), Work()
    one = Runs(Daemon(first, election(cluster, "a")))
    first.began.wait(PATIENCE)
    two = Runs(Daemon(second, election(cluster, "b")))
    idle = not second.began.wait(0.3)
    stopped = two.stop()
    assert (idle, stopped, holder(cluster), one.stop()) == (True, 0, "a", 0)


def test_the_next_one_takes_over(cluster: MemoryCluster) -> None:
    first, second = Work(), Work()
    one = Runs(Daemon(first, election(cluster, "a")))
    first.began.wait(PATIENCE)
    two = Runs(Daemon(second, election(cluster, "b")))
    one.stop()
    assert (second.began.wait(PATIENCE), two.stop()) == (True, 0)


def test_losing_the_lease_ends_the_process_at_once(cluster: MemoryCluster) -> None:
    """Without waiting for work that is still going on."""
    release = threading.Event()
    work = Work(lambda: waiting(release))
    daemon = Runs(Daemon(work, election(cluster, "a")))
    work.began.wait(PATIENCE)
    cluster.patch(LEASE, NAME, {"spec": {"holderIdentity": "b"}})
    status = daemon.wait()
    release.set()
    assert (status, holder(cluster)) == (1, "b")
