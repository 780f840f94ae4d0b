"""Files that a pod gets of what is known elsewhere: items of secrets and config maps, the downward API, projected volumes.

Source: kubernetes v1.36.1, validation.go, validateProjectionSources, validateDownwardAPIVolumeFile; names.go."""

from __future__ import annotations

from typing import Any

from extender.api import quantity
from extender.api.checks import (
    DNS_LABEL,
    DNS_SUBDOMAIN,
    FILE_MODE,
    Faults,
    apply,
    between,
    file_path,
    one_of,
    only_one,
    optional,
    qualified_name,
    repeated,
    required,
    selector_faults,
)
from extender.api.errors import Fault
from extender.api.meta import Json


def item_faults(items: list[Json], path: str) -> Faults:
    for index, item in enumerate(items):
        at = f"{path}[{index}]"
        yield from required(item, at, "key", "path")
        yield from apply({"path": file_path, "mode": FILE_MODE}, item, at)


# --- the downward API, of files and of the environment -----------------------------------------------------------------------
_LABELLED = ("metadata.labels", "metadata.annotations")
FILE_FIELDS = ("metadata.name", "metadata.namespace", "metadata.uid", *_LABELLED)
ENV_FIELDS = ("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
              "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs")  # fmt: skip
_AMOUNTS = tuple(f"{kind}.{name}" for kind in ("limits", "requests") for name in ("cpu", "memory", "ephemeral-storage"))
_HUGE = ("limits.hugepages-", "requests.hugepages-")
_CPU_DIVISORS = {quantity.nanos(text) for text in ("1m", "1")}
_DIVISORS = {quantity.nanos(f"1{suffix}") for suffix in ("", *"kMGTPE", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")}


def field_reference_faults(reference: Json, allowed: tuple[str, ...], path: str) -> Faults:
    field, version = reference.get("fieldPath", ""), reference.get("apiVersion", "") or "v1"
    yield from required(reference, path, "fieldPath")
    if version != "v1":
        yield Fault(f"{path}.apiVersion", f"'{version}' is not supported; use v1")
    name, bracket, key = field.partition("['")
    if bracket and key.endswith("']"):
        wrong = qualified_name(key.removesuffix("']").lower() if name == "metadata.annotations" else key.removesuffix("']"))
        if name not in _LABELLED:
            wrong = f"'{name}' has no keys: only {' and '.join(_LABELLED)} take ['key']"
        if wrong:
            yield Fault(f"{path}.fieldPath", wrong)
    elif field:
        yield from apply({"fieldPath": one_of(*allowed)}, reference, path)


def resource_reference_faults(reference: Json, path: str, *, of_volume: bool) -> Faults:
    resource, divisor = reference.get("resource", ""), reference.get("divisor", "0")
    yield from required(reference, path, *(("containerName",) if of_volume else ()), "resource")
    if resource and not resource.startswith(_HUGE):
        yield from apply({"resource": one_of(*_AMOUNTS)}, reference, path)
    known = _CPU_DIVISORS if resource.endswith(".cpu") else _DIVISORS
    if quantity.nanos(divisor) not in {0, *known}:
        yield Fault(f"{path}.divisor", f"'{divisor}' does not divide {resource or 'the amount'}: use 1 or a unit such as 1Mi")


def downward_file_faults(files: list[Json], path: str) -> Faults:
    for index, file in enumerate(files):
        at = f"{path}[{index}]"
        yield from required(file, at, "path")
        yield from apply({"path": file_path, "mode": FILE_MODE}, file, at)
        yield from only_one(file, at, ("fieldRef", "resourceFieldRef"))
        if "fieldRef" in file:
            yield from field_reference_faults(file["fieldRef"], FILE_FIELDS, f"{at}.fieldRef")
        elif "resourceFieldRef" in file:
            yield from resource_reference_faults(file["resourceFieldRef"], f"{at}.resourceFieldRef", of_volume=True)


# --- projected volumes ---------------------------------------------------------------------------------------------------------
_PROJECTIONS = ("secret", "configMap", "downwardAPI", "serviceAccountToken", "clusterTrustBundle", "podCertificate")
_PLACES = ("credentialBundlePath", "keyPath", "certificateChainPath")
_KEY_TYPES = one_of("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")


def projection_faults(sources: list[Json], path: str) -> Faults:
    paths: list[str] = []
    for index, source in enumerate(sources):
        at = f"{path}.sources[{index}]"
        yield from only_one(source, at, _PROJECTIONS, needed=False)
        for kind in ("secret", "configMap"):
            if kind in source:
                yield from required(source[kind], f"{at}.{kind}", "name")
                yield from item_faults(source[kind].get("items", []), f"{at}.{kind}.items")
                paths += [item.get("path", "") for item in source[kind].get("items", [])]
        if "downwardAPI" in source:
            yield from downward_file_faults(source["downwardAPI"].get("items", []), f"{at}.downwardAPI.items")
            paths += [item.get("path", "") for item in source["downwardAPI"].get("items", [])]
        if "serviceAccountToken" in source:
            token = source["serviceAccountToken"]
            yield from required(token, f"{at}.serviceAccountToken", "path")
            yield from apply({"path": file_path, "expirationSeconds": between(600, 2**32)}, token, f"{at}.serviceAccountToken")
        if "clusterTrustBundle" in source:
            yield from _bundle_faults(source["clusterTrustBundle"], f"{at}.clusterTrustBundle")
            paths.append(source["clusterTrustBundle"].get("path", ""))
        if "podCertificate" in source:
            yield from _certificate_faults(source["podCertificate"], f"{at}.podCertificate")
            paths += [source["podCertificate"].get(place, "") for place in _PLACES]
    for fault in repeated(paths, f"{path}.sources"):
        yield Fault(f"{path}.sources", f"two files on one path: {fault.message}")


def _bundle_faults(bundle: Json, path: str) -> Faults:
    yield from required(bundle, path, "path")
    yield from only_one(bundle, path, ("name", "signerName"))
    yield from apply({"path": file_path, "name": _bundle_name, "signerName": _signer_name}, bundle, path)
    if "name" in bundle and "labelSelector" in bundle:
        yield Fault(f"{path}.labelSelector", "goes with signerName, not with name")
    yield from selector_faults(bundle.get("labelSelector", {}), f"{path}.labelSelector")


def _certificate_faults(certificate: Json, path: str) -> Faults:
    yield from required(certificate, path, "signerName", "keyType")
    kubernetes = certificate.get("signerName", "").startswith("kubernetes.io/")
    longest = 86400 if kubernetes else 91 * 86400
    yield from apply({"signerName": optional(_signer_name), "keyType": optional(_KEY_TYPES),
                      "maxExpirationSeconds": between(3600, longest), **dict.fromkeys(_PLACES, file_path)},
                     certificate, path)  # fmt: skip
    if not any(certificate.get(place) for place in _PLACES):
        yield Fault(path, f"one of {', '.join(_PLACES)} is required")
    for key in certificate.get("userAnnotations", {}):
        wrong = qualified_name(key.lower()) or ("" if "/" in key else f"'{key}' must have a domain in front")
        if wrong:
            yield Fault(f"{path}.userAnnotations[{key}]", wrong)


def _signer_name(value: Any) -> str:
    domain, slash, name = str(value).partition("/")
    labels = domain.split(".")
    parts_fit = slash and "/" not in name and len(labels) > 1 and len(domain) <= 253
    good = parts_fit and not any(map(DNS_LABEL, labels)) and not any(map(DNS_SUBDOMAIN, name.split(".")))
    return "" if good else f"'{value}' must be a domain with a dot and a name, such as example.com/signer"


def _bundle_name(value: Any) -> str:
    """Before its last ':' stands the name of a signer, which is not looked at."""
    return DNS_SUBDOMAIN(str(value).rpartition(":")[2])
