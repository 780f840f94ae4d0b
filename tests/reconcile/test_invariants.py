"""Whatever happens to a job, its status ends up telling the truth, and nobody has anything left to do."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress

import pytest

from controller.manager import Manager
from controller.reconciler import Settings
from extender.api.errors import ClusterError, Unavailable
from extender.api.meta import COMMAND, JOB, POD, POD_GROUP, Json, key_of
from extender.api.operations import Operation
from extender.cluster.apply import apply
from extender.cluster.clock import Clock
from extender.cluster.port import Cluster
from tests.reconcile.builders import job, key, task
from tests.reconcile.world import KEYS, World

STEPS = 25
SEEDS = range(30)
STOPPED = ("Aborted", "Completed", "Failed", "Terminated")
POLICIES: tuple[list[Json], ...] = (
    [], [{"event": "PodFailed", "action": "RestartJob"}], [{"event": "*", "action": "RestartTask"}],
    [{"event": "PodEvicted", "action": "RestartPod"}], [{"event": "PodFailed", "action": "AbortJob", "timeout": "20s"}],
    [{"event": "TaskCompleted", "action": "CompleteJob"}], [{"event": "PodFailed", "action": "RestartPartition"}],
)  # fmt: skip


class Trouble:
    """Carries operations out, but for a share of them."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.share = rng, 0.0

    def __call__(self, cluster: Cluster, operations: Sequence[Operation], /, *, clock: Clock,
                 on_failure: Callable[[Operation, ClusterError], None]) -> None:  # fmt: skip
        for operation in operations:
            if self.rng.random() < self.share:
                on_failure(operation, Unavailable("trouble"))
            else:
                apply(cluster, [operation], clock=clock, on_failure=on_failure)


class Story:
    """One job and what happens to it by chance."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        self.trouble = Trouble(rng)
        self.world = World(admission=False, graceful=rng.random() < 0.5, apply=self.trouble)
        self.commands = 0
        names = [f"t{number}" for number in range(rng.randint(1, 3))]
        tasks = [task(name, rng.randint(1, 4), maxRetry=2, template=self._template()) for name in names]
        raw = job(*tasks, policies=rng.choice(POLICIES), plugins={"svc": [], "ssh": []}, maxRetry=rng.randint(1, 4))
        raw["spec"]["minAvailable"] = rng.randint(1, raw["spec"]["minAvailable"])
        self.world.create({**raw, "metadata": {"name": "j"}})

    @staticmethod
    def _template() -> Json:
        return {"spec": {**task()["template"]["spec"], "terminationGracePeriodSeconds": 3, "restartPolicy": "Never"}}

    def happen(self) -> None:
        act: Callable[[], object] = self.rng.choice((
            self.end_pod, self.end_pod, self.delete_pod, self.command, self.scale, self.restart, self.delete_group,
            self.trouble_ahead,
        ))  # fmt: skip
        with suppress(ClusterError):
            act()
        self.world.settle_until(self.world.clock.now() + self.rng.choice((0.0, 0.5, 2.0, 10.0)))

    def pods(self) -> list[Json]:
        return list(self.world.cluster.list(POD).objects)

    def end_pod(self) -> None:
        running = [pod for pod in self.pods() if pod["status"].get("phase") == "Running"]
        if running:
            self.world.report(self.rng.choice(running), self.rng.choice(("Failed", "Succeeded")), None, 0, False)

    def delete_pod(self) -> None:
        if self.pods():
            self.world.cluster.delete(POD, key_of(self.rng.choice(self.pods())))

    def command(self) -> None:
        self.commands += 1
        action = self.rng.choice(("AbortJob", "ResumeJob", "RestartJob", "ResumeJob", "CompleteJob", "SyncJob"))
        target = {"apiVersion": JOB.api_version, "kind": "Job", "name": "j", "uid": "any"}
        known = {"apiVersion": COMMAND.api_version, "kind": COMMAND.name, "metadata": {"name": f"c{self.commands}"}}
        self.world.create({**known, "action": action, "target": target})

    def scale(self) -> None:
        spec = self.world.get(JOB, "j")["spec"]
        tasks = [{**each, "replicas": max(each["replicas"] + self.rng.choice((-1, 1)), 1)} for each in spec["tasks"]]
        self.world.cluster.patch(JOB, key("j"), {"spec": {"tasks": tasks}})

    def restart(self) -> None:
        self.world.restart_controllers()

    def delete_group(self) -> None:
        for group in self.world.cluster.list(POD_GROUP).objects:
            self.world.cluster.delete(POD_GROUP, key_of(group))

    def trouble_ahead(self) -> None:
        self.trouble.share = self.rng.choice((0.0, 0.2, 0.6))


def told(world: World) -> dict[str, int]:
    """What the status says of the pods."""
    status = world.get(JOB, "j").get("status") or {}
    names = ("pending", "running", "succeeded", "failed", "terminating")
    return {name: status[name] for name in names if status.get(name)}


def there(world: World) -> dict[str, int]:
    """What is really there."""
    return dict(Counter(
        "terminating" if pod["metadata"].get("deletionTimestamp") else pod["status"]["phase"].lower()
        for pod in world.cluster.list(POD).objects
    ))  # fmt: skip


@pytest.fixture(params=SEEDS)
def ended(request: pytest.FixtureRequest) -> World:
    """A story that has come to rest."""
    story = Story(request.param)
    for _ in range(STEPS):
        story.happen()
    story.trouble.share = 0.0
    story.world.settle_until(story.world.clock.now() + 1500)
    return story.world


def test_whatever_happens(ended: World) -> None:
    """The status tells the truth, a job that has stopped has stopped, and a second manager finds nothing to do."""
    phase = ended.get(JOB, "j")["status"]["state"]["phase"]
    assert told(ended) == there(ended)
    if phase in STOPPED:
        assert not {"pending", "running", "terminating"} & set(there(ended)), phase
        assert ended.cluster.list(POD_GROUP).objects == [], phase
    assert ended.cluster.list(COMMAND).objects == []
    before = ended.get(JOB, "j")["metadata"]["resourceVersion"]
    other = Manager(ended.cluster, ended.clock, Settings(make_keys=lambda: KEYS))
    other.start()
    other.step()
    assert ended.get(JOB, "j")["metadata"]["resourceVersion"] == before
