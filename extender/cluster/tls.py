"""The server's side of TLS: 1.2 or newer, the reference's ciphers, client certificates verified if shown."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass

from extender.cluster.clock import Clock
from extender.cluster.from_files import FromFiles

# Of TLS 1.2; volcano ed72c7c, pkg/webhooks/... ConfigTLS. TLS 1.3 brings its own.
CIPHERS = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384"


def secured(wire: socket.socket, context: ssl.SSLContext) -> ssl.SSLSocket:
    """The server's end of TLS, the handshake still to come. Of a client that is gone the socket is closed: OSError.

    (Python's wrap_socket would leave that one open where nobody can reach it.)"""
    try:
        wire.getpeername()
    except OSError:
        wire.close()
        raise
    return context.wrap_socket(wire, server_side=True, do_handshake_on_connect=False)


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
