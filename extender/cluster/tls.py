"""TLS. The server's side: 1.2 or newer, the reference's ciphers, client certificates verified if shown. Either side leaves
nothing open where the other is gone."""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import urllib3
from urllib3.util.ssl_ import create_urllib3_context, resolve_cert_reqs

from extender.cluster.clock import Clock
from extender.cluster.from_files import FromFiles

# Of TLS 1.2; volcano ed72c7c, pkg/webhooks/... ConfigTLS. TLS 1.3 brings its own.
CIPHERS = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384"


class Reached(ssl.SSLSocket):
    """Of a peer that is gone before the handshake the socket is closed, with ConnectionResetError.

    (Python's wrap_socket, which asks for the peer first, would leave that one open where nobody can reach it.)"""

    def getpeername(self) -> Any:
        try:
            return super().getpeername()
        except OSError as error:
            self.close()
            raise ConnectionResetError(errno.ECONNRESET, "the peer is gone") from error


def secured(wire: socket.socket, context: ssl.SSLContext) -> ssl.SSLSocket:
    """The server's end of TLS, the handshake still to come. Raises OSError where the client is gone."""
    context.sslsocket_class = Reached
    return context.wrap_socket(wire, server_side=True, do_handshake_on_connect=False)


class HttpsConnection(urllib3.connection.HTTPSConnection):
    """The client's end, of urllib3, which makes such a context itself where it is given none."""

    def connect(self) -> None:
        self.ssl_context = context = create_urllib3_context(cert_reqs=resolve_cert_reqs(self.cert_reqs))
        context.sslsocket_class = Reached
        if not (self.ca_certs or self.ca_cert_dir or self.ca_cert_data):
            context.load_default_certs()
        super().connect()


class HttpsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = HttpsConnection


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """`authority` is that of client certificates."""

    certificate: str
    key: str
    authority: str = ""

    def context(self) -> ssl.SSLContext:
        """Raises OSError; an ssl.SSLError where certificate and key are no pair."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers(CIPHERS)
        context.load_cert_chain(self.certificate, self.key)
        if self.authority:
            context.load_verify_locations(self.authority)
            context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def followed(self, clock: Clock, failed: Callable[[str], None] = lambda _: None) -> FromFiles[ssl.SSLContext]:
        """The context for the next connection; those that are open go on with theirs."""
        files = [name for name in (self.certificate, self.key, self.authority) if name]
        return FromFiles("certificate", files, self.context, clock, failed)
