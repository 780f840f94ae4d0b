"""What an API server may send, and what it gets back (k8s.io/api admission/v1)."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from flask.testing import FlaskClient

from extender.api.meta import POD_GROUP, QUEUE, Json
from tests.webhook.reviews import UID, job, queue, review
from webhook.app import LONGEST_BODY, Site, create_app
from webhook.watched import WatchedView

Ask = Callable[..., Json]


def patch_of(response: Json) -> list[Json]:
    steps: list[Json] = json.loads(base64.b64decode(response["patch"]))
    return steps


def test_a_mutation_is_a_json_patch_in_base64(ask: Ask) -> None:
    response = ask("/jobs/mutate", review(job()))
    assert (response["uid"], response["allowed"], response["patchType"]) == (UID, True, "JSONPatch")
    assert {"op": "add", "path": "/spec/queue", "value": "default"} in patch_of(response)


def test_what_needs_no_change_gets_no_patch(ask: Ask) -> None:
    whole = queue("q", weight=2, reclaimable=False)
    assert ask("/queues/mutate", review(whole, QUEUE)) == {"uid": UID, "allowed": True}


def test_a_refusal_carries_its_message_only(ask: Ask) -> None:
    response = ask("/jobs/validate", review(job(tasks=[])))
    assert (response["uid"], response["allowed"], list(response["status"])) == (UID, False, ["message"])
    assert "spec.tasks" in response["status"]["message"]


REFUSED = {
    "another resource": (review(job(), POD_GROUP), "/jobs/mutate judges jobs of batch.volcano.sh/v1alpha1, not podgroups"),
    "an operation that is not sent": (review(job(), operation="CONNECT"), "operation: CONNECT is not handled"),
    "an object of wrong types": (review(job(minAvailable="two")), "spec.minAvailable: must be an integer"),
    "an object that is none": (review([]), "must be an object, not a list"),
    "no object": (review(None), "must be an object, not null"),
}


@pytest.mark.parametrize(("body", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_judged_is_refused(ask: Ask, body: Json, message: str) -> None:
    response = ask("/jobs/mutate", body)
    assert (response["uid"], response["allowed"]) == (UID, False)
    assert message in response["status"]["message"]


def without(body: Json, name: str) -> Json:
    return {**body, "request": {key: value for key, value in body["request"].items() if key != name}}


JSON = "application/json"
UNREADABLE: dict[str, tuple[bytes, str, int, str]] = {
    "nothing": (b"", JSON, 411, "411 length required"),
    "a blank": (b" ", JSON, 400, "not an AdmissionReview of admission.k8s.io/v1"),
    "no JSON": (b"{]", JSON, 400, "JSON is malformed"),
    "no UTF-8": (b'{"kind": "\xff"}', JSON, 400, "not an AdmissionReview"),
    "half a review": (json.dumps(review(job())).encode()[:200], JSON, 400, "truncated"),
    "nested without end": (b'{"request": {"object": ' + b"[" * 100_000, JSON, 400, "nested too deeply"),
    "a list": (b"[]", JSON, 400, "Expected `object`, got `array`"),
    "no request": (b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}', JSON, 400, "`request`"),
    "wrong casing": (json.dumps(review(job())).replace('"request"', '"Request"').encode(), JSON, 400, "field `request`"),
    "an older version": (json.dumps({**review(job()), "apiVersion": "admission.k8s.io/v1beta1"}).encode(), JSON, 400, "v1beta1"),
    "another kind": (json.dumps({**review(job()), "kind": "TokenReview"}).encode(), JSON, 400, "'TokenReview'"),
    "no uid": (json.dumps(without(review(job()), "uid")).encode(), JSON, 400, "`uid`"),
    "an empty uid": (json.dumps(review(job(), uid="")).encode(), JSON, 400, "request.uid is empty"),
    "a uid that is a number": (json.dumps(review(job(), uid=7)).encode(), JSON, 400, "got `int` - at `$.request.uid`"),
    "no operation": (json.dumps(without(review(job()), "operation")).encode(), JSON, 400, "`operation`"),
    "text": (json.dumps(review(job())).encode(), "text/plain", 415, "415"),
    "YAML": (json.dumps(review(job())).encode(), "application/yaml", 415, "415"),
    "too much": (b" " * (LONGEST_BODY + 1), JSON, 413, "413"),
}  # fmt: skip


@pytest.mark.parametrize(("body", "content_type", "status", "message"), UNREADABLE.values(), ids=UNREADABLE)
def test_what_is_no_review_gets_a_status_and_a_line(
    client: FlaskClient, body: bytes, content_type: str, status: int, message: str
) -> None:
    got = client.post("/jobs/mutate", data=body, content_type=content_type)
    assert (got.status_code, got.mimetype) == (status, "text/plain")
    assert message in got.text
    assert "Traceback" not in got.text


def test_a_body_of_unknown_length_is_not_read(client: FlaskClient) -> None:
    got = client.post("/jobs/mutate", content_type=JSON, headers={"Transfer-Encoding": "chunked"})
    assert got.status_code == 411


ELSEWHERE = {
    "a path that is not served": ("POST", "/jobs/other", 404),
    "the root": ("GET", "/", 404),
    "a GET": ("GET", "/jobs/mutate", 405),
    "an OPTIONS": ("OPTIONS", "/jobs/mutate", 405),
    "a strange method": ("BREW", "/jobs/mutate", 405),
}


@pytest.mark.parametrize(("method", "path", "status"), ELSEWHERE.values(), ids=ELSEWHERE)
def test_other_ways_and_methods(client: FlaskClient, method: str, path: str, status: int) -> None:
    got = client.open(path, method=method)
    assert (got.status_code, got.mimetype) == (status, "text/plain")


def test_integers_of_any_size_come_back_as_they_were(ask: Ask) -> None:
    """A patch may hold values of the object; JSON numbers have no largest one."""
    enormous = queue("q", deserved={"cpu": 10**30}, capability={"cpu": 10**30})
    assert ask("/queues/mutate", review(enormous, QUEUE))["allowed"]


def test_a_fault_of_ours_is_told_in_the_log_only(
    site: Site, client: FlaskClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(site, "settings", broken)
    got = client.post("/jobs/mutate", json=review(job()))
    assert (got.status_code, got.text) == (500, "internal error\n")
    assert "a request failed" in caplog.text


def test_only_enabled_paths_are_served(site: Site, view: WatchedView) -> None:
    view.step(QUEUE)
    few = create_app(site, ["/queues/mutate"]).test_client()
    assert few.post("/jobs/mutate", json=review(job())).status_code == 404


def test_not_ready_until_the_lists_are_there(site: Site, view: WatchedView) -> None:
    """A queue that has not been heard of must not look like one that does not exist."""
    early = create_app(site, ["/jobs/validate"]).test_client()
    view.step(QUEUE)
    assert early.get("/readyz").status_code == 500
    assert "[-]cluster failed: not read yet: namespaces" in early.get("/readyz").text
    assert early.post("/jobs/validate", json=review(job())).status_code == 503
    assert early.get("/livez").text == "ok"


def test_ready_when_they_are(client: FlaskClient) -> None:
    assert [client.get(path).text for path in ("/readyz", "/livez", "/healthz", "/readyz/cluster")] == ["ok"] * 4
    assert client.get("/readyz/nothing").status_code == 404


def test_metrics_count_reviews_by_what_is_known(client: FlaskClient) -> None:
    client.post("/jobs/mutate", json=review(job()))
    client.post("/jobs/mutate", json=review(job(), operation="made-up"))
    client.post("/jobs/mutate", data=b"")
    page = client.get("/metrics").text
    assert 'volcano_admission_reviews_total{allowed="true",operation="CREATE",path="/jobs/mutate"} 1.0' in page
    assert 'volcano_admission_reviews_total{allowed="false",operation="other",path="/jobs/mutate"} 1.0' in page
    assert 'volcano_admission_unanswered_requests_total{status="415"} 1.0' in page
    assert "made-up" not in page
    assert client.get("/metrics", headers={"Accept": "application/openmetrics-text"}).text.endswith("# EOF\n")
