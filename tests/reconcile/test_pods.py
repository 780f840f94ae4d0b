"""What the pods of a job look like, and which there should be."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from controller.job import plugins
from controller.job.group import min_resources, new_group
from controller.job.observe import pod_event
from controller.job.plugins import plugins_of
from controller.job.plugins.ssh import make_keys
from controller.job.pods import new_pod
from controller.job.seen import TaskTotals, pod_seen
from controller.job.sync import plan_pods
from controller.job.volumes import claim_name
from extender.api import job_plugins
from extender.api.errors import InvalidObject
from extender.api.job import Job
from extender.api.job_plugins import parse_flags
from extender.api.meta import Json
from extender.api.views import view
from tests.reconcile.builders import group, job, pods_of, seen, task

KEYS = ("private", "public")


def built(raw: Json, name: str = "w", index: int = 0) -> Json:
    looked = seen(raw)
    spec = next(each for each in looked.job.spec.tasks if each.name == name)
    return new_pod(looked, spec, index, plugins_of(looked.job, lambda: KEYS))


def env(pod: Json) -> dict[str, Any]:
    return {each["name"]: each.get("value") for each in pod["spec"]["containers"][0].get("env", ())}


def test_what_we_set_wins_over_the_template() -> None:
    """A template cannot pretend to be another pod."""
    template = {"metadata": {"annotations": {"volcano.sh/task-index": "9", "own": "1"}}, "spec": {"containers": []}}
    notes = built(job(task(template=template)))["metadata"]["annotations"]
    assert (notes["volcano.sh/task-index"], notes["own"]) == ("0", "1")


INHERITED = {
    "the first budget only": ({"volcano.sh/jdb-max-unavailable": "1", "volcano.sh/jdb-min-available": "2"},
                              "volcano.sh/jdb-max-unavailable", None),
    "the budget that is set": ({"volcano.sh/jdb-max-unavailable": "1"}, "volcano.sh/jdb-max-unavailable", "1"),
    "the zone": ({"volcano.sh/revocable-zone": "z"}, "volcano.sh/revocable-zone", "z"),
    "nothing else": ({"note": "y"}, "note", None),
}  # fmt: skip


@pytest.mark.parametrize(("of_job", "name", "want"), INHERITED.values(), ids=INHERITED)
def test_annotations_from_the_job(of_job: dict[str, str], name: str, want: str | None) -> None:
    """Some go from the job to its pods."""
    assert built(job(annotations=of_job))["metadata"]["annotations"].get(name) == want


def test_the_partition_of_a_pod() -> None:
    """Index div partitionSize."""
    raw = job(task(replicas=4, partitionPolicy={"totalPartitions": 2, "partitionSize": 2}))
    assert built(raw, index=3)["metadata"]["labels"]["volcano.sh/partition-id"] == "1"


def test_the_index_of_a_task_with_dashes() -> None:
    """Never cut out of the pod's name."""
    assert env(built(job(task("a-1", 12), plugins={"env": []}), "a-1", 11))["VC_TASK_INDEX"] == "11"


FLAGS = {
    "equals": (["--port=5"], 5),
    "one dash": (["-port=5"], 5),
    "two words": (["--port", "5"], 5),
    "a mistake ends the reading": (["--nonsense=1", "--port=5"], 1),
    "no number": (["--port=x"], 1),
    "no value": (["--port"], 1),
    "a word that is no flag ends it too": (["x", "--port=5"], 1),
    "after others": (["--master=boss", "--port=5"], 5),
    "not after a number that is none": (["--other=ssh", "--port=5"], 1),
}


@pytest.mark.parametrize(("words", "want"), FLAGS.values(), ids=FLAGS)
def test_flags(words: list[str], want: int) -> None:
    """As Go's flag package reads them."""
    assert parse_flags(words, {"port": 1, "master": "m", "other": 2})["port"] == want


def test_a_bool_flag_needs_no_value() -> None:
    """And does not take the next word for one."""
    assert parse_flags(["--on", "--port=5"], {"on": False, "port": 1}) == {"on": True, "port": 5}


def test_admission_lets_in_the_plugins_that_there_are() -> None:
    assert {plugin.name for plugin in plugins.PLUGINS} == set(job_plugins.PLUGINS)


def test_an_unknown_plugin_is_an_error() -> None:
    """With the nearest name."""
    with pytest.raises(InvalidObject, match="did you mean 'svc'"):
        plugins_of(view(Job, job(plugins={"svcs": []})))


def config(raw: Json) -> str:
    (plugin,) = plugins_of(view(Job, raw), lambda: KEYS)
    (secret,) = plugin.objects(seen(raw))
    return base64.b64decode(secret["data"]["config"]).decode()


def test_the_ssh_configuration() -> None:
    """One block for each host."""
    assert config(job(task(replicas=1), plugins={"ssh": ["--ssh-port=99999"]})) == (
        "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nHost j-w-0\n  HostName j-w-0.j\n  Port 22\n"
    )


def test_an_existing_key_pair_is_kept() -> None:
    """A job that is scaled gets the new hosts, and its pods keep their keys."""
    raw = job(task(replicas=2), plugins={"ssh": []})
    (plugin,) = plugins_of(view(Job, raw), lambda: KEYS)
    known = {each: {"data": {"config": "old", "id_rsa": "kept"}} for each in plugin.belongings(seen(raw).key)}
    (wanted,) = plugin.objects(seen(raw, resources=known))
    assert plugin.align({"data": {"config": "old"}}, wanted) == {"data": {"config": wanted["data"]["config"]}}


def test_a_real_key_pair() -> None:
    """PKCS#1 PEM, and a line of OpenSSH."""
    private, public = make_keys()
    assert (private.splitlines()[0], public.split()[0]) == ("-----BEGIN RSA PRIVATE KEY-----", "ssh-rsa")


PLUGINS = {
    "pytorch: rank of the master": (job(task("master"), task("worker", 2), plugins={"pytorch": []}), "master", 0, "RANK", "0"),
    "pytorch: rank of a worker": (job(task("master"), task("worker", 2), plugins={"pytorch": []}), "worker", 1, "RANK", "2"),
    "pytorch: all": (job(task("master"), task("worker", 2), plugins={"pytorch": []}), "worker", 1, "WORLD_SIZE", "3"),
    "pytorch: no master": (job(task("worker"), plugins={"pytorch": []}), "worker", 0, "RANK", None),
    "mpi: the workers": (job(task("master"), task("worker", 2), plugins={"mpi": []}), "master", 0, "MPI_HOST",
                         "j-worker-0.j,j-worker-1.j"),
    "tensorflow: a single pod needs none": (job(task("worker"), plugins={"tensorflow": []}), "worker", 0, "TF_CONFIG", None),
}  # fmt: skip


@pytest.mark.parametrize(("raw", "name", "index", "variable", "want"), PLUGINS.values(), ids=PLUGINS)
def test_variables_of_plugins(raw: Json, name: str, index: int, variable: str, want: str | None) -> None:
    """What the frameworks read."""
    assert env(built(raw, name, index)).get(variable) == want


def test_tensorflow_names_the_place_of_a_pod() -> None:
    """By its role, whatever its task is called."""
    raw = job(task("param"), task("calc", 2), plugins={"tensorflow": ["--ps=param", "--worker=calc"]})
    assert json.loads(env(built(raw, "calc", 1))["TF_CONFIG"])["task"] == {"type": "worker", "index": 1}


def test_workers_can_wait_for_their_master() -> None:
    """An init container that looks until it answers."""
    raw = job(task("master"), task("worker"), plugins={"pytorch": ["--wait-master-enabled"], "svc": []})
    (waiter,) = built(raw, "worker")["spec"]["initContainers"]
    assert "nc -z j-master-0.j 23456" in waiter["command"][2]
    assert [mount["name"] for mount in waiter["volumeMounts"]] == ["j-svc"]


@pytest.mark.parametrize(("version", "want"), [("2", True), ("²", False), ("2147483648", False), ("", False)])
def test_a_pod_of_a_job_says_of_which_version(version: str, want: bool) -> None:
    """Anybody may write the annotation; one that no version can have makes the pod none of a job."""
    pod = built(job(task()))
    pod["metadata"]["annotations"]["volcano.sh/job-version"] = version
    assert (pod_seen(pod) is not None) == want


RANKS = {
    "of a master": ("master", 0, None, "0"),
    "of a worker": ("worker", 1, None, "2"),
    "of others": ("other", 0, None, None),
    "from RANK": ("worker", 0, "7", "7"),
}


@pytest.mark.parametrize(("name", "index", "rank", "want"), RANKS.values(), ids=RANKS)
def test_hcclrank(name: str, index: int, rank: str | None, want: str | None) -> None:
    """The annotation that the Ascend runtime reads."""
    container: Json = {"name": "main", "image": "i", "env": [{"name": "RANK", "value": rank}] if rank else []}
    given = {"template": {"spec": {"containers": [container]}}}
    raw = job(task("master"), task("worker", 2, **given), task("other"), plugins={"hcclrank": []})
    assert built(raw, name, index)["metadata"]["annotations"].get("hccl/rankIndex") == want


def test_ray_without_a_head_makes_no_pod() -> None:
    """Said with the field that is at fault."""
    with pytest.raises(InvalidObject, match=r"spec\.plugins\.ray"):
        built(job(task("worker"), plugins={"ray": []}), "worker")


def test_a_claim_is_mounted_once() -> None:
    """Two entries of one claim make one volume."""
    volumes = [{"mountPath": "/a", "volumeClaimName": "c"}, {"mountPath": "/b", "volumeClaimName": "c"}]
    assert len(built(job(volumes=volumes))["spec"]["volumes"]) == 1


def test_a_generated_claim_is_always_the_same() -> None:
    """So making it twice makes one."""
    (volume,) = view(Job, job(volumes=[{"mountPath": "/a", "volumeClaim": {}}])).spec.volumes or ()
    first = claim_name(view(Job, job()), volume)
    assert (first == claim_name(view(Job, job()), volume), len(first)) == (True, len("j-pvc-") + 12)


DEPENDS = job(task("a", 2, minAvailable=1), task("b", 1, minAvailable=1), task("c", dependsOn={"name": ["a", "b"]}))
EITHER = {"name": ["a", "b"], "iteration": "any"}
ANY = job(task("a", 2, minAvailable=1), task("b", 1, minAvailable=1), task("c", dependsOn=EITHER))
READY = {
    "none is ready": (DEPENDS, {"a-0": "Pending", "a-1": "Pending", "b-0": "Pending"}, False),
    "one of two": (DEPENDS, {"a-0": "Running", "a-1": "Pending", "b-0": "Pending"}, False),
    "both": (DEPENDS, {"a-0": "Running", "a-1": "Pending", "b-0": "Succeeded"}, True),
    "any one": (ANY, {"a-0": "Running", "a-1": "Pending", "b-0": "Pending"}, True),
    "no pod yet": (DEPENDS, {}, False),
    "no minimum to wait for": (job(task("a"), task("c", dependsOn={"name": ["a"]})), {}, True),
}


@pytest.mark.parametrize(("raw", "phases", "want"), READY.values(), ids=READY)
def test_dependencies(raw: Json, phases: dict[str, str], want: bool) -> None:
    """Are the pods of c made?"""
    plan = plan_pods(seen(raw, phases, group=group()))
    assert any(each.name == "c" for each, _ in plan.missing) is want


PLANS = {
    "missing ones are made": ({"w-0": "Running"}, {}, ["w1"], []),
    "surplus ones go": ({"w-0": "Running", "w-1": "Running", "w-2": "Running"}, {}, [], ["j-w-2"]),
    "one that ends is not made again yet": ({"w-0": "Running", "w-1": "Running"}, {"ending": ["w-1"]}, [], []),
    "one marked for deletion is deleted again": ({"w-0": "Running", "w-1": "Running"}, {"marked": ["w-1"]}, [], ["j-w-1"]),
}


@pytest.mark.parametrize(("phases", "more", "missing", "surplus"), PLANS.values(), ids=PLANS)
def test_which_pods_there_should_be(phases: dict[str, str], more: Json, missing: list[str], surplus: list[str]) -> None:
    """0..replicas-1 of each task."""
    looked = seen(job(task(replicas=3)), phases, **more)
    plan = plan_pods(seen(job(task(replicas=2)), group=group(), pods=looked.pods))
    assert ([f"{each.name}{index}" for each, index in plan.missing], [pod.name for pod in plan.surplus]) == (missing, surplus)


WORKER = task(replicas=2)["template"]
EVENTS = {
    "a new pod": (None, "Pending", TaskTotals(), "PodPending"),
    "one that starts": ("Pending", "Running", TaskTotals(), "PodRunning"),
    "one that fails": ("Running", "Failed", TaskTotals(), "PodFailed"),
    "first seen when it had failed": (None, "Failed", TaskTotals(), "PodFailed"),
    "one of two succeeds": ("Running", "Succeeded", TaskTotals(succeeded=1), "OutOfSync"),
    "the last one succeeds": ("Running", "Succeeded", TaskTotals(succeeded=2), "TaskCompleted"),
    "containers restart too often": ("Running", "Running", TaskTotals(restarts=3), "TaskFailed"),
    "containers restart": ("Running", "Running", TaskTotals(restarts=2), "OutOfSync"),
    "a pod is taken away": ("Running", None, TaskTotals(), "PodEvicted"),
}


@pytest.mark.parametrize(("before", "after", "totals", "want"), EVENTS.values(), ids=EVENTS)
def test_what_happened_to_a_pod(before: str | None, after: str | None, totals: TaskTotals, want: str) -> None:
    """In the words of policies."""
    raw = job(task(replicas=2))
    old, new = (pods_of(raw, {"w-0": phase})["j-w-0"] if phase else None for phase in (before, after))
    assert pod_event(old, new, view(Job, raw).spec.tasks[0], totals) == want


def test_our_own_deletions_are_no_incidents() -> None:
    """A marked pod only makes the job be looked at."""
    pod = pods_of(job(), {"w-0": "Running"}, marked=["w-0"])["j-w-0"]
    assert pod_event(pod, None, None, TaskTotals()) == "OutOfSync"


def heavy(name: str, replicas: int, cpu: str, priority: str = "", **fields: Any) -> Json:
    container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return task(name, replicas, template={"spec": {"containers": [container], "priorityClassName": priority}}, **fields)


MINIMUMS = {
    "all": (job(heavy("a", 2, "1"), heavy("b", 1, "5")), "7"),
    "below the sum: the first tasks": (job(heavy("a", 2, "1"), heavy("b", 2, "5"), minAvailable=3), "7"),
    "below the sum: high priority first": (job(heavy("a", 2, "1"), heavy("b", 2, "5", "high"), minAvailable=3), "11"),
    "minimums first, then the rest": (
        job(heavy("a", 3, "1", minAvailable=1), heavy("b", 2, "5", minAvailable=1), minAvailable=3), "7"),
}  # fmt: skip


@pytest.mark.parametrize(("raw", "want"), MINIMUMS.values(), ids=MINIMUMS)
def test_minimum_resources(raw: Json, want: str) -> None:
    """What the first minAvailable pods ask for."""
    assert min_resources(view(Job, raw), {"high": 10})["cpu"] == want


def test_the_group_of_a_job_with_partitions() -> None:
    """Each partition is a subgroup."""
    topology = {"mode": "hard", "highestTierAllowed": 1}
    parts = {"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1, "networkTopology": topology}
    policy = new_group(seen(job(task(replicas=4, partitionPolicy=parts))))["spec"]["subGroupPolicy"]
    assert policy == [{
        "name": "w", "subGroupSize": 2, "minSubGroups": 1,
        "labelSelector": {"matchLabels": {"volcano.sh/task-spec": "w"}}, "matchLabelKeys": ["volcano.sh/partition-id"],
        "networkTopology": topology,
    }]  # fmt: skip
