"""docs/install.md says what the manifests say. `pytest --update` writes the table of rights anew."""

from __future__ import annotations

import re
from collections import defaultdict

from extender.api.meta import Json
from tests.manifests.reading import MANIFESTS, documents

PAGE = MANIFESTS.parent / "docs" / "install.md"
BEGIN, END = "<!-- rights -->\n", "<!-- end of rights -->"
PROGRAMS = {"rbac/scheduler": "vc-scheduler", "rbac/controllers": "vc-controller-manager", "rbac/admission": "vc-webhook-manager",
            "rbac/certs": "vc-certs", "kube-scheduler/extender": "vc-scheduler --extender-only"}  # fmt: skip


def rights() -> str:
    """The table, out of the rules."""
    lines = ["| program | group | resources | verbs |", "| --- | --- | --- | --- |"]
    for file, program in PROGRAMS.items():
        rows: dict[tuple[str, str], list[str]] = defaultdict(list)
        for obj in documents((MANIFESTS / f"{file}.yaml").read_text()):
            for rule in obj.get("rules", ()):
                rows[rule["apiGroups"][0], ", ".join(rule["verbs"])] += [_shown(rule, resource) for resource in rule["resources"]]
        lines += [f"| {program} | {group or 'core'} | {', '.join(found)} | {verbs} |" for (group, verbs), found in rows.items()]
    return "\n".join(lines) + "\n"


def _shown(rule: Json, resource: str) -> str:
    names = rule.get("resourceNames", ())
    return f"{resource} ({', '.join(names) if len(names) < 4 else 'ours'})" if names else resource


def test_the_table_of_rights_is_that_of_the_rules(update: bool) -> None:
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    shown, _, after = rest.partition(END)
    if update:
        PAGE.write_text(before + BEGIN + rights() + END + after)
    else:
        assert shown == rights()


def test_every_folder_that_is_named_is_there() -> None:
    named = set(re.findall(r"(?<![\w/])(manifests/[a-z/-]+(?:\.yaml)?)", PAGE.read_text()))
    assert named
    assert [name for name in named if not (MANIFESTS.parent / name).exists()] == []
