"""Clocks of the machine: what they show when its time of day is set."""

from __future__ import annotations

from dataclasses import dataclass

from extender.cluster.clock import SystemClock


@dataclass
class Machine:
    """`wall` may be set at will; `steady` is what has really passed."""

    wall: float = 10_000.0
    steady: float = 0.0

    def passes(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds


def shown(machine: Machine) -> SystemClock:
    return SystemClock(lambda: machine.wall, lambda: machine.steady)


def test_it_is_the_machines() -> None:
    machine = Machine()
    clock = shown(machine)
    machine.passes(7)
    assert clock.now() == 10_007


def test_set_forward_it_follows_at_once() -> None:
    """A machine that has slept is on time again: what was due meanwhile is done."""
    machine = Machine()
    clock = shown(machine)
    machine.wall += 3600
    assert clock.now() == 13_600


def test_set_back_it_goes_on_until_the_machine_has_caught_up() -> None:
    machine = Machine()
    clock = shown(machine)
    machine.wall -= 100
    seen = [clock.now()]
    for seconds in (60, 60, 80, 10):
        machine.passes(seconds)
        seen.append(clock.now())
    assert seen == [10_000, 10_030, 10_060, 10_100, 10_110]
