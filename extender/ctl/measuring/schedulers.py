"""Which program decides: ours, kube-scheduler with what it needs filled in, or any command line as it stands.

In a command {kubeconfig} and {name} are replaced by the path of the kubeconfig and the pods' spec.schedulerName."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

import yaml

from extender.api.errors import UsageError
from extender.cluster import manifests

OURS = "pumice"
KUBE = "kube-scheduler"
EXTENDER = "extender"
NAME = "pumice-bench"  # schedulerName of the pods: nobody else's, so that a scheduler that runs already leaves them alone
_DEFAULT = "default-scheduler"  # the only profile that kube-scheduler has without a configuration
GANGS = "gang-scheduler"  # the profile for gangs of the configuration that we ship
_RATE = 5000  # requests a second that kube-scheduler may make: no limit
_US = (sys.executable, "-c", "from extender.cli import main; main()")
_OUR_FLAGS = ("--kubeconfig={kubeconfig}", "--scheduler-name={name}", "--leader-elect=false")
_KUBE_FLAGS = ("--kubeconfig={kubeconfig}", "--leader-elect=false", "--secure-port=0", f"--kube-api-qps={_RATE}",
               f"--kube-api-burst={_RATE}")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Scheduler:
    """`name`: what reports call it; `scheduler_name`: the pods it takes; `commands`: its processes, in the order of their start.

    `ready`: a page of the first one that answers with 200 when the others may start."""

    name: str
    scheduler_name: str
    commands: tuple[tuple[str, ...], ...]
    ready: str = ""


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
    return Scheduler(program, name, (tuple(_filled(each, kubeconfig, name) for each in _whole(command, program)),))


def extended(kube_scheduler: str, kubeconfig: str, port: int, folder: Path, *, plain: bool = False) -> Scheduler:
    """kube-scheduler by the configuration that we ship, with our extender at `port` of this machine; gangs by its profile for
    them."""
    configuration = yaml.safe_load((manifests.folder() / "kube-scheduler" / "configuration.yaml").read_text())
    configuration["leaderElection"] = {"leaderElect": False}
    configuration["clientConnection"] = {"kubeconfig": kubeconfig, "qps": _RATE, "burst": _RATE}
    configuration["extenders"][0]["urlPrefix"] = f"http://127.0.0.1:{port}/extender/v1"
    file = folder / "kube-scheduler.yaml"
    file.write_text(yaml.safe_dump(configuration))
    ours = (*_US, f"--kubeconfig={kubeconfig}", "--leader-elect=false", "--extender-only", f"--extender-address=127.0.0.1:{port}")
    commands = (ours, (kube_scheduler, f"--config={file}", "--secure-port=0"))
    return Scheduler(EXTENDER, _DEFAULT if plain else GANGS, commands, f"http://127.0.0.1:{port}/readyz")


def _whole(command: Sequence[str], program: str) -> Sequence[str]:
    """With flags where it is but the name of a program that we know."""
    if len(command) > 1:
        return command
    if program == OURS:
        return (*_US, *_OUR_FLAGS)
    return (command[0], *_KUBE_FLAGS) if program == KUBE else command


def _filled(word: str, kubeconfig: str, name: str) -> str:
    return word.replace("{kubeconfig}", kubeconfig).replace("{name}", name)
