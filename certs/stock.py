"""What certificates there are, and what is missing for a webhook of given host names. The same for files and for Secrets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from cryptography import x509

from certs.issue import CertificateFault, Pair, bundle_of, due, expires, fits, hosts, new_authority, new_serving, read, signed_by
from extender.api.meta import Time, format_time


@dataclass(frozen=True, slots=True)
class Stock:
    """`trusted`: the authorities that clients are told of (PEM, one or more)."""

    authority: Pair | None = None
    serving: Pair | None = None
    trusted: bytes = b""


def restock(stock: Stock, names: Sequence[str], now: Time, *, force: bool = False) -> Stock:
    """The stock with all that is missing, due or unfit made anew; the same where nothing is.

    A new authority does not replace the serving pair as long as the old one is trusted: that is told first."""
    authority = stock.authority
    if authority is None or authority_fault(stock, now) or force:
        authority = new_authority(now)
    trusted = _trusted(authority, stock.trusted, now)
    if (authority, trusted) != (stock.authority, stock.trusted):
        stock = replace(stock, authority=authority, trusted=trusted)
    if serving_fault(stock, names, now) or force:
        stock = replace(stock, serving=new_serving(authority, names, now))
    return stock


def authority_fault(stock: Stock, now: Time) -> str:
    """Why a new authority is needed, "" where none is."""
    if stock.authority is None:
        return "there is none"
    try:
        certificate = read(stock.authority.certificate)[0]
    except CertificateFault as error:
        return str(error)
    if not fits(stock.authority):
        return "certificate and key are no pair"
    return f"due since {format_time(due(certificate))}" if now >= due(certificate) else ""


def serving_fault(stock: Stock, names: Sequence[str], now: Time) -> str:
    """Why a new serving pair is needed, "" where none is."""
    if stock.serving is None:
        return "there is none"
    try:
        certificate = read(stock.serving.certificate)[0]
        trusted = read(stock.trusted)
    except CertificateFault as error:
        return str(error)
    if not fits(stock.serving):
        return "certificate and key are no pair"
    if missing := set(names) - hosts(certificate):
        return f"it does not name {', '.join(sorted(missing))}"
    if not signed_by(certificate, trusted):
        return "no authority that is trusted has signed it"
    return f"due since {format_time(due(certificate))}" if now >= due(certificate) else ""


def _trusted(authority: Pair, before: bytes, now: Time) -> bytes:
    """The authority and those before it that have not expired."""
    present = read(authority.certificate)[0]
    older = [each for each in _readable(before) if each != present and _is_authority(each) and expires(each) > now]
    return bundle_of([present, *older])


def _readable(bundle: bytes) -> Iterator[x509.Certificate]:
    try:
        yield from read(bundle)
    except CertificateFault:
        return


def _is_authority(certificate: x509.Certificate) -> bool:
    try:
        return bool(certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca)
    except x509.ExtensionNotFound:
        return False
