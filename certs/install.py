"""Certificates kept in a cluster: two Secrets, and the authority in every webhook configuration of the service.

`volcano-admission-secret` is the reference's (tls.crt, tls.key, ca.crt) and is mounted by the webhook. The key of the
authority is not in it but in a Secret of its own that only this program reads, so that a pod which serves cannot sign."""

from __future__ import annotations

import logging
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Iterator
from dataclasses import dataclass

from certs.folder import AUTHORITY_KEY, SERVING, SERVING_KEY, TRUSTED
from certs.issue import Pair
from certs.stock import Stock, restock
from extender.api.errors import AlreadyExists, Conflict, NotFound
from extender.api.labels import SYSTEM_NAMESPACE
from extender.api.meta import SECRET, Json, Key, Kind, Time, annotations_of
from extender.cluster.ca_bundle import WEBHOOK_KINDS, publish
from extender.cluster.logs import about
from extender.cluster.port import Cluster

CERT_MANAGER = "cert-manager.io/certificate-name"  # annotation of a Secret that cert-manager keeps
_LABELS = {"app.kubernetes.io/part-of": "pumice", "app.kubernetes.io/component": "admission"}

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the webhook is: its service and its Secret."""

    namespace: str = SYSTEM_NAMESPACE
    service: str = "volcano-admission-service"
    secret: str = "volcano-admission-secret"

    @property
    def names(self) -> list[str]:
        """What the API server and people may call it."""
        host = f"{self.service}.{self.namespace}"
        return [f"{host}.svc", f"{host}.svc.cluster.local", host, self.service]

    @property
    def serving(self) -> Key:
        return Key(self.namespace, self.secret)

    @property
    def authority(self) -> Key:
        return Key(self.namespace, f"{self.secret}-authority")


def keep(cluster: Cluster, place: Place, now: Time, *, force: bool = False, external: bool = False) -> list[str]:
    """Make what is missing or due, tell it to the API server; what was written. Raises ClusterError.

    A Secret that others keep (`external`, or cert-manager says so) is never touched, only told. Of two that keep the same
    Secret one has a Conflict."""
    found, secrets = load(cluster, place)
    written: list[str] = []
    trusted = found.trusted
    if not external and CERT_MANAGER not in annotations_of(secrets[place.serving] or {}):
        wanted = restock(found, place.names, now, force=force)
        trusted = wanted.trusted
        assert wanted.authority is not None
        assert wanted.serving is not None
        authority = {TRUSTED: wanted.authority.certificate, AUTHORITY_KEY: wanted.authority.key}
        if _write(cluster, place.authority, secrets[place.authority], authority, "Opaque"):
            written.append(f"Secret {place.authority}")
        if wanted.trusted != found.trusted:  # whom to trust is told before anybody shows what that one has signed
            written += publish_all(cluster, place, wanted.trusted)
        serving = {SERVING: wanted.serving.certificate, SERVING_KEY: wanted.serving.key, TRUSTED: wanted.trusted}
        if _write(cluster, place.serving, secrets[place.serving], serving, "kubernetes.io/tls"):
            written.append(f"Secret {place.serving}")
    if trusted:
        written += publish_all(cluster, place, trusted)
    for what in written:
        log.info("written", extra=about(what=what))
    return written


def load(cluster: Cluster, place: Place) -> tuple[Stock, dict[Key, Json | None]]:
    """What there is, and the Secrets it was read from."""
    secrets = {key: _secret(cluster, key) for key in (place.serving, place.authority)}
    serving, authority = secrets[place.serving] or {}, secrets[place.authority] or {}
    trusted = _value(serving, TRUSTED)
    stock = Stock(_pair(authority, TRUSTED, AUTHORITY_KEY), _pair(serving, SERVING, SERVING_KEY), trusted)
    return stock, secrets


def publish_all(cluster: Cluster, place: Place, bundle: bytes) -> list[str]:
    """Into every configuration that calls the service; those that were written."""
    return [f"{kind} {name}" for kind, name in configurations(cluster, place) if publish(cluster, kind, name, bundle)]


def configurations(cluster: Cluster, place: Place) -> Iterator[tuple[Kind, str]]:
    for kind in WEBHOOK_KINDS:
        for found in cluster.list(kind).objects:
            services = [(webhook.get("clientConfig") or {}).get("service") or {} for webhook in found.get("webhooks") or ()]
            if any((each.get("namespace"), each.get("name")) == (place.namespace, place.service) for each in services):
                yield kind, found["metadata"]["name"]


def _secret(cluster: Cluster, key: Key) -> Json | None:
    try:
        return cluster.get(SECRET, key)
    except NotFound:
        return None


def _write(cluster: Cluster, key: Key, found: Json | None, data: dict[str, bytes], kind: str) -> bool:
    """Whether it took a write. Raises Conflict where somebody else was quicker."""
    wanted = {name: b64encode(value).decode() for name, value in data.items()}
    if found is None:
        secret = {"apiVersion": "v1", "kind": "Secret", "type": kind, "data": wanted,
                  "metadata": {"namespace": key.namespace, "name": key.name, "labels": dict(_LABELS)}}  # fmt: skip
        try:
            cluster.create(SECRET, secret)
        except AlreadyExists as error:
            raise Conflict(str(error)) from None
        return True
    have = found.get("data") or {}
    if all(have.get(name) == value for name, value in wanted.items()):
        return False
    version = found["metadata"].get("resourceVersion", "")
    cluster.patch(SECRET, key, {"metadata": {"resourceVersion": version}, "data": wanted})
    return True


def _pair(secret: Json, certificate: str, key: str) -> Pair | None:
    pair = Pair(_value(secret, certificate), _value(secret, key))
    return pair if pair.certificate and pair.key else None


def _value(secret: Json, name: str) -> bytes:
    try:
        return b64decode((secret.get("data") or {}).get(name) or "", validate=True)
    except (NotBase64, ValueError):
        return b""
