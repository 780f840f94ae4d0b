"""Amounts that the API takes and nobody means: memory of a few bytes, where `Gi` was forgotten or `m` was meant for mega, and
nodes without any memory.

kubectl warns of the second, since a thousandth of a byte is nothing; what is below a mebibyte no container can start with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from extender.api import quantity
from extender.api.errors import InvalidObject
from extender.api.meta import NODE, QUEUE, kind_of
from extender.ctl.arranging import pods_of
from extender.ctl.found import Found

_LEAST = 2**20 * quantity.NANO
_ON_EVERY_NODE = ("cpu", "memory")
_NOTHING = (None, 0, "0")
_OF_QUEUES = (("spec", "capability"), ("spec", "deserved"), ("spec", "guarantee", "resource"))
_OF_NODES = (("status", "allocatable"), ("status", "capacity"))
_OF_CONTAINERS = (("resources", "requests"), ("resources", "limits"))


def too_little(found: Found) -> Iterator[str]:
    """A line for each amount of bytes that is above nothing and below a mebibyte."""
    for path, listed in _amounts(found):
        for name, written in listed.items():
            if not quantity.in_bytes(str(name)) or not isinstance(written, str | int | float) or isinstance(written, bool):
                continue
            try:
                amount = quantity.nanos(written)
            except InvalidObject:  # admission says so
                continue
            if 0 < amount < _LEAST:
                what = quantity.for_people("", amount)
                yield f"{found.where}: {found.subject}: {path}.{name}: '{written}' is {what} bytes; was {_meant(written)} meant?"


def left_out(found: Sequence[Found]) -> Iterator[str]:
    """A line for cpu and memory each, where nodes have none of it and something asks for it."""
    nodes = [each for each in found if kind_of(each.manifest) == NODE]
    for name in _ON_EVERY_NODE:
        bare = dict.fromkeys(node.source for node in nodes if not any(name in listed for _, listed in _amounts(node)))
        if bare and any(listed.get(name) not in _NOTHING for each in found for _, listed in _asked(each)):
            yield from (f"{source}: nodes without {name}: nothing that asks for {name} fits on them" for source in bare)


def _meant(written: str | int | float) -> str:
    """Mebi for a small m, which makes thousandths; gibi where there is no unit at all."""
    text = str(written)
    return f"{text[:-1]}Mi" if text.endswith("m") else f"{text}Gi" if text.isdigit() else "Mi or Gi"


def _amounts(found: Found) -> Iterator[tuple[str, dict[Any, Any]]]:
    """(field path, resource list) of containers, of queues, of nodes."""
    kind = kind_of(found.manifest)
    yield from _listed(found.manifest, "", {QUEUE: _OF_QUEUES, NODE: _OF_NODES}.get(kind, ()))
    yield from _asked(found)


def _asked(found: Found) -> Iterator[tuple[str, dict[Any, Any]]]:
    """(field path, resource list) of containers."""
    for prefix, pod in pods_of(found.manifest):
        spec = pod.get("spec")
        for field in ("initContainers", "containers"):
            containers = spec.get(field) if isinstance(spec, dict) else None
            for i, container in enumerate(containers if isinstance(containers, list) else ()):
                yield from _listed(container, f"{prefix}spec.{field}[{i}].", _OF_CONTAINERS)


def _listed(value: Any, prefix: str, paths: tuple[tuple[str, ...], ...]) -> Iterator[tuple[str, dict[Any, Any]]]:
    for path in paths:
        inner = value
        for part in path:
            inner = inner.get(part) if isinstance(inner, dict) else None
        if isinstance(inner, dict):
            yield f"{prefix}{'.'.join(path)}", inner
