"""Tells the API server whom to trust: our authority into the configurations of the paths that are served."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from extender.api.errors import ClusterError, ConfError, NotFound
from extender.cluster.ca_bundle import publish
from extender.cluster.clock import Clock
from extender.cluster.logs import about
from extender.cluster.port import Cluster
from webhook.manifests import configuration_kind, configuration_name
from webhook.routes import BY_PATH

FIRST_LOOK, NEXT_LOOK = 1.0, 60.0  # seconds: while a configuration is missing; when all are in line
PATIENCE = 300.0  # after which one that is missing is told about; volcano ed72c7c waits so long and then gives up

log = logging.getLogger(__name__)


def read_authority(file: str) -> bytes:
    """Raises OSError, ConfError where it holds no certificate."""
    bundle = Path(file).read_bytes()
    if b"-----BEGIN CERTIFICATE-----" not in bundle:
        raise ConfError(f"--ca-cert-file: {file} holds no certificate")
    return bundle


def publish_all(cluster: Cluster, paths: Iterable[str], bundle: bytes) -> list[str]:
    """The names of configurations that are not there. Raises ClusterError for what is worse."""
    missing = []
    for path in paths:
        name, kind = configuration_name(path), configuration_kind(BY_PATH[path])
        try:
            if publish(cluster, kind, name, bundle):
                log.info("authority published", extra=about(configuration=name))
        except NotFound:
            missing.append(name)
    return missing


def keep_published(
    cluster: Cluster, paths: Iterable[str], bundle: Callable[[], bytes], clock: Clock, stop: threading.Event
) -> None:
    """Until `stop` is set; an authority that is renewed is published anew."""
    began, told = clock.now(), False
    while not stop.is_set():
        pause = NEXT_LOOK
        try:
            missing = publish_all(cluster, paths, bundle())
            if missing:
                pause = FIRST_LOOK if clock.now() < began + PATIENCE else NEXT_LOOK
                if clock.now() >= began + PATIENCE and not told:
                    told = True
                    log.warning("no such webhook configuration", extra=about(missing=missing))
        except ClusterError as error:
            pause = FIRST_LOOK * 5
            log.warning("the authority could not be published", extra=about(error=str(error)))
        stop.wait(pause)
