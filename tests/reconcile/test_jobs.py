"""Jobs in a whole cluster: what becomes of them when pods fail, are taken away, or people interfere."""

from __future__ import annotations

import pytest

from extender.api.errors import Denied, NotFound
from extender.api.meta import COMMAND, CONFIG_MAP, JOB, POD, POD_GROUP, PVC, QUEUE, SECRET, SERVICE, Json, Key
from extender.cluster.port import AdmissionRequest
from tests.reconcile.builders import job, key, task
from tests.reconcile.world import World


def start(raw: Json, *, graceful: bool = False) -> World:
    world = World(graceful=graceful)
    world.create({**raw, "metadata": {"name": "j"}})
    world.settle()
    return world


def fail(world: World, *pods: str) -> None:
    for name in pods:
        world.report(world.get(POD, name), "Failed", None, 0, False)


def command(world: World, action: str, name: str = "cmd") -> None:
    target = {"apiVersion": JOB.api_version, "kind": "Job", "name": "j", "uid": "any"}
    known = {"apiVersion": COMMAND.api_version, "kind": COMMAND.name, "metadata": {"name": name}}
    world.create({**known, "action": action, "target": target})


def phase(world: World) -> str:
    return str(world.get(JOB, "j")["status"]["state"]["phase"])


def gone(world: World, kind: object, name: str) -> bool:
    try:
        world.get(kind, name)  # type: ignore[arg-type]
    except NotFound:
        return True
    return False


def restarts(event: str = "PodFailed", action: str = "RestartJob", **more: str) -> list[Json]:
    return [{"event": event, "action": action, **more}]


def test_on_the_last_retry_the_failed_pod_stays() -> None:
    """Its log is the only account of what went wrong."""
    world = start(job(task("m"), task("w"), policies=restarts(), maxRetry=2))
    for _ in range(2):
        fail(world, "j-m-0")
        world.settle()
    assert (phase(world), world.get(POD, "j-m-0")["status"]["phase"], gone(world, POD, "j-w-0")) == ("Failed", "Failed", True)


def test_two_pods_that_fail_together_are_one_restart() -> None:
    """The second is about an incarnation that has gone."""
    world = start(job(task(replicas=3), policies=restarts()))
    fail(world, "j-w-0", "j-w-1")
    world.settle()
    assert (phase(world), world.get(JOB, "j")["status"]["retryCount"]) == ("Running", 1)


def test_restarting_a_pod_leaves_all_else() -> None:
    """The group, the other pod and the shared objects keep their identity."""
    world = start(job(task(replicas=2), policies=restarts(action="RestartPod"), plugins={"svc": [], "ssh": []}))
    things = [(POD, "j-w-0"), (SERVICE, "j"), (CONFIG_MAP, "j-svc"), (SECRET, "j-ssh")]
    before = [world.get(*thing)["metadata"]["uid"] for thing in things] + [len(world.cluster.list(POD_GROUP).objects)]
    fail(world, "j-w-1")
    world.settle()
    after = [world.get(*thing)["metadata"]["uid"] for thing in things] + [len(world.cluster.list(POD_GROUP).objects)]
    assert (phase(world), after) == ("Running", before)


def test_our_own_deletions_set_off_no_policy() -> None:
    """One pod taken away is one incident, however slowly its siblings end."""
    world = start(job(task("t0", 2), task("t1", 2), policies=restarts("PodEvicted", "RestartTask")), graceful=True)
    world.cluster.delete(POD, key("j-t0-1"), grace_seconds=5)
    world.settle_until(world.clock.now() + 90)
    made = [len(world.seen.born[f"Pod/j-t{task}-{index}"]) for task in (0, 1) for index in (0, 1)]
    assert (phase(world), made[0], made[2:], world.get(JOB, "j")["status"]["retryCount"]) == ("Running", 2, [1, 1], 1)


def test_an_abort_during_a_restart_is_honoured() -> None:
    """Not swallowed."""
    world = start(job(task(replicas=2), policies=restarts()), graceful=True)
    fail(world, "j-w-0")
    world.tick()
    command(world, "AbortJob")
    world.settle_until(world.clock.now() + 60)
    assert phase(world) == "Aborted"


def test_pods_that_stay_are_counted() -> None:
    """A finished job says how it went."""
    world = start(job(task(replicas=2), minAvailable=1))
    world.report(world.get(POD, "j-w-0"), "Succeeded", None, 0, False)
    fail(world, "j-w-1")
    world.settle()
    status = world.get(JOB, "j")["status"]
    assert (status["state"]["phase"], status["succeeded"], status["failed"]) == ("Completed", 1, 1)


def test_a_finished_job_is_written_no_more() -> None:
    """However often it is looked at."""
    world = start(job())
    world.report(world.get(POD, "j-w-0"), "Succeeded", None, 0, False)
    world.settle()
    before = world.get(JOB, "j")["metadata"]["resourceVersion"]
    world.restart_controllers()
    world.settle()
    assert world.get(JOB, "j")["metadata"]["resourceVersion"] == before


def test_a_delayed_action_outlives_a_restart_of_the_controllers() -> None:
    """Its time is counted from the event."""
    held = task(template={"metadata": {"annotations": {"test/hold": "true"}}, "spec": task()["template"]["spec"]})
    world = start(job(held, policies=restarts("PodPending", "AbortJob", timeout="60s")))
    world.settle_until(world.clock.now() + 30)
    world.restart_controllers()
    world.settle_until(world.clock.now() + 35)
    assert phase(world) == "Aborted"


def test_a_delayed_action_is_dropped_when_its_reason_goes() -> None:
    """The pod has started."""
    world = start(job(policies=restarts("PodPending", "AbortJob", timeout="20s")))
    world.settle_until(world.clock.now() + 60)
    assert phase(world) == "Running"


def test_a_failure_while_the_controllers_are_away_is_not_missed() -> None:
    """They see it when they come back."""
    world = start(job(policies=restarts(action="AbortJob")))
    world.manager.close()
    fail(world, "j-w-0")
    world.restart_controllers()
    world.settle()
    assert phase(world) == "Aborted"


def test_a_group_that_becomes_unknown_is_an_incident_after_a_restart_too() -> None:
    """Its event belongs to the incarnation it is seen in."""
    world = start(job(task(replicas=2), policies=[*restarts(), *restarts("Unknown", "AbortJob")]))
    fail(world, "j-w-0")
    world.settle()
    name = world.cluster.list(POD_GROUP).objects[0]["metadata"]["name"]
    world.cluster.patch(POD_GROUP, key(name), {"status": {"phase": "Unknown"}})
    world.settle()
    assert (phase(world), world.get(JOB, "j")["status"]["retryCount"]) == ("Aborted", 1)


def test_a_missing_claim_is_waited_for() -> None:
    """For longer than any budget, and then the job goes on at once."""
    world = start(job(volumes=[{"mountPath": "/in", "volumeClaimName": "late"}]))
    world.settle_until(world.clock.now() + 3000)
    before = phase(world)
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    world.create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "late"}, "spec": claim})
    world.tick()
    assert (before, len(world.cluster.list(POD_GROUP).objects)) == ("Pending", 1)


def test_a_generated_claim_is_made_once() -> None:
    """And its name written into the job."""
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    world = start(job(volumes=[{"mountPath": "/scratch", "volumeClaim": claim}]))
    (made,) = world.cluster.list(PVC).objects
    assert world.get(JOB, "j")["spec"]["volumes"][0]["volumeClaimName"] == made["metadata"]["name"]


def test_a_job_whose_group_is_refused_ends_when_the_budget_is_spent() -> None:
    """About 164 s of trying."""
    world = start(job(task(replicas=2), policies=restarts()))
    world.cluster.patch(QUEUE, Key("", "default"), {"status": {"state": "Closed"}}, subresource="status")
    fail(world, "j-w-0")
    world.settle_until(world.clock.now() + 150)
    before = phase(world)
    world.settle_until(world.clock.now() + 60)
    assert (before, phase(world)) == ("Pending", "Terminated")


def test_a_job_made_anew_under_the_same_name_gets_its_own_things() -> None:
    """What is left of the former one is not taken for them."""
    world = start(job(plugins={"svc": []}))
    first = world.get(SERVICE, "j")["metadata"]["uid"]
    world.cluster.delete(JOB, key("j"))
    world.create({**job(plugins={"svc": []}), "metadata": {"name": "j"}})
    world.settle()
    assert (phase(world), world.get(SERVICE, "j")["metadata"]["uid"] != first) == ("Running", True)


def test_a_task_waits_for_readiness_and_others_do_not_wait_with_it() -> None:
    """Started is not ready."""
    world = World(not_ready=("j-master-0",))
    tasks = task("master", minAvailable=1), task("worker", 2, minAvailable=0, dependsOn={"name": ["master"]})
    world.create({**job(*tasks, minAvailable=1), "metadata": {"name": "j"}})
    world.settle()
    before = gone(world, POD, "j-worker-0")
    world.report(world.get(POD, "j-master-0"), "Running", None, 0, True)
    world.settle()
    assert (before, world.get(POD, "j-worker-1")["status"]["phase"]) == (True, "Running")


def test_a_deleted_group_is_made_again() -> None:
    """Whoever deleted it."""
    world = start(job())
    name = world.cluster.list(POD_GROUP).objects[0]["metadata"]["name"]
    world.cluster.delete(POD_GROUP, key(name))
    world.settle()
    assert [each["metadata"]["name"] for each in world.cluster.list(POD_GROUP).objects] == [name]


def test_what_a_new_pod_needs_is_made_again_with_it() -> None:
    """Somebody has taken away the job's list of hosts, and a pod."""
    world = start(job(plugins={"svc": []}))
    world.cluster.delete(CONFIG_MAP, key("j-svc"))
    world.cluster.delete(POD, key("j-w-0"), grace_seconds=0)
    world.settle()
    assert (phase(world), gone(world, CONFIG_MAP, "j-svc")) == ("Running", False)


def test_time_to_live() -> None:
    """Counted from the end, and not started anew by late events."""
    world = start(job(ttlSecondsAfterFinished=30))
    world.report(world.get(POD, "j-w-0"), "Succeeded", None, 0, False)
    world.settle_until(world.clock.now() + 20)
    there = not gone(world, JOB, "j")
    world.cluster.delete(POD, key("j-w-0"), grace_seconds=0)
    world.settle_until(world.clock.now() + 11)
    assert (there, gone(world, JOB, "j")) == (True, True)


@pytest.mark.parametrize("action", ["AbortJob", "TerminateJob", "CompleteJob"])
def test_a_command_is_used_up(action: str) -> None:
    """Taken first, then done."""
    world = start(job())
    command(world, action)
    world.settle()
    ended = {"AbortJob": "Aborted", "TerminateJob": "Terminated", "CompleteJob": "Completed"}[action]
    assert (phase(world), gone(world, COMMAND, "cmd")) == (ended, True)


def test_a_stopped_job_says_with_which_minimum_it_ran() -> None:
    """A new one counts from when it is resumed."""
    world = start(job(task(replicas=2)))
    command(world, "AbortJob", "abort")
    world.settle()
    world.cluster.patch(JOB, key("j"), {"spec": {"minAvailable": 1}})
    world.settle()
    stopped = world.get(JOB, "j")["status"]["minAvailable"]
    command(world, "ResumeJob", "resume")
    world.settle()
    assert (stopped, world.get(JOB, "j")["status"]["minAvailable"]) == (2, 1)


def test_a_job_without_tasks_waits_for_some() -> None:
    """Where admission does not refuse it."""
    raw = job()
    del raw["spec"]["tasks"]
    world = World(admission=False)
    world.create({**raw, "metadata": {"name": "j"}})
    world.settle()
    assert (phase(world), world.cluster.list(POD_GROUP).objects[0]["spec"]["minMember"]) == ("Pending", 1)


def test_a_delayed_action_that_fails_is_tried_again() -> None:
    """Its time does not come twice."""
    world = start(job(task(replicas=2), policies=restarts(action="AbortJob", timeout="10s")))
    fail(world, "j-w-0")
    world.settle_until(world.clock.now() + 5)
    world.cluster.admission = refusing = Refusing()
    world.settle_until(world.clock.now() + 20)
    before = len(world.cluster.list(POD_GROUP).objects)
    refusing.refuses = False
    world.settle_until(world.clock.now() + 60)
    assert (before, phase(world), world.cluster.list(POD_GROUP).objects) == (1, "Aborted", [])


class Refusing:
    """An admission that refuses deletions of groups."""

    refuses = True

    def mutate(self, request: AdmissionRequest) -> Json | None:
        return request.object

    def validate(self, request: AdmissionRequest) -> None:
        if self.refuses and request.operation == "DELETE" and request.kind == POD_GROUP:
            raise Denied("not now")


def test_a_service_of_somebody_else_is_left_alone() -> None:
    """And does not keep the job from waiting for its claim in peace."""
    world = World()
    raw = job(plugins={"svc": []}, volumes=[{"mountPath": "/in", "volumeClaimName": "late"}])
    world.create({**raw, "metadata": {"name": "j"}})
    metadata = {"name": "j", "namespace": "default"}
    world.cluster.create(SERVICE, {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"clusterIP": "None"}})
    world.settle()
    assert (world.manager.step(), world.get(SERVICE, "j")["metadata"].get("ownerReferences")) == (0, None)


# --- state.message ----------------------------------------------------------------------------------------------------


def said(world: World) -> tuple[str, str, str]:
    state = world.get(JOB, "j")["status"]["state"]
    return state["phase"], state.get("reason", ""), state.get("message", "")


def large(cpu: int, replicas: int = 1) -> Json:
    asked = task(replicas=replicas)
    asked["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
    return asked


def test_a_job_says_why_it_waits() -> None:
    """What the condition of its group says, and no longer than that."""
    world = World()
    world.create({**job(large(60, replicas=5)), "metadata": {"name": "first"}})
    world.settle()
    world.create({**job(large(60)), "metadata": {"name": "j"}})
    world.settle()
    now, reason, message = said(world)
    assert (now, reason) == ("Pending", "PodGroupPending")
    assert "cpu 300 used + 60 asked" in message
    world.cluster.delete(JOB, key("first"))
    world.settle()
    assert said(world) == ("Running", "", "")


def test_an_aborted_job_waits_for_nothing() -> None:
    world = start(job(large(65)))
    before = said(world)[1]
    command(world, "AbortJob")
    world.settle()
    assert (before, said(world)) == ("PodGroupPending", ("Aborted", "", ""))


def test_a_job_says_what_it_lacks() -> None:
    """As long as it lacks it: the claim first, then a volume for it."""
    world = start(job(volumes=[{"mountPath": "/in", "volumeClaimName": "late"}]))
    before = said(world)
    world.create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "late"},
                  "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}})  # fmt: skip
    world.settle()
    what = "claims that the job mounts do not exist: late; create them, and the job goes on"
    assert (before, said(world)[1]) == (("Pending", "PVCError", what), "PodGroupPending")


def test_a_job_that_was_given_up_says_why() -> None:
    """Its pods were refused until the retries were used up."""
    world = World()
    world.create({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}})
    world.create({**job(), "metadata": {"name": "j"}})
    world.settle_until(world.clock.now() + 300)
    now, reason, message = said(world)
    assert (now, reason) == ("Terminated", "FailedCreate")
    assert "exceeded quota: q" in message
