"""YAML is read as Kubernetes reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from extender.ctl.loading import load

VALUES: dict[str, tuple[str, Any]] = {
    "a time stays text": ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
    "a date stays text": ("2026-01-01", "2026-01-01"),
    "minutes and seconds stay text": ("22:30", "22:30"),
    "a number": ("12", 12),
    "a fraction": ("0.5", 0.5),
    "a quantity": ("500m", "500m"),
    "yes is a word of YAML 1.1": ("yes", True),
    "nothing": ("", None),
    "an equals sign": ("=", "="),
}


@pytest.mark.parametrize(("written", "read"), VALUES.values(), ids=VALUES)
def test_a_value(tmp_path: Path, written: str, read: object) -> None:
    file = tmp_path / "f.yaml"
    file.write_text(f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata:\n  value: {written}\n")
    (found,) = load([str(file)]).found
    assert found.manifest["data"]["value"] == read


def test_documents_are_counted(tmp_path: Path) -> None:
    """Empty ones too, as an editor shows them; items by their place in the List; a byte order mark is no matter."""
    pod = "{apiVersion: v1, kind: Pod, metadata: {name: a}}"
    file = tmp_path / "f.yaml"
    file.write_text(
        f"---\n{pod}\n---\n---\n{{apiVersion: v1, kind: PodList, items: [{pod}, {{metadata: {{name: b}}}}]}}\n", "utf-8-sig"
    )
    found = load([str(file)]).found
    assert [each.where.removeprefix(str(file)) for each in found] == [
        ": document 1",
        ": document 3, items[0]",
        ": document 3, items[1]",
    ]
    assert found[2].subject == "Pod b"
