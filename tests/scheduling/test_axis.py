"""The resource axis: which names have a column, in which unit, and how amounts are written for people."""

from __future__ import annotations

import pytest

from extender.api.errors import InvalidObject
from extender.core.axis import Axis

READ = {
    "cpu in thousandths": ("cpu", "1500m", 1500),
    "memory in bytes": ("memory", "1Ki", 1024),
    "pods in pods": ("pods", "110", 110),
    "an extended resource in thousandths": ("nvidia.com/gpu", "2", 2000),
    "ephemeral storage in thousandths": ("ephemeral-storage", "1Ki", 1024_000),
    "a fraction is rounded up": ("memory", "1500m", 2),
}


@pytest.mark.parametrize(("name", "text", "amount"), READ.values(), ids=READ)
def test_reading(name: str, text: str, amount: int) -> None:
    axis = Axis()
    axis.add([name])
    assert axis.quantities({name: text})[axis.column[name]] == amount


WRITTEN = {
    "cpu": ("cpu", 1500, "1500m"),
    "memory": ("memory", 2 * 1024**3, "2Gi"),
    "pods": ("pods", 3, "3"),
    "gpus": ("nvidia.com/gpu", 8000, "8"),
    "ephemeral storage": ("ephemeral-storage", 1024**3 * 1000, "1Gi"),
    "huge pages": ("hugepages-2Mi", 4 * 1024**2 * 1000, "4Mi"),
}


@pytest.mark.parametrize(("name", "amount", "text"), WRITTEN.values(), ids=WRITTEN)
def test_writing(name: str, amount: float, text: str) -> None:
    axis = Axis()
    axis.add([name])
    assert axis.text(axis.column[name], amount) == text


@pytest.mark.parametrize("name", ["count/pods", "requests.cpu", "limits.nvidia.com/gpu", "bananas"])
def test_names_that_nobody_schedules_on_have_no_column(name: str) -> None:
    axis = Axis()
    assert not axis.add([name])


def test_a_bad_quantity_names_its_resource() -> None:
    with pytest.raises(InvalidObject, match=r"spec\.capability\[cpu\]"):
        Axis().quantities({"cpu": "2x"}, "spec.capability")
