"""What a pod asks of its node: k8s.io/component-helpers' PodRequests, in a table and against a slow timeline."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.api import quantity
from extender.api.errors import InvalidObject
from extender.api.pod import Container, Pod, PodSpec, Resources
from extender.api.pod_requests import effective_requests, sized
from extender.api.views import view

Json = dict[str, Any]


def asks(*, sidecar: bool = False, name: str = "c", **requests: str) -> Json:
    """A container that asks for these; `sidecar` makes an init container go on."""
    container: Json = {"name": name, "resources": {"requests": {key.replace("_", "."): text for key, text in requests.items()}}}
    return container | ({"restartPolicy": "Always"} if sidecar else {})


CASES: dict[str, tuple[Json, dict[str, str]]] = {
    "nothing": ({"containers": [{"name": "c"}]}, {}),
    "containers add up": ({"containers": [asks(cpu="1", memory="1Gi"), asks(cpu="500m")]}, {"cpu": "1500m", "memory": "1Gi"}),
    "an asked zero is kept": ({"containers": [asks(cpu="0")]}, {"cpu": "0"}),
    "the largest init container counts": (
        {"containers": [asks(cpu="1")], "initContainers": [asks(cpu="3"), asks(cpu="2")]},
        {"cpu": "3"},
    ),
    "a smaller init container does not": ({"containers": [asks(cpu="2")], "initContainers": [asks(cpu="1")]}, {"cpu": "2"}),
    "each resource has its own peak": (
        {"containers": [asks(cpu="1", memory="8Gi")], "initContainers": [asks(cpu="4", memory="1Gi")]},
        {"cpu": "4", "memory": "8Gi"},
    ),
    "a sidecar runs beside the containers": (
        {"containers": [asks(cpu="1")], "initContainers": [asks(sidecar=True, cpu="2")]},
        {"cpu": "3"},
    ),
    "a sidecar runs beside later init containers": (
        {"containers": [asks(cpu="1")], "initContainers": [asks(sidecar=True, cpu="2"), asks(cpu="5")]},
        {"cpu": "7"},
    ),
    "an init container before the sidecar runs alone": (
        {"containers": [asks(cpu="1")], "initContainers": [asks(cpu="5"), asks(sidecar=True, cpu="2")]},
        {"cpu": "5"},
    ),
    "restartPolicy Never is no sidecar": (
        {"containers": [asks(cpu="1")], "initContainers": [asks(cpu="2") | {"restartPolicy": "Never"}]},
        {"cpu": "2"},
    ),
    "overhead comes on top of a peak": (
        {"containers": [asks(cpu="1")], "initContainers": [asks(cpu="3")], "overhead": {"cpu": "250m", "memory": "64Mi"}},
        {"cpu": "3250m", "memory": "64Mi"},
    ),
    "pod-level requests replace what they name, before overhead": (
        {"containers": [asks(cpu="4", memory="1Gi")], "resources": {"requests": {"cpu": "2"}}, "overhead": {"cpu": "1"}},
        {"cpu": "3", "memory": "1Gi"},
    ),
    "pod-level huge pages count": (
        {"containers": [asks(cpu="1")], "resources": {"requests": {"hugepages-2Mi": "4Mi"}}},
        {"cpu": "1", "hugepages-2Mi": "4Mi"},
    ),
    "pod-level extended resources are passed over": (
        {"containers": [asks(cpu="1")], "resources": {"requests": {"nvidia.com/gpu": "4"}}},
        {"cpu": "1"},
    ),
    "limits alone are no request": ({"containers": [{"name": "c", "resources": {"limits": {"cpu": "4"}}}]}, {}),
}


@pytest.mark.parametrize(("spec", "want"), CASES.values(), ids=CASES)
def test_effective_requests(spec: Json, want: dict[str, str]) -> None:
    assert effective_requests(view(PodSpec, spec)) == {name: quantity.nanos(text) for name, text in want.items()}


amounts = st.dictionaries(st.sampled_from(["cpu", "memory", "x.io/a"]), st.integers(0, 9), max_size=3)
inits = st.lists(st.tuples(st.booleans(), amounts), max_size=5)


def timeline(containers: list[dict[str, int]], init: list[tuple[bool, dict[str, int]]]) -> dict[str, int]:
    """The largest sum of what runs at any moment, moment by moment."""
    moments = []
    for now, (_, asked) in enumerate(init):
        moments.append([asked] + [before for sidecar, before in init[:now] if sidecar])
    moments.append(containers + [asked for sidecar, asked in init if sidecar])
    names = {name for moment in moments for asked in moment for name in asked}
    return {name: max(sum(asked.get(name, 0) for asked in moment) for moment in moments) for name in names}


def container(asked: dict[str, int], restart_policy: str = "") -> Container:
    return Container(resources=Resources(requests=dict(asked)), restart_policy=restart_policy)


@settings(deadline=None, max_examples=300)
@given(containers=st.lists(amounts, max_size=4), init=inits, pod_level=amounts, overhead=amounts)
def test_requests_are_the_peak_of_the_timeline(
    containers: list[dict[str, int]], init: list[tuple[bool, dict[str, int]]], pod_level: dict[str, int], overhead: dict[str, int]
) -> None:
    spec = PodSpec(
        containers=tuple(container(asked) for asked in containers),
        init_containers=tuple(container(asked, "Always" if sidecar else "") for sidecar, asked in init),
        resources=Resources(requests=dict(pod_level)),
        overhead=dict(overhead),
    )
    want = timeline(containers, init) | {name: amount for name, amount in pod_level.items() if name in ("cpu", "memory")}
    for name, amount in overhead.items():
        want[name] = want.get(name, 0) + amount
    assert effective_requests(spec) == {name: amount * quantity.NANO for name, amount in want.items()}


FAULTS: dict[str, tuple[Json, str]] = {
    "container": ({"containers": [asks(), asks(cpu="1x")]}, "spec.containers[1].resources.requests[cpu]"),
    "init container": ({"initContainers": [asks(memory="lots")]}, "spec.initContainers[0].resources.requests[memory]"),
    "negative": ({"containers": [asks(cpu="-1")]}, "spec.containers[0].resources.requests[cpu]"),
    "overhead": ({"overhead": {"cpu": ""}}, "spec.overhead[cpu]"),
    "pod level": ({"resources": {"requests": {"cpu": "."}}}, "spec.resources.requests[cpu]"),
}


@pytest.mark.parametrize(("spec", "path"), FAULTS.values(), ids=FAULTS)
def test_what_cannot_be_read_is_named(spec: Json, path: str) -> None:
    with pytest.raises(InvalidObject) as caught:
        effective_requests(view(PodSpec, spec), subject="Pod ns/p")
    assert caught.value.path == path
    assert str(caught.value).startswith(f"Pod ns/p: {path}: ")


def resizing(spec: Json, *statuses: Json, infeasible: bool = False, init: tuple[Json, ...] = (), **status: Any) -> Json:
    condition = {"type": "PodResizePending", "status": "True", "reason": "Infeasible" if infeasible else "Deferred"}
    return {
        "spec": spec,
        "status": {"containerStatuses": list(statuses), "initContainerStatuses": list(init), "conditions": [condition]} | status,
    }


def runs(used: Json | None, granted: Json | None = None, name: str = "c") -> Json:
    state: Json = {"name": name}
    if used is not None:
        state["resources"] = {"requests": used}
    return state | ({"allocatedResources": granted} if granted is not None else {})


ONE = {"containers": [asks(cpu="1")]}
RESIZES: dict[str, tuple[Json, dict[str, str]]] = {
    "growing: what is asked": (resizing({"containers": [asks(cpu="4")]}, runs({"cpu": "1"}, {"cpu": "1"})), {"cpu": "4"}),
    "shrinking: what is still in use": (resizing(ONE, runs({"cpu": "3"}, {"cpu": "1"})), {"cpu": "3"}),
    "shrinking: what is still granted": (resizing(ONE, runs({"cpu": "1"}, {"cpu": "2"})), {"cpu": "2"}),
    "infeasible: not what is asked": (
        resizing({"containers": [asks(cpu="64")]}, runs({"cpu": "1"}, {"cpu": "2"}), infeasible=True),
        {"cpu": "2"},
    ),
    "a status without resources says nothing": (resizing(ONE, runs(None, {"cpu": "8"})), {"cpu": "1"}),
    "another container's status says nothing": (resizing(ONE, runs({"cpu": "8"}, name="other")), {"cpu": "1"}),
    "a resource only in use counts": (resizing(ONE, runs({"cpu": "1", "memory": "1Gi"})), {"cpu": "1", "memory": "1Gi"}),
    "a sidecar resizes": (
        resizing(ONE | {"initContainers": [asks(sidecar=True, name="s", cpu="1")]}, init=(runs({"cpu": "5"}, name="s"),)),
        {"cpu": "6"},
    ),
    "an ordinary init container does not": (
        resizing(ONE | {"initContainers": [asks(name="i", cpu="1")]}, init=(runs({"cpu": "5"}, name="i"),)),
        {"cpu": "1"},
    ),
    "pod-level: the largest": (
        resizing(
            ONE | {"resources": {"requests": {"cpu": "2"}}},
            resources={"requests": {"cpu": "3", "memory": "1Gi"}},
            allocatedResources={"cpu": "4"},
        ),
        {"cpu": "4"},
    ),
    "pod-level infeasible and nowhere in use": (
        resizing(ONE | {"resources": {"requests": {"cpu": "2"}}}, infeasible=True, resources={"requests": {}}),
        {"cpu": "0"},
    ),
}


@pytest.mark.parametrize(("pod", "want"), RESIZES.values(), ids=RESIZES)
def test_a_pod_being_resized_counts_at_its_largest(pod: Json, want: dict[str, str]) -> None:
    got = effective_requests(sized(view(Pod, pod)))
    assert got == {name: quantity.nanos(text) for name, text in want.items()}


@pytest.mark.parametrize("used", [{"cpu": "1"}, {"cpu": "1000m"}])
def test_without_a_resize_it_is_the_spec_itself(used: Json) -> None:
    pod = view(Pod, {"spec": ONE, "status": {"containerStatuses": [runs(used, used)]}})
    assert sized(pod) is pod.spec
