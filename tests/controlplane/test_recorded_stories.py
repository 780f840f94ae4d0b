"""The recorded stories about controllers on a real server: webhooks, controllers and scheduler as processes, kwok's kubelets.

All are played side by side, each in a namespace of its own, while the first test waits."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from extender.api.meta import Json
from extender.cluster.kubernetes import KubernetesCluster
from extender.testing import cases
from tests.controlplane.acts import Act, Outcome, performing, shared_names
from tests.controlplane.daemons import installation
from tests.controlplane.fixtures import AT_FIRST
from tests.controlplane.one_namespace import OneNamespace
from tests.controlplane.plane import Plane
from tests.reconcile.comparing import kind_named
from tests.reconcile.stories import play_on
from tests.reconcile.test_recorded_stories import ELSEWHERE
from tests.reconcile.world import CONF, nodes

LONGEST = 70.0  # seconds that the steps of a story may wait for
_PACE = "how many pods report before the job, completed by the first of them, ends the others is a matter of pace"
_PERIOD = "a busy machine may take longer for a step than the 36 seconds until the next run; it is played on a virtual clock"
DIFFERENT = {"ctl-cron-010": _PERIOD, "ctl-job-011": _PACE, "ctl-job-014": _PACE, "ctl-job-016": _PACE}


@pytest.fixture(scope="module")
def outcomes(
    request: pytest.FixtureRequest, plane: Plane, kubernetes: KubernetesCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Outcome]]:
    """What each story of this run comes to."""
    here = [item for item in request.session.items if isinstance(item, pytest.Function) and item.function is test_recorded_story]
    asked: list[Path] = [item.callspec.params["case"] for item in here]  # type: ignore[misc]
    stories = [cases.load(case) for case in asked if reason(case) is None]
    acts = [
        Act(story["id"], shared_names(touched(story)), partial(faults, story=story), seconds(story), in_real_time=True)
        for story in stories
    ]
    where = tmp_path_factory.mktemp("installation")
    with installation(plane, kubernetes, where, nodes(), CONF), performing(kubernetes, acts) as found:
        yield found


def faults(stage: OneNamespace, story: Json) -> list[str]:
    return [fault for fault in play_on(stage, story) if not made_once_more(fault)]


def touched(story: Json) -> list[Json]:
    """Every object that it makes, changes or deletes; of the latter, kind and name."""
    steps = story["steps"]
    named = [each for step in steps for each in (step.get("patch"), step.get("delete")) if each is not None]
    others = [{"apiVersion": kind_named(each["kind"], each).api_version, "kind": each["kind"], "metadata": {"name": each["name"]}}
              for each in named]  # fmt: skip
    return [*story["objects"], *(step["create"] for step in steps if "create" in step), *others]


def seconds(story: Json) -> float:
    """That its steps let pass, quite apart from what happens in them."""
    steps = story["steps"]
    return float(sum(step.get("wait", 0) + step.get("advance", 0) + 60 * ("untilSecond" in step) for step in steps))


def reason(case: Path) -> str | None:
    """Why it is not played here."""
    waits = seconds(cases.load(case))
    long = f"takes more than {waits:.0f} seconds of real time; it is played on a virtual clock" if waits > LONGEST else None
    return ELSEWHERE.get(case.stem) or DIFFERENT.get(case.stem) or long


@pytest.mark.cases("controllers")
def test_recorded_story(case: Path, outcomes: dict[str, Outcome], record_property: Callable[[str, object], None]) -> None:
    why = reason(case)
    if why is not None:
        pytest.skip(why)
    outcome = outcomes[case.stem]
    found = outcome.result()
    if outcome.at_first:
        record_property(AT_FIRST, list(outcome.at_first))
    assert found == []


def made_once_more(fault: str) -> bool:
    """In real time an event may be handled before or after another, so that a pod is made once more than was recorded."""
    found = re.search(r"\bpods\.\S+: wanted (\S+?)(?:/(\d+))?, is \1/(\d+)$", fault)
    return found is not None and int(found[3]) == int(found[2] or 1) + 1


def test_what_may_differ() -> None:
    differ = [
        "afterSteps[0].pods.a-0: wanted Running/2, is Running/3", "afterSteps[0].pods.a-0: wanted Running, is Running/2",
        "afterSteps[0].pods.a-0: wanted Running/2, is Running/4", "afterSteps[0].pods.a-0: wanted Running/2, is Failed/3",
    ]  # fmt: skip
    assert [made_once_more(fault) for fault in differ] == [True, True, False, False]
