"""The controllers' picture of the cluster."""

from __future__ import annotations

from controller.merge import merge_diff
from controller.store import Index, Store
from extender.api.meta import POD, POD_GROUP, Json, Key
from extender.cluster.patches import merge_patch

APP = Index("by app", POD, lambda pod: (pod["metadata"].get("labels", {}).get("app"),))
P = Key("default", "p")


def obj(version: int, uid: str = "u", **labels: str) -> Json:
    return {"metadata": {"namespace": "default", "name": "p", "uid": uid, "resourceVersion": str(version), "labels": labels}}


def test_old_news_is_no_change() -> None:
    """The watch confirms what the answer to our own write has told."""
    store = Store()
    store.put(POD, obj(9))
    assert (store.put(POD, obj(9)), store.put(POD, obj(10)) is None) == (None, False)


def test_versions_are_numbers() -> None:
    """9 is older than 10."""
    store = Store()
    store.put(POD, obj(10))
    assert store.put(POD, obj(9)) is None


def test_another_object_of_the_name_is_news() -> None:
    """Whatever its version."""
    store = Store()
    store.put(POD, obj(10))
    assert store.put(POD, obj(3, uid="other")) is not None


def test_an_index_follows() -> None:
    """From one value to another, and out."""
    store = Store([APP])
    store.put(POD, obj(1, app="a"))
    store.put(POD, obj(2, app="b"))
    moved = store.count("by app", "a"), store.count("by app", "b")
    store.drop(POD, P)
    assert (moved, store.count("by app", "b")) == ((0, 1), 0)


def test_what_we_deleted_is_gone_at_once() -> None:
    """Its last breaths are not listened to; a successor is."""
    store = Store()
    store.put(POD_GROUP, obj(1))
    store.assume_deleted(POD_GROUP, P, 0.0)
    after = store.get(POD_GROUP, P), store.put(POD_GROUP, obj(2))
    assert (after, store.put(POD_GROUP, obj(3, uid="new")) is None) == ((None, None), False)


def test_a_pod_we_deleted_is_ending() -> None:
    """Until the watch says that it has gone."""
    store = Store()
    store.put(POD, obj(1))
    store.assume_deleted(POD, P, 0.0)
    assert (store.get(POD, P) or {})["metadata"]["deletionTimestamp"] == "1970-01-01T00:00:00Z"


def test_an_answer_does_not_bring_back_what_has_gone() -> None:
    """The watch told the end before the answer to our own patch was taken in."""
    store = Store()
    store.put(POD, obj(1))
    store.drop(POD, P, "u")
    late = store.put(POD, obj(2)), store.get(POD, P)
    assert (late, store.put(POD, obj(4, uid="new")) is None) == ((None, None), False)


def test_merge_diff() -> None:
    """What it finds makes the one into the other."""
    before = {"a": 1, "b": {"c": [1], "d": 2}, "e": {"f": 1}}
    after = {"a": 2, "b": {"c": [1, 2]}, "g": {"h": {}}}
    assert merge_patch(before, merge_diff(before, after)) == after


def test_merge_diff_of_equals_is_empty() -> None:
    """Nothing is written then."""
    assert merge_diff({"a": {"b": [1]}}, {"a": {"b": [1]}}) == {}
