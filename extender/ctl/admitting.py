"""Admission within this process, for `pumice up`: a certificate of its own, served by threads, told to the API server by URL.

The configurations are made when the server can answer and are gone before it stops: objects of ours are refused while nobody
answers."""

from __future__ import annotations

import tempfile
import threading
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from certs.issue import new_authority, new_serving
from extender.api.errors import UsageError
from extender.api.meta import Json, Time, key_of, kind_of
from extender.cluster.clock import SteadyClock
from extender.cluster.in_process import Listen, Server
from extender.cluster.options import split_address
from extender.cluster.port import Cluster
from extender.cluster.tls import TlsFiles
from extender.ctl import installing
from webhook import manifests
from webhook.app import LONGEST_BODY, Site, create_app
from webhook.errands import Errands
from webhook.manifests import configurations
from webhook.metrics import Metrics
from webhook.routes import BY_PATH
from webhook.settings import Settings
from webhook.watched import WatchedView

PREFIX = "pumice-up"  # instead of the names that an installed admission has: it and we may both be there
THREADS = 32
_LOOK = 0.1
_ENDING = 5.0  # seconds for what was taken on before the end


@dataclass(frozen=True, slots=True)
class Reached:
    """Where the API server reaches us, and the address on which we listen for it."""

    host: str
    port: int

    @property
    def url(self) -> str:
        return f"https://[{self.host}]:{self.port}" if ":" in self.host else f"https://{self.host}:{self.port}"


def reached(words: str) -> Reached:
    """`HOST:PORT` as the API server is to call it. Raises UsageError."""
    host, port = split_address(words, "webhook-url")
    if not host or not port:
        raise UsageError(f"--webhook-url: '{words}' must be HOST:PORT as the API server reaches this machine")
    return Reached(host, port)


def called_by_url(configuration: Json, url: str, bundle: bytes, prefix: str = PREFIX) -> Json:
    """The same webhooks, called by URL and under a name of its own."""
    webhooks = []
    for webhook in configuration["webhooks"]:
        path = webhook["clientConfig"]["service"]["path"]
        webhooks.append({**webhook, "clientConfig": {"url": url + path, "caBundle": b64encode(bundle).decode()}})
    name = configuration["metadata"]["name"].replace(manifests.PREFIX, prefix)
    return {**configuration, "metadata": {"name": name}, "webhooks": webhooks}


class Admission:
    """Serves from construction to `close`. Raises UsageError where the port cannot be had."""

    def __init__(self, cluster: Cluster, at: Reached, settings: Settings, owner: str, now: Time) -> None:
        self._cluster, self._owner, self._at = cluster, owner, at
        self._stop, clock = threading.Event(), SteadyClock()
        authority = new_authority(now, f"{owner}-ca")
        serving = new_serving(authority, [at.host], now)
        self._bundle = authority.certificate
        self._folder = tempfile.TemporaryDirectory(prefix="pumice-up-")
        context = TlsFiles(self._file("tls.crt", serving.certificate), self._file("tls.key", serving.key)).context()
        metrics = Metrics()
        routes = [BY_PATH[path] for path in settings.enabled]
        self._view = WatchedView(cluster, clock, dict.fromkeys(kind for route in routes for kind in route.reads))
        self._errands = Errands(cluster, clock, lambda outcome: metrics.writes.labels(outcome).inc())
        site = Site(lambda: settings, self._view, missing=lambda: self._view.missing, take=self._errands.take, metrics=metrics)
        self.configurations = [called_by_url(each, at.url, self._bundle)
                               for each in configurations(routes=routes, scheduler_names=settings.scheduler_names)]  # fmt: skip
        try:
            listen = Listen(("", at.port), lambda: context, THREADS, LONGEST_BODY)
            self._server = Server(create_app(site, settings.enabled), listen)
        except OSError as error:
            self._folder.cleanup()
            raise UsageError(f"--webhook-url: port {at.port} of this machine: {error}") from error
        self._errands.start()
        self._view.start(self._stop)

    def publish(self, going_on: Callable[[], bool]) -> list[installing.Installed]:
        """Tell the API server about us as soon as we can answer it."""
        while self._view.missing and going_on():
            self._stop.wait(_LOOK)
        return [installing.install(self._cluster, kind_of(each), each, self._owner) for each in self.configurations]

    def withdraw(self) -> None:
        for each in self.configurations:
            installing.remove(self._cluster, kind_of(each), key_of(each))

    def close(self) -> None:
        self._stop.set()
        self._server.close()
        self._errands.close(_ENDING)
        self._folder.cleanup()

    def _file(self, name: str, content: bytes) -> str:
        path = Path(self._folder.name) / name
        path.touch(mode=0o600)
        path.write_bytes(content)
        return str(path)
