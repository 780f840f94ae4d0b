"""Playing manifests: create what was read, each at its time, and let the cluster go on until the end asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from math import inf

from extender.api import duration, labels
from extender.api.errors import AlreadyExists, InvalidObject, PumiceError
from extender.api.meta import COMMAND, QUEUE, Json, Key, Kind, annotations_of, key_of, kind_of, parse_time, uid_of
from extender.ctl.arranging import named_by
from extender.ctl.commanding import aimed
from extender.ctl.found import Faults, Found, Refused
from extender.ctl.progress import Progress
from extender.local import Local, NotLoaded, Outcome

INTERRUPTED = "interrupted"
_ARRIVAL = f"metadata.annotations[{labels.ARRIVES_AFTER}]"


def play(local: Local, found: Sequence[Found], until: float | str, limit: float, progress: Progress, faults: Faults) -> Outcome:
    """Raises Refused with all that is at fault, and with what the cluster does not take. Ctrl-C ends it with what is known."""
    times = _times(found, limit if isinstance(until, str) else inf, faults)
    found = _orphaned([each for each in found if each not in faults])
    last = limit if isinstance(until, str) else until
    late = [each for each in found if times[each.where] >= last]
    local.start()
    local.settle()
    maker = _Maker(local, faults, progress.warn)
    try:
        for at, group in groupby(sorted(found, key=lambda each: times[each.where]), key=lambda each: times[each.where]):
            if at >= last:
                break
            if at > 0 and not faults:
                local.run(at, on_cycle=progress.on_cycle)
            maker.create(progress.of(list(group), "creating objects:"))
        faults.tell()
        if late:
            progress.warn(_never_arrive(late, times, last))
        return local.run(until, on_cycle=progress.on_cycle, limit=limit)
    except KeyboardInterrupt:
        return local.outcome(INTERRUPTED)


def _never_arrive(late: Sequence[Found], times: Mapping[str, float], last: float) -> str:
    first = min(late, key=lambda each: times[each.where])
    due, end = duration.format_duration(times[first.where]), duration.format_duration(last)
    others = f" (and {len(late) - 1:,} more)" if len(late) > 1 else ""
    return f"{first.where}: {first.subject}{others} never arrives: it is due after {due}, the run ends after {end}"


def _times(found: Iterable[Found], limit: float, faults: Faults) -> dict[str, float]:
    """When each arrives, by its place."""
    times: dict[str, float] = {}
    for each in found:
        with faults.gathered():
            times[each.where] = _arrival(each)
            if times[each.where] >= limit:
                longest = duration.format_duration(limit)
                raise each.refuse(f"{_ARRIVAL}: a run that ends by itself takes {longest} at most; use --until")
    return times


def _arrival(each: Found) -> float:
    """Seconds after the start. Raises Refused naming the annotation."""
    if each.as_found:
        return 0.0
    text = annotations_of(each.manifest).get(labels.ARRIVES_AFTER, "0")
    try:
        at = duration.length(text, _ARRIVAL)
    except InvalidObject as error:
        raise each.refuse(error) from None
    if at < 0:
        raise each.refuse(f"{_ARRIVAL}: '{text}' is not a time after the start")
    return at


class _Maker:
    """Creates what was read. Where something is at fault nothing will run: all are tried only to tell what is wrong with them."""

    def __init__(self, local: Local, faults: Faults, warn: Callable[[str], None]) -> None:
        self._local, self._faults, self._warn = local, faults, warn
        self._built_in = frozenset((kind, key_of(obj)) for kind, listed in local.objects().items() for obj in listed)
        self._made: dict[tuple[Kind, Key], Found] = {}

    def create(self, found: Iterable[Found]) -> None:
        for each in found:
            if self._faults.names and self._faults.names & named_by(each):
                self._faults.names.add(each.name)  # nor are those tried that need this one
                continue
            with self._faults.gathered():
                self._create(each)
            if kind_of(each.manifest) == QUEUE:
                self._local.settle()  # jobs are taken by open queues only, and the queue controller opens them

    def _create(self, each: Found) -> None:
        kind, key, meta = kind_of(each.manifest), key_of(each.manifest), each.manifest["metadata"]
        try:
            if (kind, key) in self._built_in:  # what the cluster brought along is changed, as `kubectl apply` would
                change: Json = {part: each.manifest[part] for part in ("spec", "data") if part in each.manifest}
                change["metadata"] = {part: meta[part] for part in ("labels", "annotations") if part in meta}
                self._local.cluster.patch(kind, key, change)
            elif each.as_found:
                self._local.load([each.manifest])
            else:
                self._local.create([aimed(self._local, each, self._warn) if kind == COMMAND else each.manifest])
        except Refused:
            raise
        except NotLoaded as error:
            raise each.refuse(f"{each.subject}: {error.__cause__}{self._first(each, error.__cause__)}") from error
        except PumiceError as error:
            raise each.refuse(f"{each.subject}: {error}") from error
        except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
            raise each.refuse(f"{each.subject}: a field is not of the type that it should be: {error}") from error
        self._made[kind, _placed(kind, key)] = each

    def _first(self, each: Found, cause: BaseException | None) -> str:
        """Where the first of two of one name is written."""
        kind = kind_of(each.manifest)
        first = self._made.get((kind, _placed(kind, key_of(each.manifest)))) if isinstance(cause, AlreadyExists) else None
        return f": it is in {first.where} too" if first is not None else ""


def _placed(kind: Kind, key: Key) -> Key:
    return Key(key.namespace or "default", key.name) if kind.namespaced else key


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


def beginning(found: Iterable[Found], usual: float, faults: Faults) -> float:
    """When the virtual clock begins: at the last moment that objects written by a cluster know of, where there are any."""
    times: list[float] = []
    for each in (each for each in found if each.as_found):
        with faults.gathered():
            times += _moments(each)
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
