"""YAML of people, read so that whatever is wrong with it is a yaml.YAMLError."""

from __future__ import annotations

from collections.abc import Iterator

import yaml

# PyYAML's constructors let these through: a 13th month, `!!bool perhaps`, `!!timestamp soon`, numbers without end.
CONSTRUCTORS_FAIL_WITH = (ValueError, ArithmeticError, LookupError, AttributeError, TypeError, RecursionError)


def only_document(text: str) -> object:
    """The one document of the text. Raises yaml.YAMLError."""
    try:
        return yaml.load(text, yaml.CSafeLoader)
    except CONSTRUCTORS_FAIL_WITH as error:
        raise _unusable(error) from None


def first_document(text: str) -> object:
    """The first document, None where there is none; what follows it is not read. Raises yaml.YAMLError."""
    try:
        return next(yaml.load_all(text, yaml.CSafeLoader), None)
    except CONSTRUCTORS_FAIL_WITH as error:
        raise _unusable(error) from None


def repeated_keys(text: str) -> Iterator[str]:
    """Paths of keys that the first document gives twice: the last counts, as in upstream. Raises yaml.YAMLError."""
    root = next(yaml.compose_all(text, yaml.CSafeLoader), None)
    yield from _repeated(root, "", set())


def _repeated(node: yaml.Node | None, path: str, been: set[int]) -> Iterator[str]:
    if id(node) in been:  # aliases lead to one place again and again, or into themselves
        return
    been.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for i, item in enumerate(node.value):
            yield from _repeated(item, f"{path}[{i}]", been)
    elif isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else ""
            inner = f"{path}.{name}" if path else name
            if name in seen:
                yield inner
            seen.add(name)
            yield from _repeated(value, inner, been)


def words(error: yaml.YAMLError) -> str:
    """PyYAML's message in one line."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return " ".join(str(error).split())
    parts = [part for part in (error.context, error.problem) if part]
    mark = error.problem_mark or error.context_mark
    where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
    return ", ".join(parts).replace("\n", " ") + where


def _unusable(error: Exception) -> yaml.YAMLError:
    return yaml.YAMLError(f"a value is not what its form or tag says: {error}")
