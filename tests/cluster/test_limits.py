"""Contract: what a LimitRange makes of pods and claims that are created in its namespace."""

from __future__ import annotations

import pytest

from extender.api.errors import Denied
from extender.api.meta import LIMIT_RANGE, POD, PVC, Json
from extender.cluster.port import Cluster
from extender.testing.builders import pod


def limit(cluster: Cluster, ns: str, **item: object) -> None:
    made = {"metadata": {"name": "limits", "namespace": ns}, "spec": {"limits": [{"type": "Container", **item}]}}
    cluster.create(LIMIT_RANGE, made)


def asking(ns: str, **resources: object) -> Json:
    made = pod("p", ns)
    made["spec"]["containers"][0]["resources"] = resources
    return made


DEFAULTS: dict[str, tuple[Json, Json, Json]] = {
    "what it says": (
        {"default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}}, {}, {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}},
    ),
    "a limit is a request too": ({"default": {"cpu": "2"}}, {}, {"limits": {"cpu": "2"}, "requests": {"cpu": "2"}}),
    "a maximum is a limit too": ({"max": {"cpu": "3"}}, {}, {"limits": {"cpu": "3"}, "requests": {"cpu": "3"}}),
    "a minimum is a request too": ({"min": {"cpu": "1"}}, {}, {"requests": {"cpu": "1"}}),
    "what is written stays": (
        {"default": {"cpu": "2"}, "defaultRequest": {"cpu": "1", "memory": "1Gi"}}, {"requests": {"cpu": "500m"}},
        {"limits": {"cpu": "2"}, "requests": {"cpu": "500m", "memory": "1Gi"}},
    ),
    "a limit that is written is the request": (
        {"defaultRequest": {"cpu": "1"}}, {"limits": {"cpu": "4"}}, {"limits": {"cpu": "4"}, "requests": {"cpu": "4"}},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("item", "written", "found"), DEFAULTS.values(), ids=DEFAULTS)
def test_range_of_what_is_not_written(cluster: Cluster, ns: str, item: Json, written: Json, found: Json) -> None:
    limit(cluster, ns, **item)
    resources = cluster.create(POD, asking(ns, **written))["spec"]["containers"][0]["resources"]
    assert {name: value for name, value in resources.items() if value} == found


REFUSED: dict[str, tuple[Json, Json, str]] = {
    "too much": ({"max": {"cpu": "1"}}, {"limits": {"cpu": "2"}}, "maximum cpu usage per Container is 1, but limit is 2"),
    "too little": (
        {"min": {"memory": "1Gi"}}, {"requests": {"memory": "1Mi"}},
        "minimum memory usage per Container is 1Gi, but request is 1Mi",
    ),
    "far more than asked": (
        {"maxLimitRequestRatio": {"cpu": "2"}}, {"limits": {"cpu": "3"}, "requests": {"cpu": "1"}},
        "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
    ),
    "all of a pod": (
        {"type": "Pod", "max": {"cpu": "1"}}, {"limits": {"cpu": "2"}}, "maximum cpu usage per Pod is 1, but limit is 2",
    ),
    "a pod that says nothing": (
        {"type": "Pod", "max": {"cpu": "1"}}, {}, "maximum cpu usage per Pod is 1.  No limit is specified",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("item", "written", "says"), REFUSED.values(), ids=REFUSED)
def test_range_that_is_not_kept(cluster: Cluster, ns: str, item: Json, written: Json, says: str) -> None:
    limit(cluster, ns, **item)
    with pytest.raises(Denied) as refused:
        cluster.create(POD, asking(ns, **written))
    assert says in str(refused.value)


def test_range_of_claims(cluster: Cluster, ns: str) -> None:
    limit(cluster, ns, type="PersistentVolumeClaim", max={"storage": "1Gi"})
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}
    with pytest.raises(Denied, match="maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi"):
        cluster.create(PVC, {"metadata": {"name": "c", "namespace": ns}, "spec": spec})
