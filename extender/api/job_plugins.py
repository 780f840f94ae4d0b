"""What admission and controllers both know of job plugins: their names, their arguments, and the task some cannot do without.

Arguments are read as Go's flag package reads a command line: --name=value, -name=value, --name value.

Reading stops at the first word that is no flag or at the first mistake; what was read before it holds.
Source: Go 1.26, flag.FlagSet.Parse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from extender.api.boolean import parse_bool

Value = str | int | bool
Flags = Mapping[str, Value]  # each with its default

MPI: Flags = {"master": "master", "worker": "worker", "port": 22}
RAY: Flags = {"head": "head", "worker": "worker", "headContainer": "head", "workerContainer": "worker", "port": 6379,
              "dashboardPort": 8265, "clientPort": 10001}  # fmt: skip
FLAGS: Mapping[str, Flags] = {
    "env": {},
    "svc": {"publish-not-ready-addresses": False, "disable-network-policy": False, "inject-hosts-env": True},
    "ssh": {"ssh-private-key": "", "ssh-public-key": "", "ssh-key-file-path": "/root/.ssh", "ssh-port": 22},
    "tensorflow": {"ps": "ps", "worker": "worker", "chief": "chief", "evaluator": "evaluator", "port": 2222},
    "mpi": MPI,
    "pytorch": {"master": "master", "worker": "worker", "port": 23456, "wait-master-enabled": False,
                "wait-master-timeout": 300, "wait-master-image": "busybox:1.36.1"},
    "ray": RAY,
    "hcclrank": {"master": "master", "worker": "worker"},
}  # fmt: skip
PLUGINS = tuple(FLAGS)
ROLES = ("master", "worker", "head", "ps", "chief", "evaluator")  # flags that name tasks


def parse_flags(words: Iterable[str], defaults: Flags) -> dict[str, Value]:
    """`defaults` names every flag; the type of the default is the type of the flag."""
    return _scan(words, defaults)[0]


def unread_words(words: Iterable[str], defaults: Flags) -> list[str]:
    """What is not read any more: the first word that is no flag, or is wrong, and all after it."""
    return _scan(words, defaults)[1]


def _scan(words: Iterable[str], defaults: Flags) -> tuple[dict[str, Value], list[str]]:
    """The flags, and what is left of the words."""
    values, listed, at = dict(defaults), list(words), 0
    while at < len(listed):
        name, given, text = listed[at].lstrip("-").partition("=")
        dashes = len(listed[at]) - len(listed[at].lstrip("-"))
        if dashes not in (1, 2) or name not in defaults:
            break
        kind, taken = type(defaults[name]), 1
        if kind is bool and not given:
            text = "true"
        elif not given:
            if at + 1 == len(listed):
                break
            text, taken = listed[at + 1], 2
        value = _read(text, kind)
        if value is None:
            break
        values[name] = value
        at += taken
    return values, listed[at:]


def _read(text: str, kind: type) -> Value | None:
    if kind is bool:
        return parse_bool(text)
    if kind is int:
        try:
            return int(text, 0)
        except ValueError:
            return None
    return text
