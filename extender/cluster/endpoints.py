"""The pages of a daemon: probes on one address, metrics and debugging on another; both on one where that is the same."""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections.abc import Mapping
from http import HTTPStatus

from prometheus_client import CollectorRegistry

from extender.api.errors import UsageError
from extender.cluster.health import Health, metrics_page
from extender.cluster.logs import about
from extender.cluster.options import ServingOptions, split_address
from extender.cluster.serving import Answer, HttpServer, Page, Request
from extender.cluster.tls import TlsFiles

log = logging.getLogger(__name__)


def serve(options: ServingOptions, health: Health, registry: CollectorRegistry, debug: Mapping[str, Page] | None = None,
          ) -> list[HttpServer]:  # fmt: skip
    """As in the reference probes that cannot be served end the process, metrics that cannot be served do not.

    `debug`: pages for people, shown beside the metrics. Raises UsageError."""
    probes = health.pages() if options.enable_healthz else {}
    others: dict[str, Page] = dict(debug or {})
    if options.enable_metrics:
        others["/metrics"] = metrics_page(registry)
    if probes and others and options.healthz_address == options.listen_address:
        probes, others = {**probes, **others}, {}
    servers = []
    if probes:
        try:
            address = split_address(options.healthz_address, "healthz-address")
            servers.append(HttpServer(address, probes, _tls(options), name="healthz"))
        except OSError as error:
            raise UsageError(f"--healthz-address {options.healthz_address}: {error}") from None
    if others:
        try:
            servers.append(HttpServer(split_address(options.listen_address, "listen-address"), others, name="metrics"))
        except OSError as error:
            log.error("metrics cannot be served", extra=about(address=options.listen_address, error=str(error)))
    return servers


def _tls(options: ServingOptions) -> TlsFiles | None:
    files = (options.tls_cert_file, options.tls_private_key_file, options.ca_cert_file)
    return TlsFiles(*files) if all(files) else None


def stacks(_: Request) -> Answer:
    """What every thread is doing."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    parts = [f"{names.get(number, number)}:\n{''.join(traceback.format_stack(frame))}"
             for number, frame in sorted(sys._current_frames().items())]  # fmt: skip
    return Answer(HTTPStatus.OK, "\n".join(parts))
