"""pumice: the command for people. One subcommand a module; this one only gathers them and turns errors into exit statuses.

Exit status: 0 done, 1 error, 2 usage; `pumice run` adds 3 (something must wait) and 4 (something can never fit)."""

from __future__ import annotations

import os
import sys

import click

from extender.api.errors import PumiceError, UsageError
from extender.ctl.bench import bench
from extender.ctl.run import run
from extender.ctl.score import score


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pumice", message="pumice %(version)s")
def pumice() -> None:
    """A batch scheduler for Kubernetes that speaks Volcano's language."""


for command in (run, score, bench):
    pumice.add_command(command)


def main() -> None:
    """Entry point of the console script."""
    try:
        pumice.main(standalone_mode=False)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.Abort:
        sys.exit(130)
    except BrokenPipeError:  # `pumice ... | head`: nobody reads on, and nothing may be flushed any more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except UsageError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    except PumiceError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)
