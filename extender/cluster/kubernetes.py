"""The adapter to a real API server. Bodies are bytes and JSON; the typed models of the `kubernetes` client are never used.

What is tried again, and what never: a request that cannot have reached the server, or that the server turned away unread
(429), always; one of which nobody knows what became of it only where doing it twice is the same as once; a Conflict never.
No attempt is made beyond PATIENCE seconds of waiting: whoever decided must decide anew on what is then true."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote, urlencode

import orjson

from extender.api.errors import BadRequest, ClusterError, Conflict, Gone, Invalid, TooManyRequests
from extender.api.meta import POD, Json, Key, Kind, Time, key_of, uid_of
from extender.cluster.answers import error_of
from extender.cluster.clock import Clock, SystemClock
from extender.cluster.connection import READ_SECONDS, USER_AGENT, Connection, Lost, NotSent, loader
from extender.cluster.metadata import is_custom
from extender.cluster.port import Listing, WatchEvent
from extender.cluster.refusals import recreated
from extender.cluster.remote_watch import RemoteWatch, without_managed_fields
from extender.cluster.retry import Backoff, TokenBucket

PAGE = 500  # objects of a list asked for at once
PATIENCE = 10.0  # seconds of waiting between the attempts of one request, all in all
_STATUS_ATTEMPTS = 5  # at a status that others write at the same time
_BACKOFF = Backoff(first=0.1, longest=5.0)
_AGAIN = frozenset({500, 502, 503, 504})  # the server is in trouble; what became of the request is unknown
_SHOWN = 200  # bytes of an answer that is none
_JSON, _MERGE, _STEPS = "application/json", "application/merge-patch+json", "application/json-patch+json"

Errors = list[ClusterError]


class _Call(NamedTuple):
    """One request. `repeatable`: twice is the same as once. `patient`: a 429 is about our speed, not about the object."""

    method: str
    path: str
    body: bytes | None = None
    content_type: str = _JSON
    repeatable: bool = True
    patient: bool = True


class KubernetesCluster:
    """Thread-safe. `rate` and `burst`: requests a second, watches not counted (--kube-api-qps, --kube-api-burst); 0: no limit.

    `patience`: seconds of waiting between the attempts of one request; 0: each is tried once."""

    def __init__(self, connection: Connection, *, rate: float = 0.0, burst: int = 1, clock: Clock | None = None,
                 page: int = PAGE, patience: float = PATIENCE) -> None:  # fmt: skip
        self._connection, self._page, self._patience = connection, page, patience
        self._clock = clock or SystemClock()
        self._bucket = TokenBucket(rate, burst, self._clock)
        self._rng = random.Random()
        self._unreachable: Time | None = None  # since when

    def close(self) -> None:
        self._connection.close()

    # --- reading ------------------------------------------------------------------------------------------------------

    def get(self, kind: Kind, key: Key) -> Json:
        return self._ask(_Call("GET", _object(kind, key)))

    def list(self, kind: Kind, namespace: str = "", label_selector: str = "", field_selector: str = "") -> Listing:
        chosen = _selected(label_selector, field_selector)
        try:
            return self._list(kind, namespace, {**chosen, "limit": str(self._page)})
        except Gone:  # the version of the first page is too old by now; all of it at once cannot age
            return self._list(kind, namespace, chosen)

    def watch(self, kind: Kind, resource_version: str, namespace: str = "", label_selector: str = "",
              field_selector: str = "") -> RemoteWatch:  # fmt: skip
        """As of the version "" or "0" it begins with an ADDED for every object that is there."""
        first: list[WatchEvent] = []
        if resource_version in ("", "0"):
            objects, resource_version = self.list(kind, namespace, label_selector, field_selector)
            first = [WatchEvent("ADDED", obj) for obj in objects]
        elif not resource_version.isdigit():
            raise BadRequest(f'Invalid value: "{resource_version}": resource version is not a number')
        chosen = {**_selected(label_selector, field_selector), "watch": "1", "allowWatchBookmarks": "true"}
        collection = _collection(kind, namespace)

        def path_from(version: str, seconds: int) -> str:
            return _with(collection, {**chosen, "resourceVersion": version, "timeoutSeconds": str(seconds)})

        return RemoteWatch(self._connection, kind.plural, resource_version, path_from, first)

    # --- writing ------------------------------------------------------------------------------------------------------

    def create(self, kind: Kind, obj: Json, *, dry_run: bool = False) -> Json:
        namespace = (obj.get("metadata") or {}).get("namespace") or ("default" if kind.namespaced else "")
        path = _with(_collection(kind, namespace), _dry(dry_run))
        return self._ask(_Call("POST", path, _encoded(_named(kind, obj)), repeatable=dry_run))

    def update(self, kind: Kind, obj: Json, *, subresource: str = "", dry_run: bool = False) -> Json:
        path = _with(_object(kind, key_of(obj), subresource), _dry(dry_run))
        return self._ask(_Call("PUT", path, _encoded(_named(kind, obj))))

    def patch(self, kind: Kind, key: Key, patch: Json, *, subresource: str = "", dry_run: bool = False) -> Json:
        meta = patch.get("metadata") or {}
        if subresource and is_custom(kind) and meta.get("uid") and not meta.get("resourceVersion"):
            return self._patch_status_of(meta["uid"], kind, key, patch, subresource, dry_run)
        path = _with(_object(kind, key, subresource), _dry(dry_run))
        try:
            return self._ask(_Call("PATCH", path, _encoded(patch), _MERGE))
        except Invalid as error:  # the server takes it for a change of the uid
            if any(fault.path == "metadata.uid" for fault in error.faults):
                raise Conflict(str(error)) from error
            raise

    def json_patch(self, kind: Kind, key: Key, patch: Sequence[Json], *, subresource: str = "", dry_run: bool = False) -> Json:
        path = _with(_object(kind, key, subresource), _dry(dry_run))
        return self._ask(_Call("PATCH", path, orjson.dumps(patch), _STEPS, repeatable=dry_run))

    def delete(self, kind: Kind, key: Key, *, uid: str = "", propagation: str = "Background",
               grace_seconds: int | None = None, dry_run: bool = False) -> None:  # fmt: skip
        options = {**_delete_options(uid, grace_seconds), "propagationPolicy": propagation}
        if dry_run:
            options["dryRun"] = ["All"]  # with a body the server does not look at the query
        self._ask(_Call("DELETE", _object(kind, key), _encoded(options), repeatable=bool(uid) or dry_run))

    def bind(self, pod: Key, node: str, *, uid: str = "", annotations: Mapping[str, str] | None = None) -> None:
        """After an attempt of which nobody knows what became, a pod that is on this node is bound; by whom is all one."""
        meta: Json = {"namespace": pod.namespace, "name": pod.name}
        if uid:
            meta["uid"] = uid
        if annotations:
            meta["annotations"] = dict(annotations)
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = _encoded({"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target})
        doubts: Errors = []
        try:
            self._ask(_Call("POST", _object(POD, pod, "binding"), body), doubts)
        except Conflict:
            if not (doubts and self._is_on(pod, node, uid)):
                raise

    def evict(self, pod: Key, *, uid: str = "", grace_seconds: int | None = None) -> None:
        meta = {"namespace": pod.namespace, "name": pod.name}
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta,
                    "deleteOptions": _delete_options(uid, grace_seconds)}  # fmt: skip
        path = _object(POD, pod, "eviction")
        self._ask(_Call("POST", path, _encoded(eviction), repeatable=bool(uid), patient=False))

    def _patch_status_of(self, uid: str, kind: Kind, key: Key, patch: Json, subresource: str, dry_run: bool) -> Json:
        """On the status of a custom kind the server does not look at the uid, only at the version: so that must be given."""
        for left in reversed(range(_STATUS_ATTEMPTS)):
            found = self.get(kind, key)
            if uid_of(found) != uid:
                raise recreated(kind, key.name, uid, uid_of(found))
            guard = {"uid": uid, "resourceVersion": found["metadata"]["resourceVersion"]}
            try:
                return self.patch(kind, key, {**patch, "metadata": guard}, subresource=subresource, dry_run=dry_run)
            except Conflict:
                if not left:
                    raise
        raise AssertionError("unreachable")

    # --- how a request goes -------------------------------------------------------------------------------------------

    def _ask(self, call: _Call, doubts: Errors | None = None) -> Json:
        """The answer. `doubts` collects the errors after which it was unknown what had become of the request."""
        waited = 0.0
        for attempt in itertools.count():
            self._bucket.take()
            try:
                return self._attempt(call)
            except ClusterError as error:
                pause = self._pause(call, error, attempt)
                if pause is None or waited + pause > self._patience:
                    raise
                if doubts is not None and not isinstance(error, (NotSent, TooManyRequests)):
                    doubts.append(error)
            self._clock.sleep(pause)
            waited += pause
        raise AssertionError("unreachable")

    def _attempt(self, call: _Call) -> Json:
        answer = self._connection.exchange(call.method, call.path, call.body, call.content_type)
        self._unreachable = None
        if answer.status >= 300:
            raise error_of(answer.status, answer.body, answer.headers)
        decoded = _object_in(answer.body)
        return without_managed_fields(decoded) if "metadata" in decoded else decoded

    def _pause(self, call: _Call, error: ClusterError, attempt: int) -> float | None:
        """Seconds until the next attempt; None: there is none."""
        if isinstance(error, NotSent):  # in an outage nobody waits for its end anew with each request
            now = self._clock.now()
            self._unreachable = now if self._unreachable is None else self._unreachable
            again = now - self._unreachable <= self._patience
        elif isinstance(error, TooManyRequests):
            again = call.patient
        else:
            again = call.repeatable and (isinstance(error, Lost) or error.status in _AGAIN)
        return max(error.retry_after or 0.0, _BACKOFF.wait(attempt, self._rng)) if again else None

    def _list(self, kind: Kind, namespace: str, query: dict[str, str]) -> Listing:
        objects: list[Json] = []
        path, proceed = _collection(kind, namespace), query
        while True:
            page = self._ask(_Call("GET", _with(path, proceed)))
            meta = page.get("metadata") or {}
            if "resourceVersion" not in meta:
                raise Lost(f"what answers for the API server at {self._connection.host} does not know lists of {kind.plural}")
            objects += [_named(kind, without_managed_fields(obj)) for obj in page.get("items") or ()]
            if not meta.get("continue"):
                return Listing(objects, meta["resourceVersion"])
            proceed = {**query, "continue": meta["continue"]}

    def _is_on(self, pod: Key, node: str, uid: str) -> bool:
        found = self.get(POD, pod)
        return bool(found["spec"].get("nodeName") == node and (not uid or uid == uid_of(found)))


def connect(kubeconfig: str = "", context: str = "", master: str = "", *, rate: float = 0.0, burst: int = 1,
            clock: Clock | None = None, user_agent: str = USER_AGENT, patience: float = PATIENCE,
            read_seconds: float = READ_SECONDS) -> KubernetesCluster:  # fmt: skip
    """By a kubeconfig, or from within a cluster; see `connection.loader`. Raises ConfError; the server is not asked yet."""
    clock = clock or SystemClock()
    connection = Connection(loader(kubeconfig, context, master), clock, user_agent, read_seconds)
    return KubernetesCluster(connection, rate=rate, burst=burst, clock=clock, patience=patience)


# --- paths and bodies ---------------------------------------------------------------------------------------------------


def _collection(kind: Kind, namespace: str) -> str:
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    if kind.namespaced and namespace:
        root = f"{root}/namespaces/{quote(namespace, safe='')}"
    return f"{root}/{kind.plural}"


def _object(kind: Kind, key: Key, subresource: str = "") -> str:
    path = f"{_collection(kind, key.namespace)}/{quote(key.name, safe='')}"
    return f"{path}/{subresource}" if subresource else path


def _with(path: str, query: Mapping[str, str]) -> str:
    return f"{path}?{urlencode(query)}" if query else path


def _selected(label_selector: str, field_selector: str) -> dict[str, str]:
    chosen = {"labelSelector": label_selector, "fieldSelector": field_selector}
    return {name: value for name, value in chosen.items() if value}


def _dry(dry_run: bool) -> dict[str, str]:
    return {"dryRun": "All"} if dry_run else {}


def _delete_options(uid: str, grace_seconds: int | None) -> Json:
    options: Json = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if uid:
        options["preconditions"] = {"uid": uid}
    if grace_seconds is not None:
        options["gracePeriodSeconds"] = grace_seconds
    return options


def _named(kind: Kind, obj: Json) -> Json:
    """The object saying what it is, as items of a list do not and callers need not."""
    return {"apiVersion": kind.api_version, "kind": kind.name, **obj}


def _object_in(body: bytes) -> Json:
    """Raises Lost: a proxy's page with status 200 tells nothing about what became of the request."""
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        raise Lost(f"the answer is not an API server's: {body[:_SHOWN].decode('utf-8', 'replace')!r}")
    return found


def _encoded(obj: Json) -> bytes:
    return orjson.dumps(obj)
