"""What an admission handler answers: Allow with a patch, or Deny with every fault. And the JSON Patch between two objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from extender.api.errors import Fault
from extender.api.meta import Json
from extender.api.operations import Operation

__all__ = ["Allow", "Deny", "Fault", "Verdict", "json_patch", "verdict"]


@dataclass(frozen=True, slots=True)
class Allow:
    """`patch` is RFC 6902; `operations` are to be done besides, except on a dry run."""

    patch: Sequence[Json] = ()
    operations: Sequence[Operation] = ()


@dataclass(frozen=True, slots=True)
class Deny:
    """Never without a fault."""

    faults: Sequence[Fault]

    @property
    def message(self) -> str:
        """All faults in one line, each with its field."""
        return "; ".join(map(str, self.faults))


Verdict = Allow | Deny


def verdict(faults: Iterable[Fault]) -> Verdict:
    """Deny with the faults, each named once, or Allow where there are none."""
    found = tuple(dict.fromkeys(faults))
    return Deny(found) if found else Allow()


def json_patch(before: Any, after: Any) -> list[Json]:
    """The RFC 6902 operations that turn `before` into `after`; empty where they are equal.

    Objects are compared key by key, lists after cutting off what they begin and end with alike, so that a change of one
    field is one operation and unknown neighbours survive."""
    return list(_steps("", before, after))


def _steps(pointer: str, before: Any, after: Any) -> Iterator[Json]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before:
            if key not in after:
                yield {"op": "remove", "path": f"{pointer}/{_escaped(key)}"}
        for key, value in after.items():
            if key not in before:
                yield {"op": "add", "path": f"{pointer}/{_escaped(key)}", "value": value}
            elif before[key] is not value:  # handlers copy only what they change
                yield from _steps(f"{pointer}/{_escaped(key)}", before[key], value)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _list_steps(pointer, before, after)
    elif type(before) is not type(after) or before != after:
        yield {"op": "replace", "path": pointer, "value": after}


def _list_steps(pointer: str, before: list[Any], after: list[Any]) -> Iterator[Json]:
    """Where nothing comes or goes, item by item; else what is between the alike ends."""
    head = tail = 0
    if len(before) != len(after):
        head = _alike(before, after)
        tail = _alike(before[: head - 1 if head else None : -1], after[: head - 1 if head else None : -1])
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    both = min(len(old), len(new))
    for index in range(both):
        if old[index] is not new[index]:
            yield from _steps(f"{pointer}/{head + index}", old[index], new[index])
    for index in reversed(range(both, len(old))):
        yield {"op": "remove", "path": f"{pointer}/{head + index}"}
    for index in range(both, len(new)):
        yield {"op": "add", "path": f"{pointer}/{head + index}", "value": new[index]}


def _alike(before: list[Any], after: list[Any]) -> int:
    """How many items from the front are equal."""
    pairs = zip(before, after, strict=False)
    return sum(1 for _ in takewhile(lambda pair: not any(_steps("", *pair)), pairs))


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
