"""Writes that an API server has answered, off its own metrics: no audit log, no proxy, nothing that costs while it counts.

    apiserver_request_total{verb="POST",resource="pods",subresource="binding",code="201",...} 5000

Refused writes count as well: they cost the server the same. Leases, and reviews that store nothing, do not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

METRIC = "apiserver_request_total"
_VERBS = frozenset({"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"})
_APART = frozenset({"leases", "tokenreviews", "subjectaccessreviews", "selfsubjectaccessreviews", "localsubjectaccessreviews"})
_SAMPLE = re.compile(rf"^{METRIC}\{{(.*)\}} ([0-9.e+]+)", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Write(NamedTuple):
    """`what` is the resource, with its subresource: pods/binding."""

    verb: str
    what: str

    def __str__(self) -> str:
        return f"{self.verb} {self.what}"


BINDING = Write("POST", "pods/binding")

Counts = Mapping[Write, int]


def writes(metrics: str) -> Counts:
    """Text format -> writes of each kind since the server's start."""
    counts: Counter[Write] = Counter()
    for labels, value in _SAMPLE.findall(metrics):
        of = dict(_LABEL.findall(labels))
        if of.get("verb") in _VERBS and of.get("resource") and of["resource"] not in _APART:
            what = f"{of['resource']}/{of['subresource']}" if of.get("subresource") else of["resource"]
            counts[Write(of["verb"], what)] += round(float(value))
    return counts


def between(before: Counts, after: Counts) -> Counts:
    return {write: more for write, count in sorted(after.items()) if (more := count - before.get(write, 0)) > 0}
