"""A boolean as text, in flags, annotations, arguments of plugins and CEL. Source: Go 1.26, strconv.ParseBool."""

from __future__ import annotations

_WORDS = dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True) | dict.fromkeys(
    ("0", "f", "F", "FALSE", "false", "False"), False
)


def parse_bool(text: str) -> bool | None:
    """None where it is neither."""
    return _WORDS.get(text)
