"""Names and labels are what Kubernetes takes for them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from extender.api import formats

SUBDOMAIN_253 = ".".join(["a" * 63] * 3 + ["a" * 61])
CASES = {
    "label": (formats.is_dns_label, ["a", "a-b", "0", "a" * 63], ["", "-a", "a-", "A", "a.b", "a_b", "a" * 64, "a\n"]),
    "subdomain": (
        formats.is_dns_subdomain,
        ["a", "a.b-c.0", SUBDOMAIN_253],
        ["", ".a", "a..b", "a.-b", "A.b", SUBDOMAIN_253 + "a"],
    ),
    "label key": (
        formats.is_label_key,
        ["a", "A_b.C-d", "example.com/App", "a" * 63, f"{SUBDOMAIN_253}/a"],
        ["", "/a", "a/", "a/b/c", "-a", "a.", "a b", "Example.com/a", "a" * 64, f"{SUBDOMAIN_253}a/a"],
    ),
    "label value": (formats.is_label_value, ["", "a", "A_b.C-d", "0" * 63], ["-a", "a.", "a/b", "a b", "ä", "0" * 64, "\n"]),
}


@pytest.mark.parametrize(("holds", "good", "bad"), CASES.values(), ids=CASES)
def test_formats(holds: Callable[[str], bool], good: list[str], bad: list[str]) -> None:
    assert [text for text in good if not holds(text)] == []
    assert [text for text in bad if holds(text)] == []
