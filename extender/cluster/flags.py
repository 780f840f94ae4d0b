"""Command lines as Go's pflag reads them, declared as frozen dataclasses: a field is a flag, its default is written once.

    @dataclass(frozen=True, slots=True)
    class Options:
        schedule_period: float = flag(1.0, "pause between two sessions", kind=DURATION)
        client: ClientOptions = field(default=CLIENT, metadata=group("API server"))

    given = parse(Options(), argv, environ, program)      # given.options.schedule_period, given.warnings

`--flag=value` and `--flag value`, switches with and without a value, `_` for `-`; a flag wins over its variable of the
environment, which wins over the default. A flag that nobody knows is an error that names the nearest one."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NoReturn, TypeVar

from extender.api.boolean import parse_bool
from extender.api.duration import format_duration, seconds
from extender.api.errors import InvalidObject, PumiceError, UsageError, nearest
from extender.cluster.version import version_text

T = TypeVar("T")  # a dataclass of flags

PREFIX = "PUMICE_"  # of the variables: --schedule-period is PUMICE_SCHEDULE_PERIOD

# What klog knows and a Python logger has no use for; the value says whether it is a switch.
KLOG_LEFTOVERS: Mapping[str, bool] = {
    "add-dir-header": True, "alsologtostderr": True, "log-backtrace-at": False, "log-dir": False, "log-file": False,
    "log-file-max-size": False, "log-flush-frequency": False, "logtostderr": True, "one-output": True, "skip-headers": True,
    "skip-log-headers": True, "stderrthreshold": False, "vmodule": False,
}  # fmt: skip


class Asked(PumiceError):
    """--help or --version: the text is the answer, and the end."""


@dataclass(frozen=True, slots=True)
class Kind:
    """How values of a flag are read and shown. `many`: may be given again, and then adds to what was given before."""

    word: str
    read: Callable[[str], Any]
    show: Callable[[Any], str]
    many: bool = False


def _boolean(text: str) -> bool:
    value = parse_bool(text)
    if value is None:
        raise ValueError("must be true or false")
    return value


def _integer(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise ValueError("must be a whole number") from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("must be a number") from None


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for part in text.split(",") if (word := part.strip()))


def _switches(text: str) -> tuple[tuple[str, bool], ...]:
    """`A=true,B=false`."""
    pairs = []
    for word in _words(text):
        name, equals, value = word.partition("=")
        if not equals:
            raise ValueError(f"'{word}' must be name=true or name=false")
        pairs.append((name.strip(), _boolean(value.strip())))
    return tuple(pairs)


STRING = Kind("string", str, str)
BOOL = Kind("bool", _boolean, lambda value: str(value).lower())
INT = Kind("int", _integer, str)
FLOAT = Kind("float", _number, "{:g}".format)
DURATION = Kind("duration", seconds, format_duration)
ARRAY = Kind("string", lambda text: (text,), ",".join, many=True)  # one value each time
LIST = Kind("strings", _words, ",".join, many=True)  # values parted by commas
SWITCHES = Kind("name=bool", _switches, lambda pairs: ",".join(f"{name}={str(on).lower()}" for name, on in pairs), many=True)

_KIND_OF: Mapping[type, Kind] = {str: STRING, bool: BOOL, int: INT, float: FLOAT, tuple: ARRAY}


@dataclass(frozen=True, slots=True)
class Flag:
    """`unused`: why a flag of the reference does nothing here; it is accepted all the same."""

    help: str
    kind: Kind
    name: str = ""  # of the field where empty
    choices: tuple[str, ...] = ()
    unused: str = ""


def flag(default: Any, help: str, *, kind: Kind | None = None, name: str = "", choices: Sequence[str] = (),
         unused: str = "") -> Any:  # fmt: skip
    """A field that is a flag."""
    made = Flag(help, kind or _KIND_OF[type(default)], name, tuple(choices), unused)
    return field(default=default, metadata={"flag": made})


def group(title: str) -> Mapping[str, str]:
    """Metadata of a field that holds a group of flags; its default has the defaults of this program."""
    return {"group": title}


@dataclass(frozen=True, slots=True)
class Given(Generic[T]):
    """What a command line comes to."""

    options: T
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """One flag of a program: where it stands and what it is worth if nobody says anything."""

    title: str
    group: str  # field of the group, "" for the program's own
    attribute: str
    name: str
    flag: Flag
    default: Any

    @property
    def variable(self) -> str:
        return PREFIX + self.name.upper().replace("-", "_")


def rows(defaults: Any, title: str = "", group: str = "") -> Iterator[Row]:
    """Every flag of a dataclass and its groups, in the order in which they are written."""
    for each in dataclasses.fields(defaults):
        value = getattr(defaults, each.name)
        if "group" in each.metadata:
            yield from rows(value, each.metadata["group"], each.name)
        else:
            made: Flag = each.metadata["flag"]
            yield Row(title, group, each.name, made.name or each.name.replace("_", "-"), made, value)


def parse(defaults: T, argv: Sequence[str], environ: Mapping[str, str], program: str, about: str = "") -> Given[T]:
    """Raises UsageError for what cannot be read, Asked for --help and --version."""
    table = {row.name: row for row in rows(defaults)}
    words, leftovers = _normal(argv, table)
    if "--help" in words:
        raise Asked(help_text(defaults, program, about))
    if "--version" in words:
        raise Asked(version_text(program))
    found = vars(_parser(table.values(), program, about).parse_args(words))
    values: dict[str, dict[str, Any]] = {}
    unused = [*leftovers]
    for row in table.values():
        texts, source = found[row.name], f"--{row.name}"
        if texts is None and row.variable in environ:
            texts, source = [environ[row.variable]], row.variable
            texts = texts if row.flag.kind is not ARRAY else list(_words(texts[0]))
        if texts is not None:
            values.setdefault(row.group, {})[row.attribute] = _read(row, texts, source)
            unused += [f"--{row.name}"] if row.flag.unused else []
    warnings = (f"without effect here: {', '.join(dict.fromkeys(unused))}",) if unused else ()
    own = values.pop("", {})
    groups = {name: dataclasses.replace(getattr(defaults, name), **changed) for name, changed in values.items()}
    whole: Any = defaults
    return Given(dataclasses.replace(whole, **own, **groups), warnings)


def parse_or_exit(defaults: T, argv: Sequence[str], environ: Mapping[str, str], program: str, about: str = "") -> Given[T]:
    """The same for a program: --help and --version are answered with status 0, mistakes with status 2."""
    try:
        return parse(defaults, argv, environ, program, about)
    except Asked as answer:
        # A reader that has gone (`--help | head`) is no error.
        with contextlib.suppress(BrokenPipeError):
            print(answer)
        sys.exit(0)
    except UsageError as error:
        refuse(error, program)


def refuse(error: PumiceError | OSError, program: str) -> NoReturn:
    """What keeps a program from starting: status 2 where its command line is at fault, else 1."""
    for line in str(error).splitlines():
        print(f"error: {line}", file=sys.stderr)
    if isinstance(error, UsageError):
        print(f"See '{program} --help'.", file=sys.stderr)
    sys.exit(2 if isinstance(error, UsageError) else 1)


def help_text(defaults: Any, program: str, about: str = "") -> str:
    return _parser(list(rows(defaults)), program, about).format_help().rstrip()


def _read(row: Row, texts: Sequence[str], source: str) -> Any:
    value: Any = ()
    for text in texts:
        try:
            one = row.flag.kind.read(text)
        except (ValueError, InvalidObject) as error:
            raise UsageError(f"invalid value '{text}' for {source}: {error}") from None
        if row.flag.choices and one not in row.flag.choices:
            raise UsageError(f"invalid value '{text}' for {source}{nearest(text, row.flag.choices)}")
        value = (*value, *one) if row.flag.kind.many else one
    return value


def _normal(argv: Sequence[str], table: Mapping[str, Row]) -> tuple[list[str], list[str]]:
    """Every flag as `--name=value`; and the leftovers of klog, which are taken out."""
    words: list[str] = []
    leftovers: list[str] = []
    rest = iter(argv)
    for word in rest:
        if word in ("2>&1", ""):  # charts pass a redirection on that no shell has seen
            continue
        name, equals, value = _split(word)
        if name in ("help", "version", "h"):
            words += [f"--{'help' if name == 'h' else name}"] if not equals or _read_switch(name, value) else []
            continue
        switch = KLOG_LEFTOVERS.get(name)
        if name in table:
            switch = table[name].flag.kind is BOOL
        if switch is None:
            raise UsageError(f"unknown flag: --{name}{nearest(name, [*table, 'help', 'version'])}")
        if not equals:
            value = "true" if switch else next(rest, "")
            if not switch and value == "":
                raise UsageError(f"flag needs an argument: --{name}")
        if name in table:
            words.append(f"--{name}={value}")
        else:
            leftovers.append(f"--{name}")
    return words, leftovers


def _split(word: str) -> tuple[str, bool, str]:
    """`--name=value`, `-v=3`, `-v3` -> name, whether there is a value, the value."""
    if word.startswith("--") and len(word) > 2:
        name, equals, value = word[2:].partition("=")
        return name.replace("_", "-"), bool(equals), value
    if word.startswith("-") and len(word) > 1 and word != "--":
        value = word[2:].removeprefix("=")
        return word[1], bool(word[2:]), value
    raise UsageError(f"unexpected argument '{word}': there are only flags")


def _read_switch(name: str, value: str) -> bool:
    try:
        return _boolean(value)
    except ValueError as error:
        raise UsageError(f"invalid value '{value}' for --{name}: {error}") from None


def _parser(table: Iterable[Row], program: str, about: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=program, description=about, add_help=False, allow_abbrev=False,
                                     usage="%(prog)s [flags]", formatter_class=_Wide,
                                     epilog=f"Each flag has a variable of the environment: --some-flag is {PREFIX}SOME_FLAG. "
                                     "A flag wins over its variable. Flags of klog are accepted and do nothing.")  # fmt: skip
    groups: dict[str, argparse._ArgumentGroup] = {}
    for row in table:
        title = row.title or "flags"
        if title not in groups:
            groups[title] = parser.add_argument_group(title)
        groups[title].add_argument(f"--{row.name}", dest=row.name, action="append", metavar=row.flag.kind.word, help=_help(row))
    other = parser.add_argument_group("about the program")
    other.add_argument("--help", action="store_true", dest="help", help="print this and exit")
    other.add_argument("--version", action="store_true", dest="version", help="print version, commit and Python version and exit")
    return parser


def _help(row: Row) -> str:
    shown = row.flag.kind.show(row.default)
    words = [row.flag.help]
    if row.flag.choices:
        words.append(f"({', '.join(row.flag.choices)})")
    if shown:
        words.append(f"(default {shown})")
    if row.flag.unused:
        words.append(f"[no effect here: {row.flag.unused}]")
    return " ".join(words).replace("%", "%%")


class _Wide(argparse.HelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=34, width=120)
