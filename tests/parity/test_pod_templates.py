"""Pod templates as Kubernetes itself judged them: kubernetes v1.36.1, ValidatePodTemplate with the options of a new object.

Recorded with tests/parity/pod-oracle on generated templates. `refused` are the fields it named, without the indices of lists; map
keys follow a dot, and names that exist only inside Kubernetes (cephFS) are written as users know them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from extender.api.decode import decode
from extender.api.meta import Json
from extender.api.pod_template.pod import template_faults
from webhook.shapes import TASK

RECORDED = [json.loads(line) for line in Path(__file__).with_name("pod_templates.jsonl").read_text().splitlines()]
SHAPE = {"template": TASK["template"]}


def fields_refused(template: Json) -> list[str]:
    read, faults = decode({"template": template}, SHAPE)
    assert faults == []
    found = [fault.path for fault in template_faults(read["template"], "template")]
    return [re.sub(r"\[([^\]]*)\]", r".\1", re.sub(r"\[\d+\]", "", path)).removeprefix("template.") for path in found]


@pytest.mark.parametrize("entry", RECORDED, ids=[f"{number:03}" for number in range(len(RECORDED))])
def test_the_verdict_is_that_of_kubernetes(entry: Json) -> None:
    """Refused for the same templates, and every field it named is named, or one above or below it."""
    ours = fields_refused(entry["template"])
    assert bool(ours) == bool(entry["refused"]), ours
    missed = [field for field in entry["refused"] if not any(o.startswith(field) or field.startswith(o) for o in ours)]
    assert missed == [], ours
