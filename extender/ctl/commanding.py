"""Commands among manifests: for whom they are, and what they ask. A cluster takes any, and lets those for nobody lie."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from extender.api.command import ACTIONS
from extender.api.errors import NotFound, nearest
from extender.api.meta import COMMAND, Json, Key, Kind, kind_of, uid_of
from extender.ctl.found import Found, Refused
from extender.local import Local

_KINDS = {kind.name: kind for kind in ACTIONS}


def misdirected(found: Sequence[Found]) -> Iterator[Refused]:
    """Commands whose target is of a kind that takes none, or that ask what nobody does."""
    for each in found:
        target = each.manifest.get("target")
        if kind_of(each.manifest) != COMMAND or each.as_found or not isinstance(target, dict):
            continue  # a target that is missing is told by the API server
        kind = _kind_of(target)
        if kind is None:
            what = f"{target.get('apiVersion')} {target.get('kind')}"
            known = " or ".join(f"{kind.api_version} {kind.name}" for kind in ACTIONS)
            yield each.refuse(f"{each.subject}: target: '{what}' takes no commands, only {known}")
        elif (action := each.manifest.get("action")) not in ACTIONS[kind]:
            near = nearest(str(action or ""), ACTIONS[kind])
            yield each.refuse(f"{each.subject}: action: a {kind.name} knows no action '{action or ''}'{near}")


def aimed(local: Local, each: Found, warn: Callable[[str], None]) -> Json:
    """A Command is for the object that now has the name of its target: nobody can know the uid before the run.

    Raises Refused where there is none. One that names a uid of its own is taken without, as by any cluster."""
    target = each.manifest.get("target")
    kind = _kind_of(target) if isinstance(target, dict) else None
    if not isinstance(target, dict) or kind is None or not isinstance(target.get("name"), str) or not target["name"]:
        return each.manifest
    key = Key((each.manifest["metadata"].get("namespace") or "default") if kind.namespaced else "", target["name"])
    try:
        live = local.cluster.get(kind, key)
    except NotFound:
        missing = f"{each.subject}: target.name: no {kind.name} '{key}' when it comes"
        if not target.get("uid"):
            raise each.refuse(missing) from None
        warn(f"{each.where}: {missing}: it does nothing")
        return each.manifest
    return {**each.manifest, "target": {**target, "uid": uid_of(live)}}


def _kind_of(target: Json) -> Kind | None:
    kind = _KINDS.get(str(target.get("kind")))
    return kind if kind is not None and kind.api_version == target.get("apiVersion") else None
