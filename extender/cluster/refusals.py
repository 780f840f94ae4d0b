"""The API server's own words for saying no: people, logs and clients know them.

Source: k8s.io/apimachinery v0.36.1 pkg/api/errors."""

from __future__ import annotations

from collections.abc import Iterable

from extender.api.errors import AlreadyExists, Conflict, Denied, Fault, Invalid, NotFound
from extender.api.meta import Kind

STALE = "the object has been modified; please apply your changes to the latest version and try again"


def resource(kind: Kind) -> str:
    """`pods`, `jobs.batch.volcano.sh`."""
    return f"{kind.plural}.{kind.group}" if kind.group else kind.plural


def not_found(kind: Kind, name: str) -> NotFound:
    return NotFound(f'{resource(kind)} "{name}" not found')


def no_subresource(kind: Kind, subresource: str) -> NotFound:
    return NotFound(f"the server could not find the requested resource ({resource(kind)}/{subresource})")


def already_exists(kind: Kind, name: str) -> AlreadyExists:
    return AlreadyExists(f'{resource(kind)} "{name}" already exists')


def conflict(kind: Kind, name: str, why: str, subresource: str = "") -> Conflict:
    where = f"{resource(kind)}/{subresource}" if subresource else resource(kind)
    return Conflict(f'Operation cannot be fulfilled on {where} "{name}": {why}')


def other_uid(kind: Kind, name: str, wanted: str, found: str) -> Conflict:
    why = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    return conflict(kind, name, why)


def invalid(kind: Kind, name: str, faults: Iterable[Fault]) -> Invalid:
    listed = list(faults)
    words = ", ".join(str(fault) for fault in listed)
    qualified = f"{kind.name}.{kind.group}" if kind.group else kind.name
    return Invalid(f'{qualified} "{name}" is invalid: {f"[{words}]" if len(listed) > 1 else words}', listed)


def forbidden(kind: Kind, name: str, why: str) -> Denied:
    return Denied(f'{resource(kind)} "{name}" is forbidden: {why}')
