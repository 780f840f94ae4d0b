"""Options that name files, folders and namespaces: written once for all subcommands, and looked at before anything is done."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import click

from extender.api.errors import UsageError
from extender.api.formats import is_dns_label
from extender.api.labels import SYSTEM_NAMESPACE
from extender.ctl.reading import STDIN, yaml_of

Option = Callable[[Callable[..., None]], Callable[..., None]]
WHERE_FROM = "[default: $KUBECONFIG, ~/.kube/config]"


def kubeconfig(text: str) -> Option:
    return click.option("--kubeconfig", default="", metavar="FILE", callback=_kubeconfig, help=text)


def plugins_dir() -> Option:
    text = "Folder of plugins of your own, as in docs/plugins.md."
    return click.option("--plugins-dir", default="", metavar="DIR", callback=_folder, help=text)


def namespace(text: str) -> Option:
    return click.option("--namespace", default=SYSTEM_NAMESPACE, show_default=True, callback=_namespace, help=text)


def followed_conf(text: str) -> Option:
    return click.option("--conf", default="", metavar="FILE", callback=_lasting, help=text)


def _kubeconfig(ctx: click.Context, param: click.Parameter, paths: str) -> str:
    """Several are merged, as in $KUBECONFIG, and those that are not there left out."""
    each = [path for path in paths.split(os.pathsep) if path]
    there = [path for path in each if Path(path).expanduser().exists()]
    for path in there or each:
        _lasting(ctx, param, str(Path(path).expanduser()))
    return paths


def _lasting(ctx: click.Context, param: click.Parameter, path: str) -> str:
    """A YAML file that can be read, and again later."""
    del ctx
    if path == STDIN:
        raise UsageError(f"{param.opts[0]}: it is read again and again, which standard input (-) cannot be")
    if path:
        yaml_of(param.opts[0], path)
    return path


def _folder(ctx: click.Context, param: click.Parameter, path: str) -> str:
    del ctx
    try:
        if path:
            os.listdir(path)
    except FileNotFoundError:
        raise UsageError(f"{param.opts[0]}: {path}: there is no such folder") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{param.opts[0]}: {path}: {getattr(error, 'strerror', None) or error}") from None
    return path


def _namespace(ctx: click.Context, param: click.Parameter, name: str) -> str:
    del ctx
    if not is_dns_label(name):
        why = "at most 63 lower case letters, digits and '-', a letter or digit first and last"
        raise UsageError(f"{param.opts[0]}: '{name}' is no name of a namespace ({why})")
    return name
