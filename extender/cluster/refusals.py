"""The API server's own words for saying no: people, logs and clients know them.

Source: k8s.io/apimachinery v0.36.1 pkg/api/errors."""

from __future__ import annotations

from collections.abc import Iterable

from extender.api.errors import AlreadyExists, BadRequest, Conflict, Denied, Fault, Invalid, InvalidObject, NotFound
from extender.api.meta import Kind

STALE = "the object has been modified; please apply your changes to the latest version and try again"


def resource(kind: Kind) -> str:
    """`pods`, `jobs.batch.volcano.sh`."""
    return f"{kind.plural}.{kind.group}" if kind.group else kind.plural


def not_found(kind: Kind, name: str) -> NotFound:
    return NotFound(f'{resource(kind)} "{name}" not found')


def no_subresource() -> NotFound:
    return NotFound("the server could not find the requested resource")


def unreadable(kind: Kind, why: InvalidObject) -> BadRequest:
    said = str(why).removeprefix(f"{why.subject}: ")  # who is told knows which object it is about
    return BadRequest(f'{kind.name} in version "{kind.version}" cannot be handled as a {kind.name}: {said}')


def already_exists(kind: Kind, name: str) -> AlreadyExists:
    return AlreadyExists(f'{resource(kind)} "{name}" already exists')


def conflict(kind: Kind, name: str, why: str, subresource: str = "") -> Conflict:
    return _conflict(f"{resource(kind)}/{subresource}" if subresource else resource(kind), name, why)


def other_uid(kind: Kind, name: str, wanted: str, found: str) -> Conflict:
    why = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    return conflict(kind, name, why)


def recreated(kind: Kind, name: str, wanted: str, found: str) -> Conflict:
    """Of a deletion: here it is the kind that is named, not the resource."""
    why = f"the UID in the precondition ({wanted}) does not match the UID in record ({found})."
    return _conflict(_qualified(kind), name, f"{why} The object might have been deleted and then recreated")


def invalid(kind: Kind, name: str, faults: Iterable[Fault]) -> Invalid:
    listed = list(faults)
    words = ", ".join(str(fault) for fault in listed)
    return Invalid(f'{_qualified(kind)} "{name}" is invalid: {f"[{words}]" if len(listed) > 1 else words}', listed)


def forbidden(kind: Kind, name: str, why: str) -> Denied:
    return Denied(f'{resource(kind)} "{name}" is forbidden: {why}')


def _qualified(kind: Kind) -> str:
    return f"{kind.name}.{kind.group}" if kind.group else kind.name


def _conflict(what: str, name: str, why: str) -> Conflict:
    return Conflict(f'Operation cannot be fulfilled on {what} "{name}": {why}')
