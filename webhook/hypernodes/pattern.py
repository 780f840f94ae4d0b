"""Regular expressions of Go (RE2), which the API promises, checked with Python's compiler.

The languages differ at the edges. What only Python knows (looking around, back references, possessive and conditional
groups) is refused; what only Go knows (\\z, \\pL, \\Q..\\E, [[:alpha:]], (?U)) is rewritten into something as valid before
compiling: the result serves this check only and matches nothing.
Source: https://github.com/google/re2/wiki/Syntax, Go 1.26 regexp/syntax."""

from __future__ import annotations

import re
import warnings
from typing import NamedTuple

_TOKEN = re.compile(
    r"(?P<quoted>\\Q.*?(?:\\E|$))"
    r"|(?P<unicode>\\[pP](?:\{\^?\w+\}|[A-Za-z]))"
    r"|(?P<code>\\x\{[0-9A-Fa-f]{1,6}\})"
    r"|(?P<octal>\\(?:0[0-7]{0,2}|[1-7][0-7]{1,2}))"
    r"|(?P<escape>\\.)"
    r"|(?P<posix>\[:\^?(?P<posix_name>[a-z]+):\])"
    r"|(?P<flags>\(\?[imsU]*(?:-[imsU]+)?(?P<end>[:)]))"
    r"|(?P<named>\(\?P?<[A-Za-z_]\w*>)"
    r"|(?P<foreign>\(\?)"
    r"|(?P<repeat>\{(?P<least>\d+)(?:,(?P<most>\d*))?\}\??|[*+?]\??)"
    r"|(?P<place>[\^$])"
    r"|(?P<open>\[\^?\]?)"
    r"|(?P<close>\])"
    r"|(?P<plain>.)",
    re.DOTALL | re.ASCII,
)
_MOST_REPEATS = 1000
_POSIX = frozenset(("alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper",
                    "word", "xdigit"))  # fmt: skip
_SETS, _PLACES, _CHARACTERS = frozenset("dDsSwW"), frozenset("AbBz"), frozenset("afnrtvx")
_NOTHING = "(?:)"


class _Piece(NamedTuple):
    """What Python is given for a token, or what is wrong with it."""

    text: str
    wrong: str = ""


def pattern_fault(pattern: str) -> str:
    """What is wrong with the expression; "" where Go would take it."""
    pieces: list[str] = []
    in_class, before = False, ""
    for token in _TOKEN.finditer(pattern):
        piece = _in_class(token) if in_class else _outside(token, before)
        if piece.wrong:
            return f"'{pattern}' is not a regular expression of RE2: {piece.wrong}"
        in_class = (in_class and not token["close"]) or (not in_class and bool(token["open"]))
        before = "repeat" if token["repeat"] else "" if piece.text else before
        pieces.append(piece.text)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile("".join(pieces))
    except (re.error, OverflowError, RecursionError) as error:
        return f"'{pattern}' is not a regular expression: {error}"
    return ""


def _in_class(token: re.Match[str]) -> _Piece:
    text = token[0]
    if token["posix"]:
        known = token["posix_name"] in _POSIX
        return _Piece("a-z", "" if known else f"{text} is no class of characters")
    if token["quoted"]:
        return _Piece(re.escape(text.removeprefix(r"\Q").removesuffix(r"\E")))
    if token["unicode"] or token["code"] or token["octal"]:
        return _Piece("a-z" if token["unicode"] else "a")
    if token["escape"]:
        return _Piece("a-z") if text[1] in _SETS else _escaped(text)
    return _Piece(text.replace("[", r"\["))


def _outside(token: re.Match[str], before: str) -> _Piece:
    text = token[0]
    if token["quoted"]:
        return _Piece(re.escape(text.removeprefix(r"\Q").removesuffix(r"\E")))
    if token["unicode"] or token["code"] or token["octal"]:
        return _Piece("a")
    if token["escape"]:
        return _Piece(_NOTHING) if text[1] in _PLACES else _Piece(text) if text[1] in _SETS else _escaped(text)
    if token["flags"]:
        return _Piece("(?:" if token["end"] == ":" else "")
    if token["named"]:
        return _Piece("(")
    if token["foreign"]:
        return _Piece(text, "only flags and names may follow '(?': looking around is not supported")
    if token["repeat"]:
        return _repeat(token, before)
    if token["place"]:
        return _Piece(_NOTHING)
    return _Piece(r"\{" if text == "{" else text)


def _repeat(token: re.Match[str], before: str) -> _Piece:
    text = token[0]
    if before == "repeat":
        return _Piece(text, f"{text}: invalid nested repetition")
    count = int(token["most"] or token["least"] or 0)
    return _Piece(text, f"{text} repeats more than {_MOST_REPEATS} times" if count > _MOST_REPEATS else "")


def _escaped(text: str) -> _Piece:
    known = text[1] in _CHARACTERS or (text[1].isascii() and not text[1].isalnum())
    return _Piece(text, "" if known else f"{text} is not supported")
