"""How names and labels must look. Source: k8s.io/apimachinery v0.36.1 pkg/util/validation and pkg/api/validate/content."""

from __future__ import annotations

import re

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_DNS_SUBDOMAIN = re.compile(rf"{_DNS_LABEL.pattern}(\.{_DNS_LABEL.pattern})*")
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


def is_dns_label(text: str) -> bool:
    """A part of a host name: namespaces, services, tasks of a job."""
    return len(text) <= 63 and _DNS_LABEL.fullmatch(text) is not None


def is_dns_subdomain(text: str) -> bool:
    """A host name: what most objects must be called like."""
    return len(text) <= 253 and _DNS_SUBDOMAIN.fullmatch(text) is not None


def is_label_key(text: str) -> bool:
    """`name` or `host.name/name`: keys of labels, annotations and extended resources."""
    prefix, slash, name = text.rpartition("/")
    return len(name) <= 63 and _NAME.fullmatch(name) is not None and (not slash or is_dns_subdomain(prefix))


def is_label_value(text: str) -> bool:
    return not text or (len(text) <= 63 and _NAME.fullmatch(text) is not None)
