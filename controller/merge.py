"""The merge patch (RFC 7386) that makes one JSON object out of another. Lists are replaced whole, as the RFC wants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from extender.api.meta import Json


def merge_diff(before: Mapping[str, Any], after: Mapping[str, Any]) -> Json:
    """`merge_patch(before, merge_diff(before, after)) == after`; empty where nothing differs."""
    patch: Json = {name: None for name in before if name not in after}
    for name, value in after.items():
        had = before.get(name)
        if isinstance(value, Mapping) and isinstance(had, Mapping):
            inner = merge_diff(had, value)
            if inner:
                patch[name] = inner
        elif name not in before or had != value:
            patch[name] = value
    return patch
