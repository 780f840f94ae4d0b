"""Plugins made on the spot, and a small cluster to ask them about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import yaml

from extender.actions import ACTIONS
from extender.api import meta
from extender.api.meta import Json
from extender.api.operations import Bind
from extender.core import conf
from extender.core.conf import Source
from extender.core.mirror import Mirror
from extender.core.plugin import NoArgs, Plugin
from extender.core.scheduling import schedule
from extender.core.session import Session
from extender.core.snapshot import Snapshot
from extender.plugins import PLUGINS
from extender.testing.builders import node, podgroup, queue, task

Tiers = list[list[type[Plugin[Any]] | Json]]
NOW = 1_800_000_000.0


def fake(name: str, **hooks: Callable[..., Any]) -> type[Plugin[NoArgs]]:
    """A plugin with these hooks, as functions of what comes after `ssn`."""
    methods = {hook: _method(answer) for hook, answer in hooks.items()}
    return type(name, (Plugin,), {"name": name, **methods})


def _method(answer: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, ssn, *about: answer(*about)  # noqa: ARG005


def off(plugin: type[Plugin[NoArgs]], switch: str) -> Json:
    """The plugin with one switch off."""
    return {"plugin": plugin, switch: False}


def on(plugin: type[Plugin[NoArgs]], switch: str) -> Json:
    return {"plugin": plugin, switch: True}


OBJECTS: tuple[Json, ...] = (
    node("n0").cpu(8), node("n1").cpu(8), node("n2").cpu(8), queue("default").created(1), queue("other").created(2),
    podgroup("g").members(2).created(1).phase("Inqueue"), task("g-w-0", "g").cpu(1), task("g-w-1", "g").cpu(1),
    podgroup("h").members(1).created(2).phase("Inqueue"), task("h-w-0", "h").cpu(1),
)  # fmt: skip


def conf_of(tiers: Tiers, actions: str = "allocate") -> conf.Conf:
    """Each tier is a list of plugins, or of names of built-in ones, or of entries with a `plugin` and switches."""
    known: dict[str, Source] = dict(PLUGINS)
    listed = []
    for tier in tiers:
        entries = []
        for each in tier:
            entry = dict(each) if isinstance(each, Mapping) else {"plugin": each}
            plugin = entry.pop("plugin")
            known[plugin.name] = plugin
            entries.append({"name": plugin.name, **entry})
        listed.append({"plugins": entries})
    return conf.load(yaml.safe_dump({"actions": actions, "tiers": listed}), known, ACTIONS)


def snapshot(objects: tuple[Json, ...] = OBJECTS) -> Snapshot:
    mirror = Mirror()
    for obj in objects:
        mirror.apply(meta.kind_of(obj), "ADDED", obj)
    assert not mirror.unreadable, mirror.unreadable
    return Snapshot.build(mirror)


def asked(tiers: Tiers, objects: tuple[Json, ...] = OBJECTS) -> Session:
    """A session in which nothing has happened yet."""
    return Session(snapshot(objects), conf_of(tiers), NOW, np.random.default_rng(0))


def placed(tiers: Tiers, objects: tuple[Json, ...] = OBJECTS, actions: str = "allocate") -> dict[str, str]:
    """Pod -> node, in the order of binding, after a whole session."""
    result = schedule(snapshot(objects), conf_of(tiers, actions), NOW)
    return {operation.pod.name: operation.node for operation in result.operations if isinstance(operation, Bind)}
