"""pumice: the command for people. One subcommand a module; this one only gathers them and turns errors into exit statuses.

Exit status: 0 done; 1 an error, or what was read is refused; 2 the command line is wrong, or a file or folder that it names
cannot be read; 141 nobody reads the output. `pumice run` adds 3 (something must wait) and 4 (something can never fit)."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from io import TextIOWrapper
from typing import Any

import click

from extender.api.errors import PumiceError, UsageError

# where each subcommand is, under its name
COMMANDS = {name: f"extender.ctl.{name}" for name in ("run", "score", "up", "down")}
BENCHMARKS = {name: f"extender.ctl.bench_{name}" for name in ("session", "cluster", "webhook")}


class NobodyReads(Exception):
    """`pumice ... | head`: standard output has been closed."""


class _Commands(click.Group):
    """A subcommand is imported when it is wanted: what the others need takes as long to load as a small run to play."""

    def __init__(self, *args: Any, modules: Mapping[str, str], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._modules = modules

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return [*self._modules, *self.commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self._modules:
            command: click.Command = getattr(import_module(self._modules[cmd_name]), cmd_name)
            return command
        return super().get_command(ctx, cmd_name)

    def invoke(self, ctx: click.Context) -> Any:
        """click would make status 1 of a closed pipe, which is an error."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise NobodyReads from None


@click.group(cls=_Commands, modules=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pumice", message="pumice %(version)s")
def pumice() -> None:
    """A batch scheduler for Kubernetes that speaks Volcano's language."""


@pumice.group(cls=_Commands, modules=BENCHMARKS)
def bench() -> None:
    """Measure Pumice on this machine."""


def main() -> None:
    """Entry point of the console script."""
    if sys.stdout is None:  # `>&-`: an answer that nobody can get is none
        click.echo("error: standard output is closed", err=True)
        sys.exit(1)
    if isinstance(sys.stdout, TextIOWrapper):  # a locale may lack what names and messages hold
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        pumice.main(standalone_mode=False)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.Abort:
        sys.exit(130)
    except NobodyReads:
        _write_no_more()
        sys.exit(141)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except OSError as error:  # files are told as UsageError; what is left is standard output, on a disk that is full
        _write_no_more()
        click.echo(f"error: {error.strerror or error}", err=True)
        sys.exit(1)
    except UsageError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    except PumiceError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)


def _write_no_more() -> None:
    """What is still to be written goes nowhere, or the interpreter would complain of it at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
