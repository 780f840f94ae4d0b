"""What may arrive at a TLS port and is no TLS."""

from __future__ import annotations

import os
import socket
from contextlib import suppress

GARBAGE = {
    "noise": os.urandom(4096),
    "zeros": bytes(100_000),
    "half a hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "another protocol": b"SSH-2.0-OpenSSH_9.2\r\n",
    "plain HTTP": b"POST /extender/v1/filter HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
    "nothing": b"",
}


def shout(connection: socket.socket, noise: bytes) -> None:
    """Send it all, then hear whatever comes until the other end has had enough."""
    with suppress(OSError):
        connection.sendall(noise)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass
