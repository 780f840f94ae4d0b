"""The mirror: whatever order events come in, it holds what a mirror made from the final objects holds."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.api import meta
from extender.api.meta import Json, Key
from extender.api.operations import Bind, Evict
from extender.core import status
from extender.core.mirror import Mirror
from extender.testing.builders import node, podgroup, task

EVENTS: dict[str, Callable[[int, int], tuple[meta.Kind, Json]]] = {
    "node": lambda i, j: (meta.NODE, node(f"n{i}").cpu(4 + j).memory("8Gi")),
    "bigger node": lambda i, j: (meta.NODE, node(f"n{i}").cpu(8 + j).memory("8Gi").gpu(2)),
    "group": lambda i, j: (meta.POD_GROUP, podgroup(f"g{i % 3}").members(j)),
    "pending": lambda i, j: (meta.POD, task(f"p{i}", group=f"g{j % 3}").cpu(1)),
    "gpu": lambda i, j: (meta.POD, task(f"p{i}", group=f"g{j % 3}").cpu("500m").gpu(1)),
    "running": lambda i, j: (meta.POD, task(f"p{i}", group=f"g{j % 3}").cpu(1).on(f"n{j}")),
    "leaving": lambda i, j: (meta.POD, task(f"p{i}", group=f"g{j % 3}").cpu(1).on(f"n{j}").leaving()),
    "ended": lambda i, j: (meta.POD, task(f"p{i}", group=f"g{j % 3}").cpu(1).on(f"n{j}", "Succeeded")),
    "foreign": lambda i, j: (meta.POD, task(f"p{i}").scheduler("default-scheduler").cpu(2).on(f"n{j}")),
}
small = st.integers(0, 4)
changes = st.tuples(st.sampled_from(sorted(EVENTS)), small, small, st.booleans())


def filled(objects: list[tuple[meta.Kind, Json]]) -> Mirror:
    mirror = Mirror()
    for kind, obj in objects:
        mirror.apply(kind, "ADDED", obj)
    return mirror


def sums(mirror: Mirror) -> dict[str, Any]:
    """What it holds, by name instead of by row."""
    names = mirror.axis.names
    return {
        "nodes": {
            name: [
                {names[r]: int(v) for r, v in enumerate(table[row]) if v}
                for table in (mirror.nodes.allocatable, mirror.nodes.used, mirror.nodes.releasing)
            ]
            + [sorted(str(mirror.tasks.key[t]) for t in mirror.nodes.tasks[row]), bool(mirror.nodes.exists[row])]
            for name, row in mirror.nodes.rows.items()
        },
        "jobs": {
            str(key): [
                {names[r]: int(v) for r, v in enumerate(table[row]) if v}
                for table in (mirror.jobs.allocated, mirror.jobs.pending, mirror.jobs.total)
            ]
            + [mirror.jobs.counts[row].tolist(), int(mirror.jobs.min_available[row])]
            for key, row in mirror.jobs.rows.items()
        },
        "tasks": {str(key): int(mirror.tasks.status[row]) for key, row in mirror.tasks.rows.items()},
        "shapes": sorted(shape.users for shape in mirror.shapes.by_id if shape is not None),
    }


@settings(max_examples=150, deadline=None)
@given(st.lists(changes, max_size=40))
def test_events_in_any_order_lead_to_the_same_sums(events: list[tuple[str, int, int, bool]]) -> None:
    """Adding, changing and deleting leaves what the final objects alone would give."""
    mirror, final = Mirror(), dict[tuple[meta.Kind, Key], Json]()
    for what, i, j, deleted in events:
        kind, obj = EVENTS[what](i, j)
        key = meta.key_of(obj)
        if deleted:
            mirror.apply(kind, "DELETED", obj)
            final.pop((kind, key), None)
        else:
            mirror.apply(kind, "MODIFIED", obj)
            final[kind, key] = obj
    assert sums(mirror) == sums(filled([(kind, obj) for (kind, _), obj in final.items()]))


def test_a_pod_known_before_its_node_is_counted_when_the_node_comes() -> None:
    mirror = filled([(meta.POD, task("p", group="g").cpu(3).on("n1")), (meta.NODE, node("n1").cpu(4))])
    assert int(mirror.nodes.used[mirror.nodes.rows["n1"], 0]) == 3000


def test_a_node_that_goes_and_comes_back_still_has_its_pods() -> None:
    n1 = node("n1").cpu(4)
    mirror = filled([(meta.NODE, n1), (meta.POD, task("p", group="g").cpu(3).on("n1"))])
    mirror.apply(meta.NODE, "DELETED", n1)
    mirror.apply(meta.NODE, "ADDED", n1)
    assert int(mirror.nodes.used[mirror.nodes.rows["n1"], 0]) == 3000


def test_an_assumed_binding_outlives_an_older_event_of_the_pod() -> None:
    pending = task("p", group="g").cpu(1)
    mirror = filled([(meta.NODE, node("n1").cpu(4)), (meta.POD, pending)])
    mirror.assume([Bind(Key("default", "p"), "n1")])
    mirror.apply(meta.POD, "MODIFIED", pending.labels(seen="again"))
    assert mirror.tasks.status[mirror.tasks.rows[Key("default", "p")]] == status.BINDING


def test_a_binding_that_failed_gives_its_room_back() -> None:
    mirror = filled([(meta.NODE, node("n1").cpu(4)), (meta.POD, task("p", group="g").cpu(1))])
    before = sums(mirror)
    bind = Bind(Key("default", "p"), "n1")
    mirror.assume([bind])
    mirror.forget(bind)
    assert sums(mirror) == before


def test_an_eviction_that_failed_leaves_the_pod_running() -> None:
    mirror = filled([(meta.NODE, node("n1").cpu(4)), (meta.POD, task("p", group="g").cpu(1).on("n1"))])
    before = sums(mirror)
    evict = Evict(Key("default", "p"), "preempt")
    mirror.assume([evict])
    mirror.forget(evict)
    assert sums(mirror) == before


def test_an_object_that_cannot_be_read_is_kept_out_and_remembered() -> None:
    mirror = filled([(meta.NODE, node("n1").cpu("4x"))])
    assert "status.allocatable[cpu]" in str(mirror.unreadable[meta.NODE, Key("", "n1")])


def test_the_pods_of_others_count_on_their_node() -> None:
    foreign = task("p").scheduler("default-scheduler").cpu(2).on("n1")
    mirror = filled([(meta.NODE, node("n1").cpu(4)), (meta.POD, foreign)])
    assert np.array_equal(mirror.nodes.used[mirror.nodes.rows["n1"]], [2000, 0, 1])


# --- memory ---------------------------------------------------------------------------------------------------------------

PAGE_FAULTS = """
import resource
import numpy as np
from extender.core.mirror import Mirror
Mirror()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(100):
    [np.ones(10_000) for _ in range(20)]
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another allocator has other habits")
def test_arrays_of_a_session_are_made_where_others_were_freed() -> None:
    """Twenty arrays are 390 pages: as many page faults for each hundred times, if they were taken from the system anew."""
    assert int(subprocess.check_output([sys.executable, "-c", PAGE_FAULTS])) < 2_000
