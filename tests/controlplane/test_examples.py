"""Volcano's examples on a real server: accepted and run to their end, or refused with the field named; as with `pumice run`.

All are played side by side, each in a namespace of its own, while the first test waits. Pods that name no scheduler are
kube-scheduler's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import yaml

from extender.api.errors import AlreadyExists, ClusterError
from extender.api.labels import GROUP_NAME, JOB_NAME, SCHEDULE
from extender.api.meta import (
    BATCH_JOB,
    DEPLOYMENT,
    JOB,
    JOB_FLOW,
    NAMESPACE,
    POD,
    POD_GROUP,
    REPLICA_SET,
    STATEFUL_SET,
    Json,
    Key,
    annotations_of,
)
from extender.cluster.kubernetes import KubernetesCluster
from extender.ctl.nodes import DEFAULT_SPEC, from_spec
from extender.testing.builders import pod
from tests.controlplane.acts import Act, Outcome, performing, shared_names
from tests.controlplane.daemons import SYSTEM, installation
from tests.controlplane.one_namespace import OneNamespace
from tests.controlplane.plane import SCHEDULER, Plane
from tests.controlplane.waiting import wait_until
from tests.run.examples import BESIDE, CONF_MAPS, FOLDER, MISSING, NAMES, PLAYED, REFUSED, UNSERVED, WAITS, WITH

NODES = f"{DEFAULT_SPEC}; {DEFAULT_SPEC.replace('4x ', '12x name=more,')}"  # as `pumice run` has them, and more beside them
RUN = [*(name for name in PLAYED if not name.startswith("expected-")), *CONF_MAPS]  # those are output of a cluster, not input
RUNS = {JOB: ("Running", "Completed"), JOB_FLOW: ("Running", "Succeed")}

pytestmark = pytest.mark.skipif(not NAMES, reason=MISSING)


@pytest.fixture(scope="module")
def outcomes(
    request: pytest.FixtureRequest, plane: Plane, kubernetes: KubernetesCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Outcome]]:
    """What each example of this run comes to."""
    played = (test_it_runs, test_it_waits, test_it_is_refused)
    here = [item for item in request.session.items if isinstance(item, pytest.Function) and item.function in played]
    asked = {item.callspec.params["name"] for item in here}
    acts = [act_of(name) for name in NAMES if name in asked]
    nodes = [found.manifest for found in from_spec(NODES)]
    where = tmp_path_factory.mktemp("installation")
    plane.start_scheduler()
    try:
        with installation(plane, kubernetes, where, nodes), performing(kubernetes, acts) as found:
            yield found
    finally:
        plane.processes.end(SCHEDULER)


def act_of(name: str) -> Act:
    main = documents(f"{FOLDER / name}.yaml")
    before = [obj for each in WITH.get(name, ()) for obj in documents(f"{FOLDER / each}.yaml")]
    before += [obj for obj in yaml.safe_load_all(BESIDE.get(name, "")) if obj]
    play = refused if name in REFUSED else partial(waits, names=WAITS[name][2]) if name in WAITS else runs
    return Act(name, shared_names([*before, *main]), partial(play, before=before, main=main))


def documents(path: str) -> list[Json]:
    """In the namespace of the act, wherever they were meant to be."""
    with open(path) as file:
        found: list[Json] = [obj for obj in yaml.safe_load_all(file) if obj]
    for obj in found:
        if obj["metadata"].get("namespace") != SYSTEM:
            obj["metadata"].pop("namespace", None)
    return found


def apply(stage: OneNamespace, objects: list[Json]) -> None:
    """What is there already, as the root queue, stays as it is."""
    for obj in objects:
        try:
            stage.create(obj)
        except AlreadyExists:
            continue
        stage.react()


def refused(stage: OneNamespace, before: list[Json], main: list[Json]) -> list[str]:
    """The answer."""
    apply(stage, before)
    try:
        apply(stage, main)
    except ClusterError as error:
        return [str(error)]
    return []


def runs(stage: OneNamespace, before: list[Json], main: list[Json]) -> list[str]:
    """What does not run, and why."""
    apply(stage, [*before, *main])
    found = settled(stage, idle, lambda left: not left)
    return [*found, *told(stage)] if found else []


def waits(stage: OneNamespace, before: list[Json], main: list[Json], names: str) -> list[str]:
    """What the objects say about why something waits, as soon as anything names what is missing."""
    apply(stage, [*before, *main])
    found = settled(stage, told, lambda said: any(names in line for line in said))
    return found if idle(stage) else []


def settled(stage: OneNamespace, look: Callable[[OneNamespace], list[str]], enough: Callable[[list[str]], bool]) -> list[str]:
    """What the last look brought: one more might see what has begun since then."""
    seen: list[list[str]] = []

    def right() -> bool:
        seen.append(look(stage))
        return enough(seen[-1])

    stage.settle(0, right)
    return seen[-1] if seen else look(stage)


def idle(stage: OneNamespace) -> list[str]:
    """Pods without a node, jobs and flows that do not run, workloads that lack pods."""
    found = [f"Pod {name_of(each)}: {each['status']['phase']}" for each in stage.list(POD).objects
             if not each["spec"].get("nodeName") or each["status"]["phase"] == "Pending"]  # fmt: skip
    for kind, phases in RUNS.items():
        found += [f"{kind.name} {name_of(obj)}: {phase(obj)}" for obj in stage.list(kind).objects if phase(obj) not in phases]
    for kind in (DEPLOYMENT, REPLICA_SET, STATEFUL_SET):
        found += [f"{kind.name} {name_of(obj)}: too few pods" for obj in stage.list(kind).objects
                  if (obj.get("status") or {}).get("readyReplicas", 0) != obj["spec"].get("replicas", 1)]  # fmt: skip
    jobs = stage.list(BATCH_JOB).objects
    found += [f"Job {name_of(job)}: no pods" for job in jobs if not (job.get("status") or {}).get("ready")]
    members = Counter(annotations_of(each).get(JOB_NAME) for each in stage.list(POD).objects)
    for job in stage.list(JOB).objects:
        if members[name_of(job)] < sum(task["replicas"] for task in job["spec"]["tasks"]):
            found.append(f"Job {name_of(job)}: too few pods")
    return found


def told(stage: OneNamespace) -> list[str]:
    found = []
    for kind in (POD_GROUP, POD, JOB):
        for obj in stage.list(kind).objects:
            status = obj.get("status") or {}
            said = [status.get("state") or {}, *(status.get("conditions") or ())]
            found += [str(each["message"]) for each in said if isinstance(each, dict) and each.get("message")]
    return found


def name_of(obj: Json) -> str:
    return str(obj["metadata"]["name"])


def phase(obj: Json) -> Any:
    return ((obj.get("status") or {}).get("state") or {}).get("phase")


@pytest.mark.parametrize("name", RUN)
def test_it_runs(outcomes: dict[str, Outcome], name: str) -> None:
    """All its pods get nodes, all its jobs run."""
    assert outcomes[name].result() == []


@pytest.mark.parametrize("name", WAITS)
def test_it_waits(outcomes: dict[str, Outcome], name: str) -> None:
    """For a reason that names what is missing."""
    said = outcomes[name].result()
    assert any(WAITS[name][2] in line for line in said), said


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused(outcomes: dict[str, Outcome], name: str) -> None:
    """With the field, by a schema or by one of our webhooks."""
    (answer,) = outcomes[name].result() or ["accepted"]
    assert REFUSED[name] in answer


@pytest.mark.parametrize("name", UNSERVED)
def test_it_is_not_served(plane: Plane, name: str) -> None:
    """A client finds no resource for the first of its objects that nobody knows; files without a kind are no manifests."""
    with open(f"{FOLDER / name}.yaml") as file:
        objects = [obj for obj in yaml.safe_load_all(file) if obj]
    assert [obj for obj in objects if not served(plane, obj)]


def served(plane: Plane, obj: Json) -> bool:
    _, groups = plane.request("GET", "/apis")
    version = obj.get("apiVersion", "")
    if version not in {each["groupVersion"] for group in groups["groups"] for each in group["versions"]}:
        return False
    return obj["kind"] in {each["kind"] for each in plane.request("GET", f"/apis/{version}")[1]["resources"]}


def test_a_plain_pod_runs_where_its_namespace_asks(
    outcomes: dict[str, Outcome], kubernetes: KubernetesCluster, new_namespace: Callable[[], str]
) -> None:
    """With our scheduler and a group of its own, though it asks for neither."""
    del outcomes  # the installation is at work
    ns = new_namespace()
    kubernetes.patch(NAMESPACE, Key("", ns), {"metadata": {"labels": {SCHEDULE: "true"}}})
    plain = pod("plain", ns).cpu(1)
    wait_until(lambda: kubernetes.create(POD, plain, dry_run=True)["spec"]["schedulerName"] == "volcano", "the label to be seen")
    kubernetes.create(POD, plain)
    wait_until(lambda: kubernetes.get(POD, Key(ns, "plain"))["status"]["phase"] == "Running", "the pod to run")
    (group,) = kubernetes.list(POD_GROUP, ns).objects
    assert annotations_of(kubernetes.get(POD, Key(ns, "plain")))[GROUP_NAME] == group["metadata"]["name"]
    at = Key(ns, group["metadata"]["name"])
    wait_until(lambda: kubernetes.get(POD_GROUP, at)["status"]["phase"] == "Running", "the group to run")
