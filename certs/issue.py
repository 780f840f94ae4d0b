"""X.509: an authority of our own and serving certificates signed by it. ECDSA P-256 throughout.

A serving certificate lives a year, its authority ten; either is due for renewal when two thirds of that are over. An
authority that is renewed is trusted beside the old one until that expires, so nobody has to change at the same moment."""

from __future__ import annotations

import datetime as dt
import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from extender.api.errors import PumiceError
from extender.api.meta import Time

AUTHORITY_DAYS, SERVING_DAYS = 3650, 365
DUE = 2 / 3  # of a lifetime
_SKEW = dt.timedelta(minutes=5)  # clocks differ: what was made just now must be valid already
_COMMON_NAME = 64  # characters at most; RFC 5280, ub-common-name


class CertificateFault(PumiceError):
    """Something that should hold a certificate or a key does not."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:  # a key must not get into a log by way of a repr
        return f"Pair({len(self.certificate)} bytes)"


def new_authority(now: Time, name: str = "pumice-admission-ca") -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject(name)
    usage = _usage(key_cert_sign=True, crl_sign=True)
    made = (
        _begun(subject, subject, key.public_key(), now, AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Pair(_pem(made), _key_pem(key))


def new_serving(authority: Pair, names: Sequence[str], now: Time) -> Pair:
    """`names`: host names and addresses, the first in the subject too. Raises CertificateFault."""
    if not names:
        raise CertificateFault("a serving certificate needs at least one host name")
    signer, signing_key = read(authority.certificate)[0], read_key(authority.key)
    key = ec.generate_private_key(ec.SECP256R1())
    made = (
        _begun(_subject(names[0]), signer.subject, key.public_key(), now, SERVING_DAYS)
        .add_extension(x509.SubjectAlternativeName([_general(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(digital_signature=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signing_key.public_key()), critical=False)
        .sign(signing_key, hashes.SHA256())
    )
    return Pair(_pem(made), _key_pem(key))


# --- reading --------------------------------------------------------------------------------------------------------------


def read(pem: bytes) -> list[x509.Certificate]:
    """Every certificate of a bundle. Raises CertificateFault where there is none."""
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        raise CertificateFault(f"no certificate in PEM: {error}") from None


def read_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    """Raises CertificateFault; what it says never holds any of the text."""
    try:
        key = serialization.load_pem_private_key(pem, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise CertificateFault("no private key in PEM without a password") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise CertificateFault("the private key is not one of an elliptic curve")
    return key


def fits(pair: Pair) -> bool:
    """Whether key and certificate belong together."""
    try:
        return read(pair.certificate)[0].public_key() == read_key(pair.key).public_key()
    except CertificateFault:
        return False


def signed_by(certificate: x509.Certificate, bundle: Iterable[x509.Certificate]) -> bool:
    return any(_signed(certificate, each) for each in bundle)


def _signed(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def hosts(certificate: x509.Certificate) -> set[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    return {*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress))}


def expires(certificate: x509.Certificate) -> Time:
    return certificate.not_valid_after_utc.timestamp()


def due(certificate: x509.Certificate) -> Time:
    """When it should be renewed."""
    begins = certificate.not_valid_before_utc.timestamp()
    return begins + DUE * (expires(certificate) - begins)


def bundle_of(certificates: Iterable[x509.Certificate]) -> bytes:
    return b"".join(_pem(each) for each in certificates)


# --- writing --------------------------------------------------------------------------------------------------------------


def _begun(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: Time,
           days: int) -> x509.CertificateBuilder:  # fmt: skip
    begins = dt.datetime.fromtimestamp(int(now), dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins - _SKEW)
        .not_valid_after(begins + dt.timedelta(days=days))
    )


def _usage(**on: bool) -> x509.KeyUsage:
    uses = ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
            "key_cert_sign", "crl_sign", "encipher_only", "decipher_only")  # fmt: skip
    return x509.KeyUsage(**{use: on.get(use, False) for use in uses})


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:_COMMON_NAME])])


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
