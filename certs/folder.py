"""Certificates kept as files: tls.crt, tls.key, ca.crt, ca.key. All are readable by their owner only, from the first byte on."""

from __future__ import annotations

import os
from pathlib import Path

from certs.issue import Pair, read
from certs.stock import Stock

SERVING, SERVING_KEY, TRUSTED, AUTHORITY_KEY = "tls.crt", "tls.key", "ca.crt", "ca.key"


def load(folder: Path) -> Stock:
    """What is there. The authority that signs is the first of those that are trusted. Raises OSError, CertificateFault."""
    trusted, key = _read(folder / TRUSTED), _read(folder / AUTHORITY_KEY)
    certificate, serving_key = _read(folder / SERVING), _read(folder / SERVING_KEY)
    if trusted:
        read(trusted)
    return Stock(
        Pair(trusted, key) if trusted and key else None,
        Pair(certificate, serving_key) if certificate and serving_key else None,
        trusted,
    )


def save(folder: Path, stock: Stock) -> None:
    """Each file is whole at any time. Whom to trust comes first, the certificate and then its key."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if stock.authority is not None:
        _write(folder / AUTHORITY_KEY, stock.authority.key)
    _write(folder / TRUSTED, stock.trusted)
    if stock.serving is not None:
        _write(folder / SERVING, stock.serving.certificate)
        _write(folder / SERVING_KEY, stock.serving.key)


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""


def _write(file: Path, content: bytes) -> None:
    made = file.with_name(f".{file.name}.new")
    made.unlink(missing_ok=True)
    with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    made.replace(file)
