"""scheduler.conf -> Conf. The file is Volcano's (docs/configuration.md); mistakes are errors that name path and nearest word.

The tables of plugins and actions are handed in, so that this module need not know them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from reprlib import repr as short
from typing import Any, Protocol

import yaml

from extender.api.errors import ConfError, nearest
from extender.api.meta import Kind
from extender.api.yaml_text import first_document, repeated_keys, words
from extender.core.extension_points import SWITCHES
from extender.core.plugin import Arguments, Plugin

# What the scheduler runs with where no file is given. Source: volcano ed72c7c, pkg/scheduler/util.go.
DEFAULT = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
"""


class Source(Protocol):
    """Where the plugins of one name come from: a built-in class, or a module of a --plugins-dir."""

    @property
    def hierarchical(self) -> bool:
        """It does something about enableHierarchy."""

    def parse(self, arguments: Arguments, /) -> Any:
        """Read the arguments of scheduler.conf; mistakes go to `arguments`."""

    def follows(self, args: Any, /) -> tuple[Kind, ...]:
        """Kinds of objects that it looks at beside those that are always followed."""

    def __call__(self, args: Any, hierarchy: bool) -> Plugin[Any]:
        """One for a session. `args`: what `parse` answered."""


@dataclass(frozen=True, slots=True)
class PluginEntry:
    """One plugin of one tier: where it comes from, its switches by YAML key, its parsed arguments."""

    name: str
    plugin: Source
    switches: Mapping[str, bool]
    args: Any

    def make(self) -> Plugin[Any]:
        return self.plugin(self.args, self.switches["enableHierarchy"])


@dataclass(frozen=True, slots=True)
class Action:
    """An action: `run(ssn, args)`; `parse` reads its arguments from the `configurations` of scheduler.conf.

    `places`: it gives nodes to pods that ask for something; a configuration without any such action is warned of."""

    name: str
    run: Callable[[Any, Any], None]
    parse: Callable[[Arguments], Any]
    places: bool = True


@dataclass(frozen=True, slots=True)
class ActionEntry:
    action: Action
    args: Any


@dataclass(frozen=True, slots=True)
class Shard:
    """Node sharding: `mode` hard or soft, and the names of the nodes that are this scheduler's."""

    mode: str
    nodes: frozenset[str]


@dataclass(frozen=True, slots=True)
class Conf:
    actions: tuple[ActionEntry, ...]
    tiers: tuple[tuple[PluginEntry, ...], ...]
    warnings: tuple[str, ...] = ()
    metrics: Mapping[str, str] = field(default_factory=dict)
    shard: Shard | None = None
    random_ties: bool = False

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Kinds that the plugins look at beside those that are always followed."""
        asked = (kind for tier in self.tiers for entry in tier for kind in entry.plugin.follows(entry.args))
        return tuple(dict.fromkeys(asked))

    def has_action(self, name: str) -> bool:
        return any(entry.action.name == name for entry in self.actions)

    @property
    def places(self) -> bool:
        """Some action gives nodes to pods that ask for something."""
        return any(entry.action.places for entry in self.actions)


def load(
    text: str,
    plugins: Mapping[str, Source],
    actions: Mapping[str, Action],
    *,
    later: Sequence[str] = (),
    source: str = "scheduler.conf",
    switch_default: bool | None = None,
    shard: Shard | None = None,
    random_ties: bool = False,
) -> Conf:
    """Read a configuration. `later`: names that upstream knows and we do not have yet (skipped with a warning).

    `switch_default` replaces the default of every switch that is not written. Raises ConfError with every mistake."""
    try:
        document = first_document(text)  # as upstream: what follows a `...` is not read
        twice = list(repeated_keys(text))
    except yaml.YAMLError as error:
        raise ConfError(f"{source}: not YAML: {words(error)}") from None
    if not isinstance(document, dict):
        raise ConfError(f"{source}: must be a map with 'actions' and 'tiers'")
    if "kind" in document and "actions" not in document:
        raise ConfError(f"{source}: this is a manifest (kind: {document['kind']}), and no scheduler.conf")
    reader = _Reader(source, plugins, actions, later, switch_default)
    reader.warnings += [f"{path}: is given twice; the last counts" for path in twice]
    conf = reader.read(document, shard, random_ties)
    if reader.errors:
        raise ConfError("\n".join(f"{source}: {error}" for error in reader.errors))
    return conf


class _Reader:
    def __init__(
        self,
        source: str,
        plugins: Mapping[str, Source],
        actions: Mapping[str, Action],
        later: Sequence[str],
        switch_default: bool | None,
    ) -> None:
        self.source, self.plugins, self.actions, self.later = source, plugins, actions, later
        self.defaults = SWITCHES if switch_default is None else dict.fromkeys(SWITCHES, switch_default)
        self.errors: list[str] = []
        self.warnings: list[str] = []
        self.first_at: dict[str, str] = {}  # plugin -> where it stands first

    def read(self, document: dict[str, Any], shard: Shard | None, random_ties: bool) -> Conf:
        for key in document:
            if key == "plugins":
                self.errors.append("plugins: stands within a tier: write 'tiers: [{plugins: [...]}]'")
            elif key not in _TOP:
                self.errors.append(f"{key}: unknown key{nearest(str(key), _TOP)}")
        arguments = self._action_arguments(document.get("configurations") or [])
        conf = Conf(
            actions=self._actions(document.get("actions"), arguments),
            tiers=tuple(self._tier(tier, f"tiers[{i}]") for i, tier in enumerate(self._list(document.get("tiers"), "tiers"))),
            metrics={str(k): str(v) for k, v in self._map(document.get("metrics"), "metrics").items()},
            shard=shard,
            random_ties=random_ties,
        )
        return replace(conf, warnings=(*self.warnings, *self._left_out(conf)))

    def _left_out(self, conf: Conf) -> Iterator[str]:
        """What upstream accepts without a word, and nobody can mean."""
        if not conf.places:
            yield "actions: none of them gives nodes to pods that ask for something; add 'allocate'"
        if {"proportion", "capacity"} <= self.first_at.keys():
            yield "tiers: proportion and capacity both say what a queue deserves; leave out one of them"
        if not self.first_at:
            yield "tiers: no plugins: gangs are not kept whole, queues do not share; docs/configuration.md has some to start with"

    def _list(self, value: Any, path: str) -> list[Any]:
        if value is None:
            return []
        if not isinstance(value, list):
            self.errors.append(f"{path}: must be a list, not {short(value)}")
            return []
        return value

    def _map(self, value: Any, path: str) -> dict[Any, Any]:
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.errors.append(f"{path}: must be a map, not {short(value)}")
            return {}
        return value

    def _action_arguments(self, configurations: Any) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for i, entry in enumerate(self._list(configurations, "configurations")):
            if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
                self.errors.append(f"configurations[{i}].name: must be the name of an action")
                continue
            name, path = entry["name"], f"configurations[{i}]"
            if name not in self.actions and name not in self.later:
                self.warnings.append(f"{path}.name: there is no action '{name}'{nearest(name, self.actions)}")
            if name in found:
                self.warnings.append(f"{path}.name: '{name}' stands above already; the first counts")
            found.setdefault(name, self._map(entry.get("arguments"), f"{path}.arguments"))
        return found

    def _actions(self, text: Any, arguments: dict[str, dict[str, Any]]) -> tuple[ActionEntry, ...]:
        if not isinstance(text, str):
            self.errors.append("actions: must be a string such as 'enqueue, allocate, backfill'")
            return ()
        entries, names = [], [part.strip() for part in text.split(",")]
        for name, count in Counter(names).items():
            if count > 1 and name in self.actions:
                self.warnings.append(f"actions: '{name}' is given {count} times and runs as often in each session")
        for name in names:
            if name in self.actions:
                action = self.actions[name]
                args = Arguments(f"configurations[{name}].arguments", arguments.get(name), self.errors)
                entries.append(ActionEntry(action, action.parse(args)))
                self._unread(args)
            elif name in self.later:
                self.warnings.append(f"actions: action '{name}' is not available in this version and is skipped")
            elif not name:
                self.errors.append("actions: a name is missing: they are parted by single commas, as in 'enqueue, allocate'")
            elif {*name.split()} <= {*self.actions, *self.later}:
                self.errors.append(f"actions: '{name}': part the names by commas: '{', '.join(name.split())}'")
            else:
                self.errors.append(f"actions: unknown action '{name}'{nearest(name, self.actions)}")
        return tuple(entries)

    def _tier(self, tier: Any, path: str) -> tuple[PluginEntry, ...]:
        if not isinstance(tier, dict):
            self.errors.append(f"{path}: must be a map with 'plugins'")
            return ()
        for key in tier:
            if key == "name":
                self.errors.append(
                    f"{path}.name: a tier has no name, its plugins have: write '- plugins: [{{name: {tier[key]}}}]'"
                )
            elif key != "plugins":
                self.errors.append(f"{path}.{key}: unknown key{nearest(str(key), ['plugins'])}")
        listed = self._list(tier.get("plugins"), f"{path}.plugins")
        entries = [self._plugin(entry, f"{path}.plugins[{i}]") for i, entry in enumerate(listed)]
        tier_of = [entry for entry in entries if entry is not None]
        by_name = {entry.name: entry for entry in tier_of}
        if "proportion" in by_name and "drf" in by_name and by_name["drf"].switches["enableHierarchy"]:
            self.errors.append(f"{path}: proportion and drf with enableHierarchy conflict; leave out one of them")
        return tuple(tier_of)

    def _plugin(self, entry: Any, path: str) -> PluginEntry | None:
        if isinstance(entry, str):
            self.errors.append(f"{path}: write 'name: {entry}'")
            return None
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            self.errors.append(f"{path}.name: must be the name of a plugin")
            return None
        name = entry["name"]
        if self.first_at.setdefault(name, path) != path:
            self.warnings.append(
                f"{path}.name: '{name}' stands in {self.first_at[name]} already; both take part, points count twice"
            )
        switches = dict(self.defaults)
        for key, value in entry.items():
            if key in ("name", "arguments"):
                continue
            if key not in SWITCHES and "." in str(key):
                self.errors.append(f"{path}.{key}: what a plugin takes stands in its 'arguments'")
            elif key not in SWITCHES:
                self.errors.append(f"{path}.{key}: unknown key{nearest(str(key), [*SWITCHES, 'arguments'])}")
            elif not isinstance(value, bool):
                self.errors.append(f"{path}.{key}: must be true or false, not {short(value)}")
            else:
                switches[key] = value
        if name not in self.plugins:
            if name in self.later:
                self.warnings.append(f"{path}.name: plugin '{name}' is not available in this version and is skipped")
            else:
                self.errors.append(f"{path}.name: unknown plugin '{name}'{nearest(name, self.plugins)}")
            return None
        arguments = self._map(entry.get("arguments"), f"{path}.arguments")
        plugin = self.plugins[name]
        if switches["enableHierarchy"] and not plugin.hierarchical:
            self.warnings.append(f"{path}.enableHierarchy: '{name}' has no hierarchy in this version; queues stand side by side")
        args = Arguments(f"{path}.arguments", arguments, self.errors)
        parsed = plugin.parse(args)
        self._unread(args)
        return PluginEntry(name, plugin, switches, parsed)

    def _unread(self, args: Arguments) -> None:
        for key in args.values:
            if key not in args.known:
                self.warnings.append(f"{args.path}.{key}: nobody reads this argument{nearest(str(key), args.known)}")


_TOP = ("actions", "tiers", "configurations", "metrics")
