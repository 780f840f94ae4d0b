"""The scheduler's configuration of a run: --conf, or a ConfigMap among the manifests, or the scheduler's own default."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from extender.api.meta import CONFIG_MAP, Json, key_of, kind_of
from extender.core.conf import DEFAULT, Conf
from extender.ctl.found import Found, Refused
from extender.ctl.loading import load
from extender.ctl.reading import yaml_of
from extender.vocabulary import BUILT_IN, Vocabulary

ENTRY = "volcano-scheduler.conf"  # the key in upstream's chart
_OPTION = "--conf"
_HAS_KIND = re.compile(r"""^\s*["']?kind["']?\s*:""", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Chosen:
    """`source` says where it comes from, "" for the default."""

    conf: Conf
    source: str = ""


def choose(given: str | None, found: Iterable[Found], words: Vocabulary = BUILT_IN) -> Chosen:
    """Raises ConfError with every mistake, UsageError for a file that cannot be read, Refused for two ConfigMaps."""
    if given is not None:
        return from_file(given, words)
    maps = [each for each in found if _entry(each.manifest) is not None]
    if len(maps) > 1:
        raise maps[1].refuse(f"a second {ENTRY}, the first is in {maps[0].where}; choose one with --conf FILE")
    if maps:
        return _from_map(maps[0], words)
    return Chosen(words.read(DEFAULT, "default configuration"))


def from_file(path: str, words: Vocabulary) -> Chosen:
    """What --conf names. Raises as `choose` does."""
    text = yaml_of(_OPTION, path)
    if not _HAS_KIND.search(text):
        return Chosen(words.read(text, path), path)
    maps = [each for each in load([path], option=_OPTION).found if _entry(each.manifest) is not None]
    if len(maps) != 1:
        raise Refused(f"{_OPTION}: {path}: {len(maps)} ConfigMaps with a key '{ENTRY}'; one is needed, or a plain scheduler.conf")
    return _from_map(maps[0], words)


def _from_map(found: Found, words: Vocabulary) -> Chosen:
    source = f"{found.where}: ConfigMap {key_of(found.manifest)}"
    return Chosen(words.read(_entry(found.manifest) or "", f"{source}: data"), source)


def _entry(manifest: Json) -> str | None:
    """The configuration that a ConfigMap holds: the key of the chart, or the only one that is named alike."""
    data = manifest.get("data")
    if kind_of(manifest) != CONFIG_MAP or not isinstance(data, dict):
        return None
    alike = [key for key in data if str(key).startswith("volcano-scheduler") and str(key).endswith(".conf")]
    key = ENTRY if ENTRY in data else alike[0] if len(alike) == 1 else None
    return data[key] if key is not None and isinstance(data[key], str) else None
