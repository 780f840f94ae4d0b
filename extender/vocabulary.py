"""What the names in scheduler.conf stand for: the plugins and actions that are built in, and those of a --plugins-dir."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from extender.actions import ACTIONS
from extender.actions import LATER as LATER_ACTIONS
from extender.core.conf import Action, Conf, Source, load
from extender.plugin_folder import load_folder
from extender.plugins import LATER as LATER_PLUGINS
from extender.plugins import PLUGINS


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """`later`: names that upstream knows and this version does not have yet; they are skipped with a warning."""

    plugins: Mapping[str, Source]
    actions: Mapping[str, Action]
    later: tuple[str, ...]

    def read(self, text: str, source: str) -> Conf:
        """A configuration in these words. Raises ConfError with every mistake."""
        return load(text, self.plugins, self.actions, later=self.later, source=source)


BUILT_IN = Vocabulary(PLUGINS, ACTIONS, (*LATER_ACTIONS, *LATER_PLUGINS))


def vocabulary(plugins_dir: str = "") -> Vocabulary:
    """With the modules of the folder, if one is given. Raises ConfError with every mistake."""
    if not plugins_dir:
        return BUILT_IN
    found = load_folder(plugins_dir, taken=(*PLUGINS, *ACTIONS))
    later = tuple(name for name in BUILT_IN.later if name not in found.plugins and name not in found.actions)
    return Vocabulary({**PLUGINS, **found.plugins}, {**ACTIONS, **found.actions}, later)
