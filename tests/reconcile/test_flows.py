"""Job flows, cron jobs, HyperNodes and colocation in a whole cluster."""

from __future__ import annotations

from typing import Any

import pytest

from controller.colocation import annotations_for
from controller.jobflow import patched
from extender.api.errors import NotFound
from extender.api.meta import (
    COMMAND,
    CRON_JOB,
    EVENT,
    HYPER_NODE,
    JOB,
    JOB_FLOW,
    JOB_TEMPLATE,
    NODE,
    POD,
    Json,
    Key,
)
from tests.reconcile.builders import job, key, task
from tests.reconcile.world import World


def flow(world: World, *entries: Json, policy: str = "retain", templates: str = "ab", **spec: Any) -> None:
    for name in templates:
        template = {"apiVersion": JOB_TEMPLATE.api_version, "kind": JOB_TEMPLATE.name, "metadata": {"name": name}}
        world.create({**template, "spec": {**job(task())["spec"], **spec}})
    known = {"apiVersion": JOB_FLOW.api_version, "kind": JOB_FLOW.name, "metadata": {"name": "f"}}
    world.create({**known, "spec": {"jobRetainPolicy": policy, "flows": list(entries)}})
    world.settle()


def end(world: World, pod: str, phase: str = "Succeeded") -> None:
    world.report(world.get(POD, pod), phase, None, 0, False)
    world.settle()


def jobs(world: World) -> list[str]:
    return [each["metadata"]["name"] for each in world.cluster.list(JOB).objects]


def flow_phase(world: World) -> str:
    return str(world.get(JOB_FLOW, "f")["status"]["state"]["phase"])


B_AFTER_A = ({"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}})


def test_a_failed_job_fails_its_flow() -> None:
    """What depends on it is not made."""
    world = World()
    flow(world, *B_AFTER_A, maxRetry=1)
    end(world, "f-a-w-0", "Failed")
    assert (flow_phase(world), jobs(world)) == ("Failed", ["f-a"])


def test_a_job_that_vanishes_is_made_again() -> None:
    """At once."""
    world = World()
    flow(world, *B_AFTER_A)
    world.cluster.delete(JOB, key("f-a"))
    world.settle()
    assert jobs(world) == ["f-a"]


def test_a_job_that_had_completed_is_not_made_again() -> None:
    """Its time to live is over, and the flow goes on."""
    world = World()
    flow(world, *B_AFTER_A, ttlSecondsAfterFinished=1)
    end(world, "f-a-w-0")
    world.settle()
    before = jobs(world)
    end(world, "f-b-w-0")
    world.settle()
    assert (before, flow_phase(world), jobs(world)) == (["f-b"], "Succeed", [])


def test_jobs_go_with_a_flow_that_deletes_them() -> None:
    """Once it has succeeded."""
    world = World()
    flow(world, {"name": "a"}, policy="delete", templates="a")
    end(world, "f-a-w-0")
    assert (flow_phase(world), jobs(world)) == ("Succeed", [])


def test_a_template_that_comes_late() -> None:
    """The flow waits for it."""
    world = World()
    flow(world, {"name": "a"}, templates="")
    template = {"apiVersion": JOB_TEMPLATE.api_version, "kind": JOB_TEMPLATE.name, "metadata": {"name": "a"}}
    world.create({**template, "spec": job(task())["spec"]})
    world.settle()
    assert jobs(world) == ["f-a"]


PATCHES = {
    "a field": ({"ttlSecondsAfterFinished": 9}, "ttlSecondsAfterFinished", 9),
    "the CRD's defaults are not the author's": ({"queue": "default", "maxRetry": 3}, "queue", "team"),
    "another queue": ({"queue": "other"}, "queue", "other"),
    "no more than there are pods": ({"minAvailable": 5}, "minAvailable", 1),
    "as many as there are pods": ({"minAvailable": 2, "tasks": [{"name": "w", "replicas": 2}]}, "minAvailable", 2),
}


@pytest.mark.parametrize(("patch", "field", "want"), PATCHES.values(), ids=PATCHES)
def test_patches(patch: Json, field: str, want: object) -> None:
    """Over the template."""
    spec = {"queue": "team", "maxRetry": 5, "minAvailable": 1, "tasks": [{"name": "w", "replicas": 1, "template": {}}]}
    assert patched(spec, patch)[field] == want


def test_a_patched_task_keeps_the_rest_of_it() -> None:
    """Tasks are matched by name."""
    spec = {"tasks": [{"name": "w", "replicas": 1, "template": {"spec": {}}}]}
    (found,) = patched(spec, {"tasks": [{"name": "w", "replicas": 2}]})["tasks"]
    assert found == {"name": "w", "replicas": 2, "template": {"spec": {}}}


def cron(world: World, schedule: str = "* * * * *", **spec: Any) -> None:
    known = {"apiVersion": CRON_JOB.api_version, "kind": CRON_JOB.name, "metadata": {"name": "c"}}
    world.create({**known, "spec": {"schedule": schedule, "jobTemplate": {"spec": job(task())["spec"]}, **spec}})


def test_an_aborted_job_does_not_hold_up_the_schedule() -> None:
    """It may be resumed, or never."""
    world = World()
    cron(world, concurrencyPolicy="Forbid")
    world.settle_until(world.clock.now() + 62)
    target = {"apiVersion": JOB.api_version, "kind": "Job", "name": jobs(world)[0], "uid": "any"}
    known = {"apiVersion": COMMAND.api_version, "kind": COMMAND.name, "metadata": {"name": "stop"}}
    world.create({**known, "action": "AbortJob", "target": target})
    world.settle_until(world.clock.now() + 62)
    assert len(jobs(world)) == 2


def test_a_controller_that_was_away_makes_the_last_start_only() -> None:
    """Not all that it has missed."""
    world = World()
    cron(world)
    world.manager.step()
    world.manager.close()
    world.clock.sleep(600)
    world.restart_controllers()
    world.settle()
    assert len(jobs(world)) == 1


def test_a_deadline_for_late_starts() -> None:
    """What is older is not made up for."""
    world = World()
    cron(world, "0 * * * *", startingDeadlineSeconds=10)
    world.manager.step()
    world.manager.close()
    world.clock.sleep(3700)
    world.restart_controllers()
    world.manager.step()
    assert jobs(world) == []


def test_a_lost_status_write_heals() -> None:
    """An unfinished job of the cron job is active, whatever the status said."""
    world = World()
    cron(world)
    world.settle_until(world.clock.now() + 62)
    world.cluster.patch(CRON_JOB, key("c"), {"status": {"active": None}}, subresource="status")
    world.restart_controllers()
    world.manager.step()
    assert [each["name"] for each in world.get(CRON_JOB, "c")["status"]["active"]] == jobs(world)


def reasons(world: World) -> set[str]:
    about = (event for event in world.cluster.list(EVENT).objects if event["involvedObject"]["kind"] == CRON_JOB.name)
    return {event["reason"] for event in about}


def test_an_active_job_that_is_taken_away_is_told() -> None:
    """It is none of those that the cron job ended itself."""
    world = World()
    cron(world, concurrencyPolicy="Replace")
    world.settle_until(world.clock.now() + 125)
    before = reasons(world)
    world.cluster.delete(JOB, key(jobs(world)[0]))
    world.settle()
    assert ("ReplaceConcurrent" in before, "StaleReference" in before, "StaleReference" in reasons(world)) == (True, False, True)
    assert not world.get(CRON_JOB, "c")["status"].get("active")


def node(name: str, **labels: str) -> Json:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": {}}


def test_the_count_of_a_hypernode_follows_the_nodes() -> None:
    """One made, one labelled away, one deleted."""
    world = World()
    members = [{"type": "Node", "selector": {"labelMatch": {"matchLabels": {"rack": "r0"}}}}]
    world.create({"apiVersion": HYPER_NODE.api_version, "kind": HYPER_NODE.name, "metadata": {"name": "h"},
                  "spec": {"tier": 1, "members": members}})  # fmt: skip
    for name in ("a", "b", "c"):
        world.create(node(name, rack="r0"))
    counts = [_count(world)]
    world.cluster.patch(NODE, Key("", "b"), {"metadata": {"labels": {"rack": "r1"}}})
    counts.append(_count(world))
    world.cluster.delete(NODE, Key("", "a"))
    assert [*counts, _count(world)] == [3, 2, 1]


def _count(world: World) -> int:
    world.manager.step()
    return int(world.get(HYPER_NODE, "h")["status"]["nodeCount"])


def configuration(name: str, created: str, selector: Json | None, ratio: int = 50) -> Json:
    spec = {"memoryQos": {"highRatio": ratio, "lowRatio": 0}, **({"selector": selector} if selector is not None else {})}
    return {"metadata": {"name": name, "namespace": "default", "creationTimestamp": created}, "spec": spec}


OLD = configuration("old", "2025-01-01T00:00:00Z", {"matchLabels": {"app": "x"}}, 80)
NEW = configuration("new", "2025-01-02T00:00:00Z", {"matchLabels": {"app": "x"}})
NAME, CONFIG = "volcano.sh/colocation-config-name", "volcano.sh/colocation-config"
COLOCATION = {
    "the newest that matches": ({}, [OLD, NEW], {NAME: "new", CONFIG: '{"memoryQos":{"highRatio":50}}'}),
    "no selector matches nothing": ({}, [configuration("c", "", None)], {}),
    "an empty one matches everything": ({}, [configuration("c", "", {})], {NAME: "c", CONFIG: '{"memoryQos":{"highRatio":50}}'}),
    "taken back": ({NAME: "old", CONFIG: "{...}"}, [], {NAME: None, CONFIG: "{}"}),
    "taken back once": ({CONFIG: "{}"}, [], {}),
    "nothing to do": ({}, [], {}),
}


@pytest.mark.parametrize(("notes", "configurations", "want"), COLOCATION.values(), ids=COLOCATION)
def test_colocation(notes: dict[str, str], configurations: list[Json], want: dict[str, str | None]) -> None:
    """What is to be written to a pod."""
    pod = {"metadata": {"name": "p", "namespace": "default", "labels": {"app": "x"}, "annotations": notes}}
    assert annotations_for(pod, configurations) == want


def test_nothing_is_left_of_a_flow() -> None:
    """Its jobs go with it."""
    world = World()
    flow(world, {"name": "a"}, templates="a")
    world.cluster.delete(JOB_FLOW, key("f"))
    world.settle()
    with pytest.raises(NotFound):
        world.get(JOB, "f-a")
