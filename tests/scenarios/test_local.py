"""Everything in one process: what a run gives, how it ends, how faults in what is loaded are told."""

from __future__ import annotations

from typing import Any

import pytest

from extender.actions import ACTIONS
from extender.api.labels import RUN_SECONDS
from extender.api.meta import JOB, POD, Json
from extender.cluster.clock import VirtualClock
from extender.core.conf import DEFAULT, load
from extender.local import Local, NotLoaded, Outcome
from extender.loop import Cycle
from extender.plugins import PLUGINS
from extender.testing.builders import node, podgroup, queue, task

START = 1_736_121_600.0


def local(**more: Any) -> Local:
    return Local(load(DEFAULT, PLUGINS, ACTIONS), VirtualClock(START), **more)


def job(name: str, *, replicas: int = 2, cpu: int = 1, run: str = "60") -> Json:
    """A Volcano job whose pods run for some seconds."""
    container = {"name": "main", "image": "example.test/app:1", "resources": {"requests": {"cpu": str(cpu)}}}
    template = {"metadata": {"annotations": {RUN_SECONDS: run}}, "spec": {"restartPolicy": "Never", "containers": [container]}}
    spec = {"minAvailable": replicas, "tasks": [{"name": "w", "replicas": replicas, "template": template}]}
    return {"apiVersion": JOB.api_version, "kind": "Job", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def phases(outcome: Outcome) -> dict[str, str]:
    return {obj["metadata"]["name"]: obj["status"]["state"]["phase"] for obj in outcome.objects[JOB]}


def test_a_job_runs_to_its_end() -> None:
    """With every component on, a job is admitted, bound, run and completed; then nothing can change any more."""
    world = local()
    world.load([node("n1").cpu(2).memory("4Gi")])
    world.create([job("train")])
    outcome = world.run()
    assert (outcome.ended, phases(outcome)) == ("settled", {"train": "Completed"})


def test_seconds_in_which_nothing_is_due_are_jumped_over() -> None:
    """A day costs no more cycles than things happen in it."""
    world = local()
    world.load([node("n1").cpu(2).memory("4Gi")])
    world.create([job("long", run="24h")])
    outcome = world.run()
    assert outcome.now - START >= 86_400
    assert outcome.cycles < 20


def test_jobs_take_turns() -> None:
    """The history tells which node each pod had, and from when to when: the second job follows the first."""
    world = local()
    world.load([node("n1").cpu(2).memory("4Gi")])
    world.create([job("first"), job("second")])
    spans = {span.pod.name: span for span in world.run().pods}
    first, second = spans["first-w-0"], spans["second-w-0"]
    assert (first.node, first.end, second.end) == ("n1", "Succeeded", "Succeeded")
    assert first.started is not None
    assert first.ended is not None
    assert second.bound is not None
    assert first.ended - first.started == 60
    assert first.ended <= second.bound <= first.ended + 3


def test_what_waits_says_why() -> None:
    """A run settles although a job waits, and its reason is there."""
    world = local()
    world.load([node("n1").cpu(2).memory("4Gi")])
    world.create([job("huge", cpu=64)])
    outcome = world.run()
    assert outcome.ended == "settled"
    assert [waiting.job.partition("-")[0] for waiting in outcome.waiting] == ["default/huge"]


def test_a_deadline_is_not_jumped_over() -> None:
    """A job that is kept out is let in when it has waited long enough, although nothing else happens."""
    text = "actions: 'enqueue, allocate'\ntiers:\n- plugins: [{name: sla, arguments: {sla-waiting-time: 10m}}, {name: gang}]\n"
    conf = load(text + "- plugins: [{name: overcommit}]\n", PLUGINS, ACTIONS)
    world = Local(conf, VirtualClock(START), components=["scheduler"])
    late = podgroup("late").phase("Pending").asks(cpu=64).created(START)
    world.load([node("n1").cpu(2), late, task("late-0", "late").cpu(1)])
    outcome = world.run()
    assert [span.bound and span.bound - START for span in outcome.pods] == [600]


def test_until_a_second() -> None:
    """A number ends the run then, whatever is still going on."""
    world = local()
    world.load([node("n1").cpu(2).memory("4Gi")])
    world.create([job("train", run="1h")])
    outcome = world.run(30)
    assert (outcome.ended, outcome.now - START, phases(outcome)) == ("until", 30, {"train": "Running"})


def test_progress_is_told_cycle_by_cycle() -> None:
    """`on_cycle` hears of every cycle while the run goes on."""
    heard: list[Cycle] = []
    world = local()
    world.load([node("n1").cpu(2).memory("4Gi")])
    world.create([job("train")])
    outcome = world.run(on_cycle=heard.append)
    assert [cycle.number for cycle in heard] == list(range(1, outcome.cycles + 1))


def test_queue_use_over_time() -> None:
    """What a queue holds rises with the binding and falls with the end."""
    world = local()
    world.load([node("n1").cpu(2).memory("4Gi")])
    world.create([job("train")])
    cpu = [use.use["default"].get("cpu", 0) for use in world.run().queue_use]
    assert cpu == [0, 2000, 0]


def test_without_controllers_queues_are_open() -> None:
    """A scheduler alone finds queues that somebody has opened."""
    world = local(components=["scheduler"])
    world.load([queue("q").with_("status", {}), node("n1").cpu(2), podgroup("g").queue("q"), task("g-0", "g").cpu(1)])
    outcome = world.run()
    assert [pod["spec"].get("nodeName") for pod in outcome.objects[POD]] == ["n1"]


BROKEN = {
    "unknown kind": ({"apiVersion": "v1", "kind": "Nod", "metadata": {"name": "x"}}, "Nod x"),
    "refused by admission": ({**job("bad"), "spec": {**job("bad")["spec"], "queue": "nowhere"}}, "Job default/bad"),
}


@pytest.mark.parametrize(("obj", "subject"), BROKEN.values(), ids=BROKEN)
def test_a_fault_names_its_object(obj: Json, subject: str) -> None:
    """Whatever goes wrong when objects are created, the object is told."""
    with pytest.raises(NotLoaded, match=f"^{subject}: ") as raised:
        local().create([obj])
    assert raised.value.object == obj


def test_a_restart_forgets_and_goes_on() -> None:
    """A scheduler and controllers that are started anew find everything again in the cluster."""
    world = local()
    world.load([node("n1").cpu(2).memory("4Gi")])
    world.create([job("train")])
    world.run(10)
    world.restart("scheduler")
    world.restart("controllers")
    assert phases(world.run()) == {"train": "Completed"}
