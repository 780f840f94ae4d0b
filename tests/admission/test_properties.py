"""What holds for every object, however broken: a verdict comes, patches fit, mutation is done after one time."""

from __future__ import annotations

import copy
import random
from typing import Any

import jsonpatch
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from extender.api.decode import ListOf, MapOf, Maybe, Scalar, Shape
from extender.api.meta import Json, Key, Kind
from extender.cluster.port import AdmissionRequest
from webhook.admission import answer
from webhook.pods.groups import ResourceGroup
from webhook.routes import BY_PATH, ROUTES, Route
from webhook.settings import Settings
from webhook.verdict import Allow, Deny, Verdict, json_patch

KEYS = st.sampled_from(["a", "b", "a/b", "~", "~1", "m~n/o", "", "0", "-"])
SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3)
DOCUMENTS = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4))
OBJECTS = st.dictionaries(KEYS, DOCUMENTS, max_size=4)


@given(before=OBJECTS, after=OBJECTS)
def test_a_patch_leads_from_before_to_after(before: Json, after: Json) -> None:
    """As an independent implementation of RFC 6902 applies it, pointers escaped and all."""
    patched = jsonpatch.apply_patch(before, json_patch(before, after))
    assert json_patch(patched, after) == []
    assert patched == after


@given(document=OBJECTS)
def test_nothing_to_patch_between_equals(document: Json) -> None:
    assert json_patch(document, copy.deepcopy(document)) == []


# --- handlers on objects of the right shape with wrong parts ------------------------------------------------------------------
WORDS = ["", "a", "default", "root", "org", "-", "Bad_", "1", "500m", "-1", "1h", "@every x", "nvidia.com/gpu", "x" * 70,
         "a/b/c", "Exists", "In",
         "mpi", "*", "PodFailed", "RestartJob", "none", "restricted", "[a", "\\", "\x00", "٣", "1e400", "1e99999999"]  # fmt: skip
JUNK: list[Any] = [None, True, 0, -1, 2**31, 2**70, 1.5, float(2**80), [], [None], [[]], {}, {"a": None}, {"": {"": 1}}, [1, "a"]]
SETTINGS = Settings(
    resource_groups=(ResourceGroup("g", "", ("a: b",), "volcano", {"a": "b"}, ({"key": "k", "operator": "Exists"},)),),
    queue_allocation_gate=True,
)


def some_value(shape: Shape, rng: random.Random, junk: float = 0.0, depth: int = 0) -> Any:
    """What the shape asks for, and with the probability `junk` something else."""
    if rng.random() < junk:
        return rng.choice([*JUNK, *WORDS])
    if isinstance(shape, Scalar | Maybe):
        scalar = shape.scalar if isinstance(shape, Maybe) else shape
        fitting = [value for value in (*WORDS, True, False, 0, 1, 3, -1, 100) if not scalar.fault(value)]
        return rng.choice(fitting or WORDS)
    if isinstance(shape, ListOf):
        return [some_value(shape.items, rng, junk, depth + 1) for _ in range(rng.choice([0, 1, 1, 2, 3]))]
    if isinstance(shape, MapOf):
        return {key: some_value(shape.values, rng, junk, depth + 1) for key in rng.sample(WORDS, rng.choice([0, 1, 2]))}
    likely = 0.9 if depth < 2 else 0.15
    return {key: some_value(inner, rng, junk, depth + 1) for key, inner in shape.items() if rng.random() < likely}


class Crowd:
    """A view full of strange queues: rings, missing parents, wrong amounts."""

    def __init__(self, rng: random.Random, shape: Shape) -> None:
        names = ["", "a", "default", "root", "org", "-"]
        self._queues = []
        for name in rng.sample(names, rng.randint(0, len(names))):
            queue = some_value(shape, rng)
            queue = queue if isinstance(queue, dict) else {}
            spec = {"parent": rng.choice(names), "capability": {"cpu": "1"}, "deserved": {"cpu": "2"}}
            self._queues.append({**queue, "metadata": {"name": name}, "spec": spec, "status": {"allocated": {"pods": "1"}}})

    def queues(self) -> list[Json]:
        return self._queues

    def queue(self, name: str) -> Json | None:
        return next((queue for queue in self._queues if queue["metadata"]["name"] == name), None)

    def children(self, parent: str) -> list[Json]:
        return [queue for queue in self._queues if queue["spec"]["parent"] == parent]

    def namespace(self, name: str) -> Json | None:
        return {"metadata": {"name": name, "annotations": {"scheduling.volcano.sh/queue-name": "org"}}}

    def owner(self, kind: Kind, key: Key, uid: str) -> Json | None:
        return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {**key._asdict(), "uid": uid}}


def send(route: Route, rng: random.Random, obj: Any, operation: str, old: Any = None) -> Verdict:
    queues = next(other.shape for other in ROUTES if other.path == "/queues/validate")
    request = AdmissionRequest(operation, route.kind, Key("default", "org"), obj, old)
    return answer(route, request, Crowd(rng, queues), SETTINGS)


def named(obj: Any) -> Any:
    """A name lets most objects get past the first check."""
    if isinstance(obj, dict) and isinstance(obj.get("metadata"), dict):
        obj["metadata"]["name"] = "org"
    return obj


EXAMPLES = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("path", [route.path for route in ROUTES])
@EXAMPLES
@given(seed=st.integers(0, 2**32))
def test_a_verdict_comes_whatever_is_sent(path: str, seed: int) -> None:
    """Never an exception; a denial names fields; a patch fits the object as it was sent."""
    route, rng = BY_PATH[path], random.Random(seed)
    obj, old = (named(some_value(route.shape, rng, rng.choice([0.0, 0.0, 0.002, 0.05]))) for _ in range(2))
    for operation in ("CREATE", "UPDATE", "DELETE", "CONNECT"):
        verdict = send(route, rng, obj if operation != "DELETE" else None, operation, None if operation == "CREATE" else old)
        if isinstance(verdict, Deny):
            assert verdict.faults
            assert verdict.message
        elif verdict.patch:
            jsonpatch.apply_patch(obj, list(verdict.patch))


@pytest.mark.parametrize("path", [route.path for route in ROUTES])
@pytest.mark.parametrize("thing", [*JUNK, "text", {"metadata": 1}, {"spec": []}, {"metadata": None, "spec": None}], ids=repr)
def test_things_that_are_no_objects_are_refused_or_read_as_empty(path: str, thing: Any) -> None:
    verdict = send(BY_PATH[path], random.Random(0), thing, "CREATE")
    assert isinstance(verdict, Allow | Deny)


@pytest.mark.parametrize("path", [route.path for route in ROUTES if route.mutating])
@EXAMPLES
@given(seed=st.integers(0, 2**32))
def test_mutation_is_done_after_one_time(path: str, seed: int) -> None:
    """What was mutated once is left alone when it comes again."""
    route, rng = BY_PATH[path], random.Random(seed)
    obj = named(some_value(route.shape, rng))
    once = send(route, random.Random(1), obj, "CREATE")
    if isinstance(once, Deny):
        return
    again = send(route, random.Random(1), jsonpatch.apply_patch(obj, list(once.patch)), "CREATE")
    assert isinstance(again, Allow)
    assert not again.patch
