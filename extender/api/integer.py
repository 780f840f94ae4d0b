"""A whole number as text, in annotations that anybody may write. Source: Go 1.26, strconv.ParseInt with base 10."""

from __future__ import annotations

import re

_SYNTAX = re.compile(r"[+-]?[0-9]{1,40}")


def parse_int(text: str, bits: int = 64) -> int | None:
    """None where it is none, or does not fit."""
    if _SYNTAX.fullmatch(text) is None:
        return None
    number = int(text)
    return number if -(1 << bits - 1) <= number < 1 << bits - 1 else None
