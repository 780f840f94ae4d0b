"""Values that follow their files, and the certificate that does."""

from __future__ import annotations

import gc
import os
import select
import socket
import ssl
import struct
import warnings
from pathlib import Path

import pytest

from extender.cluster.clock import VirtualClock
from extender.cluster.from_files import LOOK_SECONDS, FromFiles
from extender.cluster.tls import TlsFiles, secured
from tests.controlplane.pki import Authority
from tests.daemons.running import PATIENCE


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(1_736_121_600.0)


def number(file: Path) -> int:
    return int(file.read_text())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "number"
    made.write_text("1")
    return made


def change(file: Path, text: str) -> None:
    """As a mounted Secret changes: the name leads to another file."""
    made = file.with_name(f"new-{text[:3]}")
    made.write_text(text)
    os.utime(made, ns=(made.stat().st_atime_ns, file.stat().st_mtime_ns + 1))
    made.replace(file)


def test_a_file_is_followed(file: Path, clock: VirtualClock) -> None:
    value = FromFiles("number", [file], lambda: number(file), clock)
    change(file, "2")
    assert value() == 1  # it is not looked at at every turn
    clock.sleep(LOOK_SECONDS)
    assert value() == 2


def test_the_last_good_one_stays(file: Path, clock: VirtualClock, caplog: pytest.LogCaptureFixture) -> None:
    """It is told once for each state of the file, and what is mended counts again."""
    told: list[str] = []
    value = FromFiles("number", [file], lambda: number(file), clock, told.append)
    change(file, "nonsense")
    for _ in range(3):
        clock.sleep(LOOK_SECONDS)
        assert value() == 1
    file.unlink()
    clock.sleep(LOOK_SECONDS)
    assert value() == 1
    file.write_text("3")
    clock.sleep(LOOK_SECONDS)
    assert value() == 3
    assert told == ["number", "number"]
    assert caplog.text.count("cannot be read again") == 2


def test_what_fits_only_together_is_tried_again(tmp_path: Path, clock: VirtualClock) -> None:
    """Two files are replaced one after the other, and the second look comes in between."""
    left, right = tmp_path / "left", tmp_path / "right"
    left.write_text("1")
    right.write_text("1")

    def both() -> int:
        if number(left) != number(right):
            raise ValueError("no pair")
        return number(left)

    value = FromFiles("pair", [left, right], both, clock)
    change(left, "2")
    clock.sleep(LOOK_SECONDS)
    assert value() == 1
    change(right, "2")
    clock.sleep(LOOK_SECONDS)
    assert value() == 2


def test_a_certificate_is_read_again_when_it_changes(tmp_path: Path, clock: VirtualClock) -> None:
    """One that cannot be used leaves the last good one in force; so does one without its key."""
    pair = Authority(tmp_path).serving("server", ["127.0.0.1"])
    (tmp_path / "other").mkdir()
    other = Authority(tmp_path / "other").serving("server", ["127.0.0.1"])
    context = TlsFiles(str(pair.certificate), str(pair.key)).followed(clock)

    def after(certificate: bytes, key: bytes) -> ssl.SSLContext:
        Path(pair.certificate).write_bytes(certificate)
        Path(pair.key).write_bytes(key)
        clock.sleep(LOOK_SECONDS)
        return context()

    certificate, key = Path(other.certificate).read_bytes(), Path(other.key).read_bytes()
    first = context()
    assert after(b"nonsense", Path(pair.key).read_bytes()) is first
    assert after(certificate, Path(pair.key).read_bytes()) is first
    assert after(certificate, key) is not first


@pytest.mark.parametrize("sent", [b"", b"x"], ids=["silent", "with something said"])
def test_of_a_client_that_is_gone_nothing_stays_open(sent: bytes) -> None:
    """It was reset between the connection and the handshake."""
    gc.collect()  # what others have left open is told before
    with socket.create_server(("127.0.0.1", 0)) as server, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        client = socket.create_connection(server.getsockname())
        client.sendall(sent)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        wire, _ = server.accept()
        reset = select.poll()
        reset.register(wire, 0)  # whatever is registered, an end is told
        assert reset.poll(PATIENCE * 1000)
        with pytest.raises(OSError):  # noqa: PT011
            secured(wire, ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        assert wire.fileno() == -1
        gc.collect()
        assert told == []
