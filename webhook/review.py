"""AdmissionReview v1 on the wire: bytes in, a question; a verdict, bytes out. Pure.

Source: k8s.io/api v0.36.1 admission/v1. A refusal carries only `status.message`, as volcano ed72c7c pkg/webhooks/util."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import msgspec

from extender.api.errors import InvalidObject
from extender.api.meta import Json, Key
from extender.cluster.port import AdmissionRequest
from webhook.routes import Route
from webhook.verdict import Allow, Deny, Verdict

API_VERSION, KIND = "admission.k8s.io/v1", "AdmissionReview"


class Resource(msgspec.Struct, frozen=True):
    group: str = ""
    version: str = ""
    resource: str = ""


class Question(msgspec.Struct, frozen=True, rename="camel"):
    """`request` of a review. The objects stay raw: handlers judge them by their shapes."""

    uid: str
    resource: Resource
    operation: str
    name: str = ""
    namespace: str = ""
    object: Any = None
    old_object: Any = None
    dry_run: bool | None = False


class _Review(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    request: Question


_DECODER = msgspec.json.Decoder(_Review)
_encode = msgspec.json.Encoder().encode  # unlike orjson it writes integers of any size back as they came


def read(body: bytes) -> Question:
    """Raises InvalidObject for what is no AdmissionReview v1 that could be answered."""
    try:
        review = _DECODER.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidObject(f"not an {KIND} of {API_VERSION}: {error}") from None
    except RecursionError:
        raise InvalidObject(f"not an {KIND} of {API_VERSION}: nested too deeply") from None
    if (review.api_version, review.kind) != (API_VERSION, KIND):
        raise InvalidObject(f"not an {KIND} of {API_VERSION}: it is a '{review.kind}' of '{review.api_version}'")
    if not review.request.uid:
        raise InvalidObject(f"not an {KIND} of {API_VERSION}: request.uid is empty")
    return review.request


def request_of(question: Question, route: Route) -> AdmissionRequest:
    """What the route's handler is asked. Raises InvalidObject where the review is about another resource."""
    kind, about = route.kind, question.resource
    if (about.group, about.version, about.resource) != (kind.group, kind.version, kind.plural):
        want = f"{kind.plural} of {kind.api_version}"
        got = f"{about.resource} of {'/'.join(part for part in (about.group, about.version) if part)}"
        raise InvalidObject(f"{route.path} judges {want}, not {got}", path="request.resource")
    key = Key(question.namespace, question.name)
    return AdmissionRequest(question.operation, kind, key, question.object, question.old_object, bool(question.dry_run))


def write(uid: str, verdict: Verdict) -> bytes:
    """The answer. No patch where nothing changes."""
    response: Json = {"uid": uid, "allowed": isinstance(verdict, Allow)}
    if isinstance(verdict, Deny):
        response["status"] = {"message": verdict.message}
    elif verdict.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = b64encode(_encode(list(verdict.patch))).decode()
    return _encode({"apiVersion": API_VERSION, "kind": KIND, "response": response})
