"""A certificate authority that lives as long as one test run; its keys never leave the temporary folder they are written to."""

from __future__ import annotations

import datetime as dt
import ipaddress
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALID = dt.timedelta(days=1)


class Pair(NamedTuple):
    """Files in PEM."""

    certificate: Path
    key: Path


class Authority:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "pumice-test-ca")])
        constraints = x509.BasicConstraints(ca=True, path_length=0)
        certificate = _begin(self._name, self._name, self._key.public_key()).add_extension(constraints, critical=True)
        self.certificate = folder / "ca.crt"
        self.certificate.write_bytes(_pem(certificate.sign(self._key, hashes.SHA256())))

    def serving(self, name: str, hosts: Iterable[str]) -> Pair:
        """A pair for a server that is reached by these names and addresses."""
        alternatives = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
        return self._issue(name, [x509.NameAttribute(NameOID.COMMON_NAME, name)], [alternatives, usage])

    def client(self, name: str, user: str, groups: Iterable[str] = ()) -> Pair:
        """A pair that an API server takes for this user and these groups."""
        subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
        return self._issue(name, [*subject, x509.NameAttribute(NameOID.COMMON_NAME, user)], [usage])

    def signing_key(self, name: str) -> Path:
        """A private key by itself, to sign the tokens of service accounts."""
        return _write_key(self.folder / f"{name}.key", ec.generate_private_key(ec.SECP256R1()))

    def _issue(self, name: str, subject: list[x509.NameAttribute[str]], extensions: list[x509.ExtensionType]) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _begin(x509.Name(subject), self._name, key.public_key())
        for extension in extensions:
            builder = builder.add_extension(extension, critical=False)
        pair = Pair(self.folder / f"{name}.crt", _write_key(self.folder / f"{name}.key", key))
        pair.certificate.write_bytes(_pem(builder.sign(self._key, hashes.SHA256())))
        return pair


def _begin(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(now - dt.timedelta(minutes=5)).not_valid_after(now + _VALID)


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _write_key(file: Path, key: ec.EllipticCurvePrivateKey) -> Path:
    encoding, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    file.touch(mode=0o600)
    file.write_bytes(key.private_bytes(encoding, serialization.PrivateFormat.TraditionalOpenSSL, plain))
    return file
