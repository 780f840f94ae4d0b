"""The one error tree. Every message says what is wrong, where, and what to do next.

* PumiceError
  x ClusterError     the API server said no; `status` is the HTTP status, `reason` its machine word
    + NotFound (404)  + Conflict (409, read again and retry)  + AlreadyExists (409)  + Gone (410, list again)
    + Invalid (422)   + Denied (403, admission refused)        + TooManyRequests (429)  + Unavailable (503, back off)
    + BadRequest (400)
  x ConfError        a configuration upstream refuses too; names the path and the nearest valid word
  x PluginError      a plugin or action of a --plugins-dir failed; names its file and line
  x InvalidObject    an object we cannot read; carries its key and field path
  x UsageError       what a person typed cannot be done; exit status 2
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


class PumiceError(Exception):
    """Whatever Pumice raises on purpose."""


class ClusterError(PumiceError):
    """The API server refused or failed. `retry_after`: seconds that it asks to wait, where it does."""

    status = 500
    reason = "InternalError"
    retry_after: float | None = None


class BadRequest(ClusterError):
    """The request itself cannot be read: a selector, a kind that does not fit."""

    status, reason = 400, "BadRequest"


class NotFound(ClusterError):
    status, reason = 404, "NotFound"


class Conflict(ClusterError):
    status, reason = 409, "Conflict"


class AlreadyExists(Conflict):
    reason = "AlreadyExists"


class Gone(ClusterError):
    status, reason = 410, "Expired"


class Denied(ClusterError):
    """Admission (or a built-in policy) refused the request."""

    status, reason = 403, "Forbidden"


class TooManyRequests(ClusterError):
    status, reason = 429, "TooManyRequests"


class Unavailable(ClusterError):
    status, reason = 503, "ServiceUnavailable"


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with an object: `path` is the field (`spec.tasks[1].name`), `message` what is wrong with it."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class Invalid(ClusterError):
    """The object breaks its schema; `faults` names every field."""

    status, reason = 422, "Invalid"

    def __init__(self, message: str, faults: Iterable[Fault] = ()) -> None:
        super().__init__(message)
        self.faults = tuple(faults)


class ConfError(PumiceError):
    """The scheduler's configuration cannot be used."""


class PluginError(PumiceError):
    """A plugin or action that is not ours failed."""


class InvalidObject(PumiceError):
    """An object we cannot read. `path` is the field path within the object, `subject` names the object."""

    def __init__(self, message: str, *, path: str = "", subject: str = "") -> None:
        super().__init__(": ".join(part for part in (subject, path, message) if part))
        self.path = path
        self.subject = subject


class UsageError(PumiceError):
    """The command line asks for what cannot be done."""


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'allocate'?`, or the list of known words where none is near."""
    names = sorted(known)
    match = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    if match:
        return f"; did you mean '{match[0]}'?"
    return f"; known: {', '.join(names)}" if names else ""
