"""Playing manifests: create what was read, each at its time, and let the cluster go on until the end asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from extender.api import duration, labels
from extender.api.errors import InvalidObject, NotFound, PumiceError
from extender.api.meta import COMMAND, KINDS, QUEUE, Json, Key, Kind, annotations_of, key_of, kind_of, parse_time, uid_of
from extender.ctl.loading import Found
from extender.ctl.progress import Progress
from extender.local import Local, NotLoaded, Outcome

INTERRUPTED = "interrupted"
_ARRIVAL = f"metadata.annotations[{labels.ARRIVES_AFTER}]"


def play(local: Local, found: Sequence[Found], until: float | str, limit: float, progress: Progress) -> Outcome:
    """Raises Refused for the first object that the cluster does not take. Ctrl-C ends it with what is known by then."""
    found = _orphaned(found)
    times = {id(each): _arrival(each) for each in found}
    last = limit if isinstance(until, str) else until
    for each in found:
        if isinstance(until, str) and times[id(each)] >= limit:
            longest = duration.format_duration(limit)
            raise each.refuse(f"{_ARRIVAL}: a run that ends by itself takes {longest} at most; use --until")
    local.start()
    local.settle()
    built_in = frozenset((kind, key_of(obj)) for kind, listed in local.objects().items() for obj in listed)
    try:
        for at, group in groupby(sorted(found, key=lambda each: times[id(each)]), key=lambda each: times[id(each)]):
            if at >= last:
                break
            if at > 0:
                local.run(at, on_cycle=progress.on_cycle)
            _create_all(local, progress.of(list(group), "creating objects:"), built_in)
        return local.run(until, on_cycle=progress.on_cycle, limit=limit)
    except KeyboardInterrupt:
        return local.outcome(INTERRUPTED)


def _arrival(each: Found) -> float:
    """Seconds after the start. Raises Refused naming the annotation."""
    if each.as_found:
        return 0.0
    text = annotations_of(each.manifest).get(labels.ARRIVES_AFTER, "0")
    try:
        at = duration.length(text, _ARRIVAL)
    except InvalidObject as error:
        raise each.refuse(error) from None
    if not 0 <= at < 1e10:
        raise each.refuse(f"{_ARRIVAL}: '{text}' is not a time after the start")
    return at


def _create_all(local: Local, found: Iterable[Found], built_in: frozenset[tuple[Kind, Key]]) -> None:
    for each in found:
        _create(local, each, built_in)
        if kind_of(each.manifest) == QUEUE:
            local.settle()  # jobs are taken by open queues only, and the queue controller opens them


def _create(local: Local, each: Found, built_in: frozenset[tuple[Kind, Key]]) -> None:
    kind, key = kind_of(each.manifest), key_of(each.manifest)
    meta = each.manifest["metadata"]
    try:
        if (kind, key) in built_in:  # what the cluster brought along is changed, as `kubectl apply` would
            change: Json = {part: each.manifest[part] for part in ("spec", "data") if part in each.manifest}
            change["metadata"] = {part: meta[part] for part in ("labels", "annotations") if part in meta}
            local.cluster.patch(kind, key, change)
        elif each.as_found:
            local.load([each.manifest])
        else:
            local.create([_aimed(local, each.manifest)])
    except NotLoaded as error:
        raise each.refuse(f"{each.subject}: {error.__cause__}") from error
    except PumiceError as error:
        raise each.refuse(f"{each.subject}: {error}") from error
    except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        raise each.refuse(f"{each.subject}: a field is not of the type that it should be: {error}") from error


def _aimed(local: Local, manifest: Json) -> Json:
    """A Command is for the object that now has the name of its target: nobody can know the uid before the run."""
    target = manifest.get("target")
    if kind_of(manifest) != COMMAND or not isinstance(target, dict):
        return manifest
    kind = next((kind for kind in KINDS if (kind.api_version, kind.name) == (target.get("apiVersion"), target.get("kind"))), None)
    namespace = (manifest["metadata"].get("namespace") or "default") if kind is not None and kind.namespaced else ""
    try:
        live = local.cluster.get(kind, Key(namespace, str(target.get("name")))) if kind is not None else None
    except NotFound:
        live = None
    return manifest if live is None else {**manifest, "target": {**target, "uid": uid_of(live)}}


def _orphaned(found: Sequence[Found]) -> list[Found]:
    """Without references to owners that are not among them: those would be taken for deleted, and what they own with them."""
    uids = {uid_of(each.manifest) for each in found}
    return [_without(each, uids) for each in found]


def _without(each: Found, uids: set[str]) -> Found:
    meta = each.manifest["metadata"]
    owners = meta.get("ownerReferences") or []
    if not isinstance(owners, list) or not all(isinstance(owner, dict) and isinstance(owner.get("uid"), str) for owner in owners):
        return each  # the API server says what is wrong with them
    kept = [owner for owner in owners if owner["uid"] in uids]
    if kept == owners:
        return each
    return replace(each, manifest={**each.manifest, "metadata": {**meta, "ownerReferences": kept}})


def beginning(found: Iterable[Found], usual: float) -> float:
    """When the virtual clock begins: at the last moment that objects written by a cluster know of, where there are any."""
    times = [when for each in found if each.as_found for when in _moments(each)]
    return max(times, default=usual)


def _moments(each: Found) -> Iterator[float]:
    """When it was created, started, heard of. Raises Refused for what is no time."""
    status = each.manifest.get("status") or {}
    conditions = status.get("conditions")
    texts = [each.manifest["metadata"].get("creationTimestamp"), status.get("startTime")]
    for condition in conditions if isinstance(conditions, list) else ():
        if isinstance(condition, dict):
            texts += [condition.get("lastTransitionTime"), condition.get("lastHeartbeatTime")]
    for text in texts:
        try:
            when = parse_time(text)
        except (InvalidObject, TypeError) as error:
            raise each.refuse(f"{each.subject}: {error}") from None
        if when is not None:
            yield when
