"""docs/flags.md, made from the declarations of the flags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from extender.cluster.flags import KLOG_LEFTOVERS, PREFIX, Row, rows


def documentation(programs: Mapping[str, Any]) -> str:
    """`programs`: by name, the defaults of their options."""
    return "\n".join(_lines(programs)) + "\n"


def _lines(programs: Mapping[str, Any]) -> Iterator[str]:
    leftovers = ", ".join(f"`--{name}`" for name in KLOG_LEFTOVERS)
    yield from (
        "# Flags of the daemons",
        "",
        "Names and defaults are Volcano's; `_` may stand for `-`, a switch may have a value or none. Each flag has a variable of",
        f"the environment, `{PREFIX}` and its name: `--schedule-period` is `{PREFIX}SCHEDULE_PERIOD`. A flag wins over it.",
        "Any flag that is not listed here is an error that names the nearest one.",
        "",
        "What is *unused* is accepted, with one warning, so that a command line for Volcano can stay as it is; so are flags of",
        f"klog: {leftovers}.",
        "",
        "This page is made from the code; `pytest tests/daemons --update` writes it anew.",
    )
    for program, defaults in programs.items():
        yield from ("", f"## {program}")
        title = None
        for row in rows(defaults):
            if row.title != title:
                title = row.title
                yield from ("", *([f"### {title[0].upper() + title[1:]}", ""] if title else []))
                yield from ("| flag | default | meaning |", "| --- | --- | --- |")
            yield _line(row)


def _line(row: Row) -> str:
    default = row.flag.kind.show(row.default)
    shown = f"`{default}`" if default else ""
    choices = f" One of {', '.join(f'`{choice}`' for choice in row.flag.choices)}." if row.flag.choices else ""
    unused = f" *Unused*: {row.flag.unused}." if row.flag.unused else ""
    return f"| `--{row.name}` | {shown} | {row.flag.help[0].upper()}{row.flag.help[1:]}.{choices}{unused} |"
