"""When certificates are made anew, and that nobody is cut off by it."""

from __future__ import annotations

import ssl
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from certs import folder
from certs.cli import main, report
from certs.issue import CertificateFault, Pair, due, expires, hosts, new_serving, read, read_key, signed_by
from certs.stock import Stock, restock
from extender.cluster.clock import VirtualClock

NOW = 1_736_121_600.0
DAY = 86400.0
NAMES = ["webhook.example.svc", "127.0.0.1"]


@pytest.fixture(scope="module")
def stock() -> Stock:
    return restock(Stock(), NAMES, NOW)


def test_everything_is_made_where_nothing_is(stock: Stock) -> None:
    assert stock.serving is not None
    certificate = read(stock.serving.certificate)[0]
    assert hosts(certificate) == set(NAMES)
    assert signed_by(certificate, read(stock.trusted))
    assert isinstance(read_key(stock.serving.key).curve, ec.SECP256R1)


def test_lifetimes(stock: Stock) -> None:
    """A year and ten; due when two thirds are over (the start is a few minutes early, for clocks that differ)."""
    assert stock.serving is not None
    assert stock.authority is not None
    leaf, authority = read(stock.serving.certificate)[0], read(stock.authority.certificate)[0]
    assert (expires(leaf), expires(authority)) == (NOW + 365 * DAY, NOW + 3650 * DAY)
    assert due(leaf) == pytest.approx(NOW + 365 * DAY * 2 / 3, abs=600)


def test_nothing_is_made_where_nothing_is_due(stock: Stock) -> None:
    assert restock(stock, NAMES, NOW + 200 * DAY) is stock


def test_a_pair_that_is_due_is_renewed_by_the_same_authority(stock: Stock) -> None:
    later = restock(stock, NAMES, NOW + 244 * DAY)
    assert later.serving != stock.serving
    assert (later.authority, later.trusted) == (stock.authority, stock.trusted)


def test_a_new_name_needs_a_new_pair(stock: Stock) -> None:
    more = restock(stock, [*NAMES, "other.example"], NOW)
    assert more.serving is not None
    assert "other.example" in hosts(read(more.serving.certificate)[0])


def test_a_new_authority_is_trusted_beside_the_old_one(stock: Stock) -> None:
    """Whoever still shows a certificate of the old one is trusted as long as that lives."""
    at = NOW + 2440 * DAY
    kept = replace(stock, serving=new_serving(stock.authority or Pair(b"", b""), NAMES, at - DAY))
    later = restock(kept, NAMES, at)
    assert later.authority != stock.authority
    assert later.serving == kept.serving
    assert len(read(later.trusted)) == 2


def test_an_authority_that_has_expired_is_trusted_no_more(stock: Stock) -> None:
    later = restock(stock, NAMES, NOW + 3651 * DAY)
    assert len(read(later.trusted)) == 1
    assert later.serving is not None
    assert signed_by(read(later.serving.certificate)[0], read(later.trusted))


UNFIT = {
    "a key of another": lambda stock: replace(stock, serving=Pair(stock.serving.certificate, stock.authority.key)),
    "no certificate": lambda stock: replace(stock, serving=Pair(b"nonsense", stock.serving.key)),
    "no key": lambda stock: replace(stock, serving=Pair(stock.serving.certificate, b"nonsense")),
    "nobody is trusted": lambda stock: replace(stock, trusted=b"", authority=None),
}


@pytest.mark.parametrize("spoil", UNFIT.values(), ids=UNFIT)
def test_what_is_unfit_is_made_anew(stock: Stock, spoil: object) -> None:
    assert callable(spoil)
    mended = restock(spoil(stock), NAMES, NOW)
    assert report(mended, NAMES, NOW)[1] == []


def test_a_key_is_not_shown(stock: Stock) -> None:
    assert "PRIVATE" not in f"{stock!r} {stock}"


def test_a_fault_of_a_key_does_not_quote_it() -> None:
    with pytest.raises(CertificateFault) as caught:
        read_key(b"-----BEGIN PRIVATE KEY-----\nsecret-words\n-----END PRIVATE KEY-----\n")
    assert "secret-words" not in str(caught.value)


def test_openssl_takes_them(stock: Stock, tmp_path: Path) -> None:
    folder.save(tmp_path, stock)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
    client = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
    assert len(client.get_ca_certs()) == 1


def test_files_of_keys_are_their_owners_alone(stock: Stock, tmp_path: Path) -> None:
    folder.save(tmp_path / "new", stock)
    modes = {stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "new").iterdir()}
    assert (modes, stat.S_IMODE((tmp_path / "new").stat().st_mode)) == ({0o600}, 0o700)
    assert folder.load(tmp_path / "new") == stock


def run(*words: str, now: float = NOW) -> int:
    with pytest.raises(SystemExit) as ended:
        main(words, VirtualClock(now))
    assert isinstance(ended.value.code, int)
    return ended.value.code


TOLD = {
    "help": (["--help"], 0, "vc-certs issue --folder DIR"),
    "the version": (["--version"], 0, "vc-certs 0."),
    "another command": (["isue"], 2, "error: no such command 'isue'; did you mean 'issue'?\nSee 'vc-certs --help'."),
    "nothing": ([], 2, "vc-certs issue --folder DIR"),
    "a misspelt flag": (["issue", "--foldr=x"], 2, "error: unknown flag: --foldr; did you mean 'folder'?"),
    "a flag that is needed": (["issue"], 2, "error: --folder is needed\nSee 'vc-certs issue --help'."),
}


@pytest.mark.parametrize(("words", "status", "said"), TOLD.values(), ids=TOLD)
def test_what_the_command_says_of_itself(words: list[str], status: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With the status of an answer, or of a wrong command line."""
    assert (run(*words), said in "".join(capsys.readouterr())) == (status, True)


def test_the_command_keeps_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--folder", str(tmp_path), "--host", "a.example"]
    assert run("status", *where) == 1
    assert run("issue", *where) == 0
    first = (tmp_path / "tls.crt").read_bytes()
    assert run("issue", *where) == 0
    assert (tmp_path / "tls.crt").read_bytes() == first
    assert run("status", *where) == 0
    assert run("status", *where, now=NOW + 300 * DAY) == 1
    assert run("issue", *where, now=NOW + 300 * DAY) == 0
    assert (tmp_path / "tls.crt").read_bytes() != first
    assert "PRIVATE" not in "".join(capsys.readouterr())
