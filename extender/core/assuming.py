"""What an object will show once our patch of it has been written, and whether a new state of one is news at all.

Both keep the scheduler from deciding anew on nothing: heartbeats of nodes and the echo of our own writes are no news."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from extender.api.views import View

V = TypeVar("V", bound=View)


def with_status(seen: V, patch: Mapping[str, Any]) -> V:
    """The object after a merge patch `{"status": {...}}`."""
    whole: Any = seen  # a View need not have a status; these have
    after = _merged(msgspec.to_builtins(whole.status), patch.get("status") or {})
    return msgspec.structs.replace(seen, status=msgspec.convert(after, type(whole.status)))


def after_patch(seen: V, patch: Mapping[str, Any]) -> V:
    """The object after a merge patch of any of its fields."""
    return msgspec.convert(_merged(msgspec.to_builtins(seen), patch), type(seen))


def is_news(new: View, old: View | None) -> bool:
    """Does it differ from what was seen last in anything but its version?"""
    if old is None or type(new) is not type(old):
        return True
    fields = [name for name in new.__struct_fields__ if name != "metadata"]
    if any(getattr(new, name) != getattr(old, name) for name in fields):
        return True
    had: Any = getattr(old, "metadata", None)
    has: Any = getattr(new, "metadata", None)
    return bool(msgspec.structs.replace(has, resource_version=had.resource_version, generation=had.generation) != had)


def _merged(value: Any, patch: Mapping[str, Any]) -> dict[str, Any]:
    """RFC 7396."""
    merged = dict(value) if isinstance(value, Mapping) else {}
    for key, change in patch.items():
        if change is None:
            merged.pop(key, None)
        elif isinstance(change, Mapping):
            merged[key] = _merged(merged.get(key), change)
        else:
            merged[key] = change
    return merged
