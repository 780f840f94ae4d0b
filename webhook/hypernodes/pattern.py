"""Regular expressions of RE2, which the API promises, checked with Python's compiler.

The languages differ at the edges. What only Python knows (looking around, back references, possessive and conditional
groups) is refused; what only RE2 knows (\\z, \\pL, \\Q..\\E, [[:alpha:]], (?U)) is rewritten before compiling.
Source: https://github.com/google/re2/wiki/Syntax, Go's regexp/syntax."""

from __future__ import annotations

import re
import warnings

_TOKEN = re.compile(
    r"(?P<quoted>\\Q.*?(?:\\E|$))"
    r"|(?P<unicode>\\[pP](?:\{\^?\w+\}|[A-Za-z]))"
    r"|(?P<code>\\x\{[0-9A-Fa-f]{1,6}\})"
    r"|(?P<escape>\\.)"
    r"|(?P<posix>\[:\^?[a-z]+:\])"
    r"|(?P<flags>\(\?(?P<letters>[imsU]*(?:-[imsU]+)?)(?P<end>[:)]))"
    r"|(?P<named>\(\?P?<(?P<group>[A-Za-z_]\w*)>)"
    r"|(?P<foreign>\(\?)"
    r"|(?P<repeat>\{(?P<least>\d+)(?:,(?P<most>\d*))?\})"
    r"|(?P<possessive>[*+?]\+)"
    r"|(?P<plain>.)",
    re.DOTALL,
)
_MOST_REPEATS = 1000
_ESCAPES = {r"\z": r"\Z", r"\C": "."}
_ESCAPABLE = frozenset("AbBdDsSwWafnrtv0xzC")


def pattern_fault(pattern: str) -> str:
    """What is wrong with the expression; "" where RE2 would take it."""
    pieces: list[str] = []
    in_class = False
    for token in _TOKEN.finditer(pattern):
        kind, text = token.lastgroup, token[0]
        if token["plain"]:
            in_class = text == "[" or (in_class and text != "]")
        wrong, piece = _rewritten(token, in_class)
        if wrong:
            return f"'{pattern}' is not a regular expression of RE2: {wrong}"
        pieces.append(piece if kind else text)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            re.compile("".join(pieces))
    except (re.error, OverflowError, RecursionError) as error:
        return f"'{pattern}' is not a regular expression: {error}"
    return ""


def _rewritten(token: re.Match[str], in_class: bool) -> tuple[str, str]:
    """What RE2 refuses in this token, or how Python writes it."""
    text = token[0]
    if token["quoted"]:
        return "", re.escape(text.removeprefix(r"\Q").removesuffix(r"\E"))
    if token["unicode"]:
        return "", "a-z" if in_class else "[a-z]"
    if token["code"]:
        return "", "a"
    if token["escape"]:
        known = not text[1].isalnum() or text[1] in _ESCAPABLE
        return ("" if known else f"{text} is not supported"), _ESCAPES.get(text, text)
    if token["posix"]:
        return "", "a-z" if in_class else text
    if in_class:
        return "", text
    if token["flags"]:
        letters = token["letters"]
        wrong = "" if letters or token["end"] == ":" else "(?) has no flags"
        return wrong, "(?:" if token["end"] == ":" else "(?:)"
    if token["named"]:
        return "", f"(?P<{token['group']}>"
    if token["foreign"]:
        return "only groups, flags and names may follow (?: looking around is not supported", text
    if token["repeat"]:
        count = int(token["most"] or token["least"])
        return (f"{text} repeats more than {_MOST_REPEATS} times" if count > _MOST_REPEATS else ""), text
    return (f"{text}: invalid nested repetition" if token["possessive"] else ""), text
