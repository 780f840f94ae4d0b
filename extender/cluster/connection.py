"""The way to an API server: who we are, where it is, kept-alive connections. It knows nothing of kinds and retries.

Kubeconfig, in-cluster configuration, exec plugins and tokens are the `kubernetes` client's business; what goes over the wire is
bytes. Credentials are read anew now and then, and at once where the server does not take them any more."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import urllib3
import yaml
from kubernetes import config as kubernetes_config
from kubernetes.client import ApiClient, Configuration

from extender.api.errors import ConfError, Unavailable
from extender.api.meta import Time
from extender.cluster.clock import Clock
from extender.cluster.tls import HttpsPool

USER_AGENT = "pumice"
CONNECT_SECONDS = 5.0
READ_SECONDS = 35.0  # a little more than the server gives itself for a request that is no watch, when it is not overloaded
_POOLED = 64  # connections kept open
_FRESH = 15.0  # seconds for which a credential is used without asking whether there is a newer one
_UNAUTHORIZED = 401


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes


class NotSent(Unavailable):
    """No connection came about: nothing can have happened on the server."""


class Lost(Unavailable):
    """The connection broke: nobody knows what happened on the server."""


class Connection:
    """Thread-safe. `load` reads the configuration; it is called again when the server refuses our credentials.

    `read_seconds`: how long an answer may take."""

    def __init__(self, load: Callable[[], Configuration], clock: Clock, user_agent: str = USER_AGENT,
                 read_seconds: float = READ_SECONDS) -> None:  # fmt: skip
        self._load, self._clock, self._user_agent, self._read_seconds = load, clock, user_agent, read_seconds
        self._lock = threading.Lock()
        self._header: Mapping[str, str] = {}
        self._fresh_until: Time = 0.0
        self._open()

    def exchange(self, method: str, path: str, body: bytes | None = None, content_type: str = "application/json") -> Answer:
        """One request and its whole answer. Raises NotSent or Lost."""
        response = self._send(method, path, body, content_type, self._read_seconds, stream=False)
        return Answer(response.status, response.headers, response.data)

    def stream(self, path: str, read_seconds: float) -> urllib3.BaseHTTPResponse:
        """A GET whose answer comes bit by bit; the caller closes it. Raises NotSent or Lost."""
        return self._send("GET", path, None, "application/json", read_seconds, stream=True)

    def close(self) -> None:
        self._client.rest_client.pool_manager.clear()

    @property
    def host(self) -> str:
        return str(self._configuration.host)

    def _send(self, method: str, path: str, body: bytes | None, content_type: str, read_seconds: float, *,
              stream: bool) -> urllib3.BaseHTTPResponse:  # fmt: skip
        used = self._configuration
        response = self._try(method, path, body, content_type, read_seconds, stream)
        if response.status != _UNAUTHORIZED:
            return response
        response.close()
        self._renew(used)
        return self._try(method, path, body, content_type, read_seconds, stream)

    def _try(self, method: str, path: str, body: bytes | None, content_type: str, read_seconds: float,
             stream: bool) -> urllib3.BaseHTTPResponse:  # fmt: skip
        headers = {"Accept": "application/json", "User-Agent": self._user_agent, **self._credentials()}
        if body is not None:
            headers["Content-Type"] = content_type
        timeout = urllib3.Timeout(connect=CONNECT_SECONDS, read=read_seconds)
        manager: urllib3.PoolManager = self._client.rest_client.pool_manager
        try:
            return manager.urlopen(
                method, self.host + path, body=body, headers=headers, timeout=timeout, retries=False, redirect=False,
                preload_content=not stream,
            )  # fmt: skip
        except (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ConnectTimeoutError) as error:
            raise NotSent(f"the API server at {self.host} cannot be reached: {error}") from error
        except urllib3.exceptions.ProxyError as error:
            raise NotSent(f"the proxy before the API server at {self.host} does not answer: {error}") from error
        except urllib3.exceptions.HTTPError as error:
            raise Lost(f"the connection to the API server at {self.host} broke: {error}") from error

    def _credentials(self) -> Mapping[str, str]:
        """The header with our token, if we have one. Asking may run an exec plugin, so it is not done for each request."""
        with self._lock:
            now = self._clock.now()
            if now >= self._fresh_until:
                settings = self._configuration.auth_settings().get("BearerToken")
                self._header = {"Authorization": settings["value"]} if settings and settings["value"] else {}
                self._fresh_until = now + _FRESH
            return self._header

    def _renew(self, used: Configuration) -> None:
        with self._lock:
            if self._configuration is used:  # else somebody has done it meanwhile
                old = self._client
                self._open()
                old.rest_client.pool_manager.clear()

    def _open(self) -> None:
        configuration = self._load()
        configuration.keep_alive = True
        configuration.connection_pool_maxsize = _POOLED
        self._configuration = configuration
        self._client: Any = ApiClient(configuration)
        manager = self._client.rest_client.pool_manager
        if manager.pool_classes_by_scheme["https"] is urllib3.HTTPSConnectionPool:  # else by way of a SOCKS proxy
            manager.pool_classes_by_scheme = {**manager.pool_classes_by_scheme, "https": HttpsPool}
        self._fresh_until = 0.0


def loader(kubeconfig: str = "", context: str = "", master: str = "") -> Callable[[], Configuration]:
    """How the configuration is found: the file that is named; else the cluster we run in; else $KUBECONFIG or ~/.kube/config.

    `master` is the server to talk to whatever the file says. Raises ConfError (when called)."""

    def load() -> Configuration:
        configuration = Configuration()
        try:
            if not kubeconfig and os.environ.get("KUBERNETES_SERVICE_HOST"):
                kubernetes_config.load_incluster_config(configuration)
            elif kubeconfig or not master or _exists(kubernetes_config.KUBE_CONFIG_DEFAULT_LOCATION):
                _check_there(kubeconfig)
                kubernetes_config.load_kube_config(kubeconfig or None, context or None, configuration, persist_config=False)
        except (kubernetes_config.ConfigException, OSError) as error:
            named = bool(kubeconfig) and kubeconfig in str(error)
            raise ConfError(str(error) if named else f"{kubeconfig or 'kubeconfig'}: {error}") from error
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise ConfError(f"{kubeconfig or 'kubeconfig'}: this is no kubeconfig: {' '.join(str(error).split())}") from error
        except (TypeError, AttributeError, KeyError) as error:  # the client takes the shape of the file for granted
            shape = "a kubeconfig is a map, with lists of clusters, users and contexts"
            raise ConfError(f"{kubeconfig or 'kubeconfig'}: this is no kubeconfig: {shape}") from error
        if master:
            configuration.host = master.rstrip("/")
        return configuration

    return load


def _check_there(kubeconfig: str) -> None:
    """The client would say that it is invalid. Raises ConfError."""
    if kubeconfig and not _exists(kubeconfig):
        raise ConfError(f"{kubeconfig}: no such file")
    if not kubeconfig and not _exists(kubernetes_config.KUBE_CONFIG_DEFAULT_LOCATION):
        raise ConfError("there is no kubeconfig: name one with --kubeconfig, or in KUBECONFIG")


def _exists(paths: str) -> bool:
    """One at least of several, as in KUBECONFIG."""
    return any(Path(path).expanduser().exists() for path in paths.split(os.pathsep) if path)
