"""Which program decides: ours, kube-scheduler with what it needs filled in, or any command line as it stands.

In a command {kubeconfig} and {name} are replaced by the path of the kubeconfig and the pods' spec.schedulerName."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from extender.api.errors import UsageError

OURS = "pumice"
KUBE = "kube-scheduler"
NAME = "pumice-bench"  # schedulerName of the pods: nobody else's, so that a scheduler that runs already leaves them alone
_DEFAULT = "default-scheduler"  # the only profile that kube-scheduler has without a configuration
_OUR_FLAGS = ("--kubeconfig={kubeconfig}", "--scheduler-name={name}", "--leader-elect=false")
_KUBE_FLAGS = ("--kubeconfig={kubeconfig}", "--leader-elect=false", "--secure-port=0", "--kube-api-qps=5000",
               "--kube-api-burst=5000")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Scheduler:
    """`name`: what reports call it; `scheduler_name`: the pods it takes."""

    name: str
    scheduler_name: str
    command: tuple[str, ...]


def chosen(words: str, scheduler_name: str, kubeconfig: str) -> Scheduler:
    """By what --scheduler says; `scheduler_name` may be empty. Raises UsageError."""
    try:
        command = shlex.split(words)
    except ValueError as error:
        raise UsageError(f"--scheduler: {error}: {words}") from error
    if not command:
        raise UsageError("--scheduler: it must be 'pumice', a path of kube-scheduler, or a command")
    program = PurePath(command[0]).name
    name = scheduler_name or (_DEFAULT if program == KUBE else NAME)
    return Scheduler(program, name, tuple(_filled(each, kubeconfig, name) for each in _whole(command, program)))


def _whole(command: Sequence[str], program: str) -> Sequence[str]:
    """With flags where it is but the name of a program that we know."""
    if len(command) > 1:
        return command
    if program == OURS:
        return (sys.executable, "-c", "from extender.cli import main; main()", *_OUR_FLAGS)
    return (command[0], *_KUBE_FLAGS) if program == KUBE else command


def _filled(word: str, kubeconfig: str, name: str) -> str:
    return word.replace("{kubeconfig}", kubeconfig).replace("{name}", name)
