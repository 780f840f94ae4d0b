"""The folder of --plugins-dir: plugins and actions that its owner wrote. docs/plugins.md is the page for them.

Every `*.py` of it is a module whose name, without the extension, is what scheduler.conf calls it. It has a factory
`new(arguments) -> Plugin`, or an `ACTION`, or both. What is wrong with a module is told with file and line when it is loaded;
what goes wrong in it later is a PluginError, never a fault of the scheduler."""

from __future__ import annotations

import difflib
import importlib.util
import inspect
import re
import sys
import traceback
from asyncio import CancelledError
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from extender.api.errors import ConfError, PluginError
from extender.api.meta import Kind
from extender.core.conf import Action
from extender.core.plugin import Arguments, Plugin
from extender.plugin_answers import ASKED, HOOKS, checked

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_ALIKE = 0.8  # how much a method's name may look like a hook's before it is taken for a slip
_OWN = frozenset(dir(Plugin))


@dataclass(frozen=True, slots=True)
class Found:
    plugins: dict[str, UserPlugin] = field(default_factory=dict)
    actions: dict[str, Action] = field(default_factory=dict)


def load_folder(folder: str, taken: Collection[str]) -> Found:
    """All modules of the folder; those whose name begins with _ are left out. Raises ConfError with every mistake."""
    place, found, errors = Path(folder).absolute(), Found(), list[str]()  # as the frames of a traceback name files
    if not place.is_dir():
        raise ConfError(f"--plugins-dir: {folder}: there is no such folder")
    errors += [f"{file}: plugins written in Go cannot be loaded; see docs/plugins.md" for file in sorted(place.glob("*.so"))]
    for file in sorted(place.glob("*.py")):
        if not file.name.startswith("_"):
            errors += _add(found, file, taken)
    if errors:
        raise ConfError("\n".join(f"--plugins-dir: {error}" for error in errors))
    return found


def _add(found: Found, file: Path, taken: Collection[str]) -> Iterator[str]:
    """What is wrong with the module."""
    name = file.stem
    if not _NAME.fullmatch(name):
        yield f"{file}: a plugin's name has letters, digits, - _ and . only; rename the file"
        return
    if name in taken:
        yield f"{file}: '{name}' is built in; rename the file"
        return
    try:
        module = _imported(name, file)
    except PluginError as error:
        yield str(error)
        return
    new, action = getattr(module, "new", None), getattr(module, "ACTION", None)
    if new is None and action is None:
        yield f"{file}: has neither new(arguments), which makes a plugin, nor ACTION"
    if new is not None:
        if not callable(new) or not _takes(new, 1):
            yield f"{_line_of(new, file)}: new must be a function of one argument: new(arguments)"
        for made in vars(module).values():
            if isinstance(made, type) and issubclass(made, Plugin) and made.__module__ == module.__name__:
                yield from _method_faults(made, file)
        found.plugins[name] = UserPlugin(name, file, new)
    if action is not None:
        if not isinstance(action, Action) or action.name != name:
            yield f"{file}: ACTION must be an Action of extender.core.conf that is called '{name}', as the file is"
            return
        if _never_runs(action.run):
            line = _line_of(action.run, file)
            yield f"{line}: the run of ACTION must be a plain function: one with async or yield would never run"
        found.actions[name] = replace(action, run=guarded(action.run, file), parse=guarded(action.parse, file))


def _imported(name: str, file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"pumice_plugins.{name}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    guarded(spec.loader.exec_module, file)(module)
    return module


def _takes(function: Callable[..., Any], count: int) -> bool:
    """Can it be called with so many arguments by position?"""
    try:
        inspect.signature(function).bind(*range(count))
    except (TypeError, ValueError):  # no function, other parameters, or one of C that does not tell its own
        return False
    return True


# --- one plugin -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Parsed:
    """Arguments that the plugin could be made of, and what it then follows."""

    path: str
    values: dict[str, Any]
    follows: tuple[Kind, ...]


@dataclass(frozen=True, slots=True)
class UserPlugin:
    """A module's plugin, as a Source (core/conf.py): made once to see whether its arguments will do, and for each session."""

    name: str
    file: Path
    new: Callable[[Arguments], Any]

    @property
    def hierarchical(self) -> bool:
        """Only its author knows."""
        return True

    def parse(self, arguments: Arguments) -> _Parsed:
        try:
            made = guarded(self.new, self.file)(arguments)
            errors = guarded(lambda: list(_faults(made, self.file)), self.file)()
            follows = guarded(lambda: checked("follows", type(made).follows)(made.args), self.file)() if not errors else ()
        except PluginError as error:
            errors, follows = [str(error)], ()
        arguments.errors += [f"{arguments.path}: {error}" for error in errors]
        return _Parsed(arguments.path, arguments.values, follows)

    def follows(self, args: _Parsed) -> tuple[Kind, ...]:
        return args.follows

    def __call__(self, args: _Parsed, hierarchy: bool) -> Plugin[Any]:
        made = guarded(self.new, self.file)(Arguments(args.path, args.values, []))
        made.hierarchy = hierarchy
        return cast(Plugin[Any], _Guarded(made, self.name, self.file))


def _faults(made: object, file: Path) -> Iterator[str]:
    """What is wrong with what `new` has answered; of its class's methods it has been told before."""
    if not isinstance(made, Plugin):
        yield f"{file}: new(arguments) must answer a Plugin of extender.core.plugin, not {made!r}"
        return
    yield from _method_faults(made, file)


def _method_faults(plugin: Plugin[Any] | type[Plugin[Any]], file: Path) -> Iterator[str]:
    """Hooks that take something else than they are given, and names that look like hooks: of a class, or of one that is made."""
    owner = plugin if isinstance(plugin, type) else type(plugin)
    for name in dir(plugin):
        method = getattr(plugin, name)
        if name in ASKED and name != "follows":
            unbound = plugin is owner and inspect.isfunction(inspect.getattr_static(plugin, name))
            wrong = None if isinstance(method, property) else _unlike(name, method, first=int(unbound))
            if wrong is not None:
                yield f"{_line_of(method, file)}: {name} must {wrong}"
        elif callable(method) and not name.startswith("_") and name not in _OWN:
            alike = difflib.get_close_matches(name.lower(), ASKED, n=1, cutoff=_ALIKE)
            if alike:
                line = _line_of(method, file)
                yield f"{line}: there is no hook '{name}'; did you mean '{alike[0]}'? Methods of your own begin with _"
    if not _takes(owner.follows, 1) or _never_runs(owner.follows):
        yield f"{_line_of(owner.follows, file)}: follows must be a classmethod that takes (cls, args)"


def _line_of(function: object, file: Path) -> str:
    """Where it is written; the file alone where it is none of its functions."""
    code = getattr(inspect.unwrap(function) if callable(function) else None, "__code__", None)
    return f"{file}:{code.co_firstlineno}" if code is not None and code.co_filename == str(file) else str(file)


def _unlike(name: str, method: object, first: int = 0) -> str | None:
    """What the method must be to be asked as others of its name are; a hook that is None is one that the plugin has not.

    `first`: 1 where it still takes its self."""
    if method is None and name in HOOKS:
        return None
    if not callable(method):
        return f"be a method, not {method!r:.40}"
    if _never_runs(method):
        return "be a plain method: one with async or yield would never run"
    wanted = list(inspect.signature(ASKED[name]).parameters)[1:]
    return None if _takes(method, first + len(wanted)) else f"take ({', '.join(['self', *wanted])})"


def _never_runs(function: object) -> bool:
    """Calling it only makes something that would have to be run."""
    kinds = (inspect.iscoroutinefunction, inspect.isasyncgenfunction, inspect.isgeneratorfunction)
    return any(kind(function) for kind in kinds)


class _Guarded:
    """A plugin that says which file is at fault where it fails."""

    def __init__(self, plugin: Plugin[Any], name: str, file: Path) -> None:
        self._plugin, self._file = plugin, file
        self.name = name

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._plugin, name)
        if value is None and name in HOOKS:
            raise AttributeError(name)
        if not callable(value):
            return value
        if name not in ASKED:
            return guarded(value, self._file)
        self.__dict__[name] = method = guarded(checked(name, value), self._file)
        return method


def guarded(function: Callable[..., Any], file: Path) -> Callable[..., Any]:
    """The function; whatever it raises becomes a PluginError that names file and line."""

    def call(*given: Any) -> Any:
        try:
            return function(*given)
        except PluginError:
            raise
        except (Exception, SystemExit, GeneratorExit, CancelledError) as error:  # but not Ctrl-C
            raise PluginError(_where(error, file)) from error

    return call


def _where(error: BaseException, file: Path) -> str:
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return f"{file}:{error.lineno}: {what}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
    return f"{file}:{lines[-1]}: {what}" if lines else f"{file}: {what}"
