"""What admission and controllers both know of job plugins: their names, their arguments, and the task some cannot do without.

Arguments are read as Go's flag package reads a command line: --name=value, -name=value, --name value.

Reading stops at the first word that is no flag or at the first mistake; what was read before it holds.
Source: Go 1.26, flag.FlagSet.Parse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from extender.api.boolean import parse_bool

Value = str | int | bool
Flags = Mapping[str, Value]  # each with its default

PLUGINS = ("env", "svc", "ssh", "tensorflow", "mpi", "pytorch", "ray", "hcclrank")
MPI: Flags = {"master": "master", "worker": "worker", "port": 22}
RAY: Flags = {"head": "head", "worker": "worker", "headContainer": "head", "workerContainer": "worker", "port": 6379,
              "dashboardPort": 8265, "clientPort": 10001}  # fmt: skip


def parse_flags(words: Iterable[str], defaults: Flags) -> dict[str, Value]:
    """`defaults` names every flag; the type of the default is the type of the flag."""
    values, rest = dict(defaults), list(words)
    while rest:
        word = rest.pop(0)
        name, given, text = word.lstrip("-").partition("=")
        dashes = len(word) - len(word.lstrip("-"))
        if dashes not in (1, 2) or name not in defaults:
            break
        kind = type(defaults[name])
        if kind is bool and not given:
            values[name] = True
            continue
        if not given:
            if not rest:
                break
            text = rest.pop(0)
        value = _read(text, kind)
        if value is None:
            break
        values[name] = value
    return values


def _read(text: str, kind: type) -> Value | None:
    if kind is bool:
        return parse_bool(text)
    if kind is int:
        try:
            return int(text, 0)
        except ValueError:
            return None
    return text
