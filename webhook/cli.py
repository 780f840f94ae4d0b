"""vc-webhook-manager: upstream's flags (volcano ed72c7c, cmd/webhook-manager/app/options), and the server they describe."""

from __future__ import annotations

import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NoReturn

from extender.api.errors import PumiceError, UsageError
from extender.api.labels import SCHEDULERS
from extender.cluster.flags import ARRAY, DURATION, flag, group, parse_or_exit, refuse
from extender.cluster.logs import configure
from extender.cluster.options import ClientOptions, GateOptions, LogOptions, split_address
from extender.cluster.tls import TlsFiles
from webhook.routes import enabled_paths
from webhook.settings import DEFAULT_PATHS, Settings

PROGRAM = "vc-webhook-manager"
_METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Options:
    listen_address: str = flag("", "address to serve on; every interface where empty")
    port: int = flag(8443, "port to serve on")
    tls_cert_file: str = flag("", "certificate of the server; read again when it changes")
    tls_private_key_file: str = flag("", "its key")
    ca_cert_file: str = flag("", "authority of the certificate, written into the webhook configurations; and of clients")
    enabled_admission: str = flag(",".join(DEFAULT_PATHS), "paths to serve, parted by commas")
    admission_conf: str = flag("", "file of resource groups; read again when it changes")
    webhook_namespace: str = flag("", "namespace of the service of this webhook")
    webhook_service_name: str = flag("", "name of the service of this webhook")
    webhook_url: str = flag("", "where the API server reaches this webhook if not by a service")
    scheduler_name: tuple[str, ...] = flag(SCHEDULERS, "our schedulers; jobs that name none get the first", kind=ARRAY)
    enable_healthz: bool = flag(False, "serve health and metrics without TLS too")
    healthz_address: str = flag(":11251", "where to serve them")
    graceful_shutdown_time: float = flag(30.0, "how long open requests may take at the end", kind=DURATION)
    max_queue_depth: int = flag(5, "levels of queues below root")
    enable_queue_allocated_pods_check: bool = flag(False, "do not delete queues that hold pods")
    enable_root_queue_protection: bool = flag(True, "do not change the resources of root")
    workers: int = flag(2, "processes that answer")
    client: ClientOptions = field(default=ClientOptions(), metadata=group("API server"))
    gates: GateOptions = field(default=GateOptions(), metadata=group("feature gates"))
    logs: LogOptions = field(default=LogOptions(), metadata=group("logs"))

    def check(self) -> None:
        if not (self.webhook_url or self.webhook_namespace or self.webhook_service_name):
            raise UsageError("one of --webhook-url, --webhook-namespace and --webhook-service-name is needed")
        if not 1 <= self.port <= 65535:
            raise UsageError(f"--port: {self.port} is not between 1 and 65535")
        if not (self.tls_cert_file and self.tls_private_key_file):
            raise UsageError("--tls-cert-file and --tls-private-key-file are needed: an API server calls webhooks by TLS only")
        if self.workers < 1:
            raise UsageError("--workers: at least 1 is needed")
        split_address(self.healthz_address, "healthz-address")

    def settings(self) -> Settings:
        """Raises ConfError for a path that is not served."""
        return Settings(
            enabled=enabled_paths(self.enabled_admission),
            scheduler_names=self.scheduler_name,
            max_queue_depth=self.max_queue_depth,
            allocated_pods_check=self.enable_queue_allocated_pods_check,
            root_queue_protection=self.enable_root_queue_protection,
            queue_allocation_gate=self.gates.enabled("SchedulingGatesQueueAdmission"),
        )


def main(argv: Sequence[str] | None = None) -> NoReturn:
    given = parse_or_exit(Options(), sys.argv[1:] if argv is None else argv, os.environ, PROGRAM, __doc__.partition(":")[0])
    options = given.options
    configure(options.logs.logging_format, options.logs.verbosity)
    for warning in (*given.warnings, *options.gates.warnings()):
        log.warning(warning)
    try:
        options.check()
        sys.exit(_serve(options, options.settings()))
    except (PumiceError, OSError) as error:
        refuse(error, PROGRAM)


def _serve(options: Options, settings: Settings) -> int:
    """Until a signal ends it. The folder of metrics is named before anything that counts is imported."""
    folder, master = tempfile.mkdtemp(prefix=f"{PROGRAM}-"), os.getpid()
    os.environ[_METRICS_FOLDER] = folder
    try:
        from webhook.serving import Plan, Server

        options.client.connect(PROGRAM).close()  # what is wrong with the configuration is told once, here
        health = split_address(options.healthz_address, "healthz-address") if options.enable_healthz else None
        plan = Plan(
            settings,
            TlsFiles(options.tls_cert_file, options.tls_private_key_file, options.ca_cert_file),
            partial(options.client.connect, PROGRAM),  # in each worker
            address=(options.listen_address, options.port),
            health_address=health,
            admission_conf=options.admission_conf,
            workers=options.workers,
            graceful_seconds=max(1, round(options.graceful_shutdown_time)),
        )
        Server(plan).run()
    except SystemExit as end:  # gunicorn's way to say how it went
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        if os.getpid() == master:  # workers come by here too
            os.environ.pop(_METRICS_FOLDER, None)
            shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    main()
