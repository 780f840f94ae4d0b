"""Leader election: one at a time, whatever clocks and API server do."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from extender.api.errors import ClusterError, Unavailable
from extender.api.meta import LEASE, NAMESPACE, Json, Key, Kind
from extender.cluster.clock import VirtualClock
from extender.cluster.lease import Election, Terms
from extender.cluster.memory import MemoryCluster

START = 1_736_121_600.0  # 2025-01-06T00:00:00Z
NAME = Key("volcano-system", "volcano")


class Server(MemoryCluster):
    """Refuses what it is told to; `lose_answers`: does what it is asked and says that it failed."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock)
        self.down = False
        self.lose_answers = 0
        self.before_update: Callable[[], None] = lambda: None
        self.create(NAMESPACE, {"metadata": {"name": NAME.namespace}})

    def get(self, kind: Kind, key: Key) -> Json:
        self._check()
        return super().get(kind, key)

    def update(self, kind: Kind, obj: Json, *, subresource: str = "", dry_run: bool = False) -> Json:
        self._check()
        before, self.before_update = self.before_update, lambda: None
        before()
        answer = super().update(kind, obj, subresource=subresource, dry_run=dry_run)
        if self.lose_answers:
            self.lose_answers -= 1
            raise Unavailable("the connection broke")
        return answer

    def _check(self) -> None:
        if self.down:
            raise Unavailable("the server is down")


class Candidate:
    """An election with a clock of its own, `skew` seconds ahead of the server's."""

    def __init__(self, server: Server, who: str, skew: float = 0.0) -> None:
        self.skew = skew
        self.clock = VirtualClock(server.clock.now() + skew)
        self.election = Election(server, self.clock, NAME, who, rng=random.Random(1))
        self.due = self.clock.now()

    def until(self, when: float) -> None:
        """Do all that is due until that time on the server's clock."""
        while self.due <= when + self.skew:
            self.clock.advance_to(self.due)
            self.due = self.election.step()
        self.clock.advance_to(when + self.skew)


class World:
    def __init__(self) -> None:
        self.clock = VirtualClock(START)
        self.server = Server(self.clock)
        self.candidates: dict[str, Candidate] = {}

    def join(self, who: str, skew: float = 0.0) -> Candidate:
        self.candidates[who] = Candidate(self.server, who, skew)
        self.run(0.0)
        return self.candidates[who]

    def run(self, seconds: float, *who: str) -> None:
        """Let time pass in small steps for those named, or all."""
        end = self.clock.now() + seconds
        while True:
            for name in who or self.candidates:
                self.candidates[name].until(self.clock.now())
            if self.clock.now() >= end:
                return
            self.clock.sleep(0.5)

    @property
    def leaders(self) -> list[str]:
        return [who for who, candidate in self.candidates.items() if candidate.election.holds()]

    @property
    def spec(self) -> Json:
        found: Json = MemoryCluster.get(self.server, LEASE, NAME)["spec"]
        return found


@pytest.fixture
def world() -> World:
    world = World()
    world.join("a")
    return world


def test_the_first_one_leads(world: World) -> None:
    """The lease says who, since when, how often it changed hands and how long it lasts."""
    assert (world.leaders, world.spec) == (
        ["a"],
        {"holderIdentity": "a", "leaseDurationSeconds": 15, "acquireTime": "2025-01-06T00:00:00.000000Z",
         "renewTime": "2025-01-06T00:00:00.000000Z", "leaseTransitions": 0},
    )  # fmt: skip


def test_the_second_one_waits(world: World) -> None:
    world.join("b")
    world.run(300)
    assert world.leaders == ["a"]


def test_a_leader_renews(world: World) -> None:
    world.run(60)
    assert (world.spec["acquireTime"], world.spec["renewTime"]) == ("2025-01-06T00:00:00.000000Z", "2025-01-06T00:01:00.000000Z")


def test_a_dead_leader_is_followed_within_the_lease_time(world: World) -> None:
    """15 s after its last renewal, and one retry with its jitter."""
    world.join("b")
    world.run(20)
    world.run(15 + 2 * 2.2, "b")
    assert (world.candidates["b"].election.holds(), world.spec["leaseTransitions"]) == (True, 1)


def test_a_dead_leader_is_not_followed_sooner(world: World) -> None:
    world.join("b")
    world.run(20)
    world.run(14.5, "b")
    assert not world.candidates["b"].election.holds()


def test_a_released_lease_is_taken_at_the_next_attempt(world: World) -> None:
    world.join("b")
    world.run(20)
    world.candidates["a"].election.release()
    world.run(2 * 2.2, "b")
    assert (world.leaders, world.spec["holderIdentity"]) == (["b"], "b")


def test_release_leaves_the_lease_of_another_alone(world: World) -> None:
    """A leader that was away for too long must not take the lease from its successor."""
    world.join("b")
    world.run(40, "b")
    world.candidates["a"].election.release()
    assert world.spec["holderIdentity"] == "b"


@pytest.mark.parametrize("skew", [-7200.0, -3.0, 3.0, 7200.0])
def test_clocks_need_not_agree(world: World, skew: float) -> None:
    """However wrong its clock is, another candidate neither takes a lease that is alive nor misses one that is not."""
    world.join("b", skew)
    world.run(60)
    alive = world.leaders
    world.run(15 + 2 * 2.2, "b")
    assert (alive, world.candidates["b"].election.holds()) == (["a"], True)


def test_a_leader_that_cannot_renew_gives_up_before_others_take_over(world: World) -> None:
    """Its deadline ends 5 s before anybody else may take the lease."""
    world.server.down = True
    world.run(9.5)
    still = world.leaders
    world.run(2.5)
    assert (still, world.leaders, world.candidates["a"].election.lost) == (["a"], [], True)


def test_a_lost_lease_stays_lost(world: World) -> None:
    """The process is to end; it must not come back by itself."""
    world.server.down = True
    world.run(20)
    world.server.down = False
    world.run(20)
    assert world.leaders == []


def test_a_short_failure_is_survived(world: World) -> None:
    world.server.down = True
    world.run(5)
    world.server.down = False
    world.run(20)
    assert world.leaders == ["a"]


def test_a_renewal_whose_answer_was_lost_is_no_loss(world: World) -> None:
    """The next one finds a resourceVersion that it does not know, and its own name in the lease."""
    world.server.lose_answers = 1
    world.run(2)
    world.run(2)
    assert (world.leaders, world.spec["renewTime"]) == (["a"], "2025-01-06T00:00:04.000000Z")


def test_a_deleted_lease_is_made_again(world: World) -> None:
    world.server.delete(LEASE, NAME)
    world.run(6)
    assert (world.leaders, world.spec["holderIdentity"]) == (["a"], "a")


def test_a_leader_that_sees_another_name_stops_at_once(world: World) -> None:
    MemoryCluster.patch(world.server, LEASE, NAME, {"spec": {"holderIdentity": "c"}})
    world.run(2)
    assert (world.leaders, world.candidates["a"].election.lost) == ([], True)


def test_of_two_who_try_at_once_one_wins(world: World) -> None:
    """The second write carries a resourceVersion that is stale."""
    world.run(40)
    one, two = world.join("b"), world.join("c")
    world.run(14.5, "b", "c")
    world.clock.sleep(5)
    one.clock.sleep(5.5)
    world.server.before_update = lambda: two.until(world.clock.now() + 1)
    one.due = one.election.step()
    assert (one.election.holds(), two.election.holds()) == (False, True)


def test_a_candidate_survives_an_api_server_that_is_down(world: World) -> None:
    world.join("b")
    world.run(20)
    world.server.down = True
    world.run(60)
    world.server.down = False
    world.run(20, "b")
    assert world.leaders == ["b"]


def test_the_terms_are_those_of_the_lease_not_of_the_candidate(world: World) -> None:
    """Who waits goes by what the holder promised."""
    MemoryCluster.patch(world.server, LEASE, NAME, {"spec": {"holderIdentity": "x", "leaseDurationSeconds": 60}})
    world.join("b")
    world.run(50, "b")
    assert not world.candidates["b"].election.holds()


def test_at_no_time_there_are_two() -> None:
    """A thousand steps in which candidates stall, clocks differ and the API server fails."""
    chance = random.Random(7)
    world = World()
    for who, skew in (("a", 0.0), ("b", 90.0), ("c", -90.0)):
        world.join(who, skew)
    ever: set[str] = set()
    for step in range(1000):
        if not any(not each.election.lost for each in world.candidates.values()) or chance.random() < 0.02:
            world.join(f"n{step}", chance.uniform(-100, 100))
        world.server.down = chance.random() < 0.2
        world.run(chance.choice((0.5, 1.0, 3.0)), *chance.sample(sorted(world.candidates), k=min(2, len(world.candidates))))
        for each in world.candidates.values():
            each.clock.advance_to(world.clock.now() + each.skew)
        assert len(world.leaders) <= 1
        ever.update(world.leaders)
    assert len(ever) > 3


def test_a_refusal_is_told_once_a_time_and_never_raised(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.server.down = True
    try:
        world.run(3)
    except ClusterError:  # pragma: no cover
        pytest.fail("an API server that is down must not end the candidate")
    assert "the lease cannot be renewed" in caplog.text


def test_the_terms_of_client_go() -> None:
    assert Terms() == Terms(15.0, 10.0, 2.0)
