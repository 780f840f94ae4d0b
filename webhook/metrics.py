"""Metrics of admission. They are summed over all worker processes where PROMETHEUS_MULTIPROC_DIR names a folder; it must be
set before this module is imported, for prometheus_client looks only once."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.multiprocess import MultiProcessCollector

from extender.cluster.metrics import COUNTER, HISTOGRAM, Metric

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
OPERATIONS = ("CREATE", "UPDATE", "DELETE")
_BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0)

REVIEWS = Metric("volcano_admission_reviews_total", COUNTER, "Reviews answered.", ("path", "operation", "allowed"))
SECONDS = Metric(
    "volcano_admission_review_duration_seconds", HISTOGRAM, "From the whole request to the answer.", ("path",), buckets=_BUCKETS
)
UNANSWERED = Metric(
    "volcano_admission_unanswered_requests_total", COUNTER, "Requests that were no review we could answer, by HTTP status.",
    ("status",),
)  # fmt: skip
WRITES = Metric(
    "volcano_admission_writes_total", COUNTER, "Objects to be made on the way: made, there, failed, or left to the controllers.",
    ("outcome",),
)  # fmt: skip
RELOAD_FAILURES = Metric(
    "volcano_admission_reload_failures_total", COUNTER, "Files that could not be read again; what was read last is in force.",
    ("what",),
)  # fmt: skip
ADMISSION = (REVIEWS, SECONDS, UNANSWERED, WRITES, RELOAD_FAILURES)


class Metrics:
    """One set for each process. No label takes a value that a client could make up."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.reviews = REVIEWS.make(self.registry)
        self.seconds = SECONDS.make(self.registry)
        self.refused = UNANSWERED.make(self.registry)
        self.writes = WRITES.make(self.registry)
        self.reload_failures = RELOAD_FAILURES.make(self.registry)
        self._of = cache(self._children)

    def reviewed(self, path: str, operation: str, *, allowed: bool, seconds: float) -> None:
        known = operation if operation in OPERATIONS else "other"
        count, duration = self._of(path, known, allowed)
        count.inc()
        duration.observe(seconds)

    def _children(self, path: str, operation: str, allowed: bool) -> tuple[Any, Any]:
        """Looking them up costs as much as counting."""
        return self.reviews.labels(path, operation, "true" if allowed else "false"), self.seconds.labels(path)

    def page(self, accept: str) -> tuple[bytes, str]:
        """The page and its content type, in the form that the client asks for."""
        registry = self.registry
        if os.environ.get(FOLDER):
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        encode, content_type = choose_encoder(accept)
        return encode(registry), content_type
