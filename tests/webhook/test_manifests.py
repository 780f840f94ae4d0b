"""The webhook configurations: current, and never in the way of what is not ours."""

from __future__ import annotations

import pytest

from extender.api.meta import POD, Json
from webhook.manifests import FOLDER, configuration_kind, configuration_name, configurations, files
from webhook.routes import BY_PATH, ROUTES

WEBHOOKS = [(route, webhook) for route, made in zip(ROUTES, configurations(), strict=True) for webhook in made["webhooks"]]


def test_the_files_are_current() -> None:
    """`python -m webhook.manifests` writes them."""
    assert {file.name: file.read_text() for file in FOLDER.iterdir()} == dict(files())


@pytest.mark.parametrize("webhook", [webhook for route, webhook in WEBHOOKS if route.kind == POD], ids=lambda hook: hook["name"])
def test_no_pod_waits_for_a_webhook_that_is_down(webhook: Json) -> None:
    assert webhook["failurePolicy"] == "Ignore"
    assert webhook["timeoutSeconds"] <= 3


def test_a_foreign_pod_is_never_sent() -> None:
    """Each webhook of pods looks for a label of ours or for our scheduler."""
    for route, webhook in WEBHOOKS:
        if route.kind == POD and route.mutating:
            wanted = [each for part in ("namespaceSelector", "objectSelector")
                      for each in webhook[part]["matchExpressions"]]  # fmt: skip
            assert {"key": "pumice.io/schedule", "operator": "In", "values": ["true"]} in wanted
        elif route.kind == POD:
            assert "object.spec.schedulerName in ['volcano']" in webhook["matchConditions"][0]["expression"]


def test_of_our_pods_only_those_are_judged_that_name_a_budget() -> None:
    """Nothing else of them is looked at, so that the thousands that a controller makes need no call."""
    made = configurations(routes=[BY_PATH["/pods/validate"]])
    expression = made[0]["webhooks"][0]["matchConditions"][1]["expression"]
    assert expression == (
        "has(object.metadata.annotations) && ('volcano.sh/jdb-min-available' in object.metadata.annotations"
        " || 'volcano.sh/jdb-max-unavailable' in object.metadata.annotations)"
    )


def test_the_pods_of_a_job_were_judged_with_it() -> None:
    """What the API server sees by a label costs it nothing, while for conditions it takes each pod apart."""
    webhook = configurations(routes=[BY_PATH["/pods/validate"]])[0]["webhooks"][0]
    assert webhook["objectSelector"] == {"matchExpressions": [{"key": "volcano.sh/job-name", "operator": "DoesNotExist"}]}


def test_the_schedulers_are_those_of_the_flags() -> None:
    made = configurations(scheduler_names=["volcano", "gpu"], routes=[BY_PATH["/pods/validate"]])
    expression = made[0]["webhooks"][0]["matchConditions"][0]["expression"]
    assert expression == "has(object.spec.schedulerName) && object.spec.schedulerName in ['volcano', 'gpu']"


def test_no_namespaced_object_of_the_system_is_sent() -> None:
    for route, webhook in WEBHOOKS:
        if route.kind.namespaced:
            excluded = webhook["namespaceSelector"]["matchExpressions"][0]
            assert excluded == {"key": "kubernetes.io/metadata.name", "operator": "NotIn",
                                "values": ["volcano-system", "kube-system"]}  # fmt: skip


def test_what_is_going_away_is_not_held_up() -> None:
    """Finalizers are taken off by updates, and nobody may be there to judge them."""
    for route, webhook in WEBHOOKS:
        if "UPDATE" in route.operations:
            assert webhook["matchConditions"][-1]["name"] == "not-being-deleted"


def test_names_and_kinds_are_those_of_the_chart() -> None:
    route = BY_PATH["/jobs/mutate"]
    made = configurations("ns", "svc", routes=[route])[0]
    assert made["metadata"]["name"] == configuration_name("/jobs/mutate") == "volcano-admission-service-jobs-mutate"
    assert made["kind"] == configuration_kind(route).name == "MutatingWebhookConfiguration"
    service = made["webhooks"][0]["clientConfig"]["service"]
    assert service == {"namespace": "ns", "name": "svc", "path": "/jobs/mutate", "port": 443}


def test_every_webhook_may_be_asked_on_a_dry_run() -> None:
    assert {webhook["sideEffects"] for _, webhook in WEBHOOKS} == {"None", "NoneOnDryRun"}
