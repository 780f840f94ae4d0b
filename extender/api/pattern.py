"""Regular expressions as the API promises them: Go's, which are RE2's, by RE2 itself. They never backtrack.

Python's own differ at the edges (looking around, back references, \\z, \\pL, (?U)), and can take for ever."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import re2

from extender.api.errors import InvalidObject

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False  # the library would write to standard error
# The one escape that RE2 has and Go has not: a single byte. Quoted text and other escapes are skipped.
_ONE_BYTE = re.compile(r"(?>\\Q.*?(?:\\E|\Z)|\\[^C]|[^\\])*+\\C", re.DOTALL)


def pattern(text: str, path: str = "") -> Callable[[str], bool]:
    """Does it match anywhere in a name? Raises InvalidObject naming `path`."""
    compiled = expression(text, path)
    return lambda name: compiled.search(name) is not None


def expression(text: str, path: str = "") -> Any:
    """An RE2 expression, with `search` as Python's have it. Raises InvalidObject naming `path`."""
    try:
        compiled = re2.compile(text, _OPTIONS)
    except re2.error as error:
        wrong = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
        raise InvalidObject(f"'{text}' is not a regular expression of RE2: {wrong}", path=path) from None
    if _ONE_BYTE.match(text):
        raise InvalidObject(f"'{text}' is not a regular expression of RE2 as Go has it: invalid escape sequence: \\C", path=path)
    return compiled
