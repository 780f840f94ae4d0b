"""Regular expressions of the API are Go's."""

from __future__ import annotations

import pytest

from extender.api.errors import InvalidObject
from extender.api.pattern import pattern

GOOD = ["", "leaf.*", r"^node-\d+\z", r"\pL+\p{Greek}", r"\Qa.b[\E", r"\Q\C\E", r"\\C", "[[:alpha:]_-]", "(?i)x", "(?U:a+)",
        "(?P<n>a)", "(?<n>a)", "a{2,1000}", "{,3}", r"[\d-z]", r"\x{10FFFF}", r"\A*", "[]a]", r"\07"]  # fmt: skip
BAD = ["node[", "(", ")", "a**", "a++", "*", "(?=a)", "(?!a)", "(?<=a)", "(?>a)", r"(a)\1", "(?P=n)", "a{1001}",
       "a{3,2}", "[z-a]", r"\Z", r"\e", "[[:foo:]]", "(?#x)", "\\", r"a\C", r"\Qa\E\C"]  # fmt: skip


@pytest.mark.parametrize("text", GOOD)
def test_what_go_takes(text: str) -> None:
    pattern(text)


@pytest.mark.parametrize("text", BAD)
def test_what_go_refuses(text: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The field is named, and the library writes nothing of its own."""
    with pytest.raises(InvalidObject, match=r"^spec\.pattern: '.*' is not a regular expression of RE2"):
        pattern(text, "spec.pattern")
    assert capfd.readouterr().err == ""


MATCHES = {
    "anywhere in the name": ("de-1", "node-17", True),
    "as far as it says": (r"^node-\d\z", "node-17", False),
    "letters of any script": (r"^\p{Greek}+$", "αβγ", True),
    "the end is the end": ("a$", "a\n", False),
    "without backtracking": ("^(a|aa)+$", "a" * 2000 + "b", False),
}


@pytest.mark.parametrize(("text", "name", "matches"), MATCHES.values(), ids=MATCHES)
def test_matching(text: str, name: str, matches: bool) -> None:
    """Where Python's would differ, or never end."""
    assert pattern(text)(name) is matches
