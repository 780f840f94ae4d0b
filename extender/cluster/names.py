"""What names, labels and annotations may look like, and the API server's words for those that do not.

Source: k8s.io/apimachinery v0.36.1 pkg/util/validation, pkg/api/validation/objectmeta.go."""

from __future__ import annotations

import re
from functools import lru_cache

from extender.api.errors import Fault

_ANNOTATION_BYTES = 256 * 1024  # of all keys and values together
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_LABEL = re.compile(_LABEL)
_DNS_SUBDOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")


def annotation_faults(annotations: dict[str, str]) -> list[Fault]:
    faults = [
        Fault("metadata.annotations", f'Invalid value: "{key}": {why}') for key in annotations if (why := key_fault(key.lower()))
    ]
    if sum(len(key) + len(value) for key, value in annotations.items()) > _ANNOTATION_BYTES:
        faults.append(Fault("metadata.annotations", f"Too long: may not be more than {_ANNOTATION_BYTES} bytes"))
    return faults


def label_faults(labels: object, path: str) -> list[Fault]:
    if labels is None:
        return []
    if not isinstance(labels, dict):
        return [Fault(path, f"Invalid value: {labels!r}: must be a map of strings")]
    return [Fault(path, why) for key, value in labels.items() if (why := _label_fault(key, value))]


@lru_cache(maxsize=65536)
def _label_fault(key: str, value: object) -> str:
    if why := key_fault(key):
        return f'Invalid value: "{key}": {why}'
    if not isinstance(value, str):
        return f"Invalid value: {value!r}: the value of label {key} must be a string"
    if value and (len(value) > 63 or not _QUALIFIED.fullmatch(value)):
        length = "must be no more than 63 bytes; " if len(value) > 63 else ""
        return (
            f'Invalid value: "{value}": {length}a valid label must be an empty string or consist of alphanumeric characters, '
            "'-', '_' or '.', and must start and end with an alphanumeric character"
        )
    return ""


@lru_cache(maxsize=8192)
def key_fault(key: str) -> str:
    """What is wrong with the key of a label or annotation or the name of a finalizer, "" for nothing."""
    prefix, slash, name = key.rpartition("/")
    if slash and (not prefix or len(prefix) > 253 or not _DNS_SUBDOMAIN.fullmatch(prefix)):
        return "prefix part must be a lowercase RFC 1123 subdomain"
    if not name or len(name) > 63 or not _QUALIFIED.fullmatch(name):
        return "name part must consist of at most 63 alphanumeric characters, '-', '_' or '.'"
    return ""


def name_fault(name: object, *, label: bool = False) -> str:
    """What is wrong with the name of an object, "" for nothing."""
    limit = 63 if label else 253
    if not isinstance(name, str):
        return f"Invalid value: {name!r}: must be a string"
    if len(name) > limit:
        return f'Invalid value: "{name}": must be no more than {limit} characters'
    if not (_DNS_LABEL if label else _DNS_SUBDOMAIN).fullmatch(name):
        what = "label" if label else "subdomain"
        letters = "'-'" if label else "'-' or '.'"
        return (
            f'Invalid value: "{name}": a lowercase RFC 1123 {what} must consist of lower case alphanumeric characters, '
            f"{letters}, and must start and end with an alphanumeric character"
        )
    return ""
