"""Patches on JSON: RFC 7386 merge patch and RFC 6902 JSON patch. The original is never changed; what a patch leaves alone
is shared with the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from extender.api.errors import Fault, Invalid
from extender.api.meta import Json


def merge_patch(target: Json, patch: Json) -> Json:
    """RFC 7386: null removes, objects merge, all else replaces."""
    result = dict(target)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            before = result.get(name)
            result[name] = merge_patch(before if isinstance(before, dict) else {}, value)
        else:
            result[name] = value
    return result


def json_patch(target: Json, patch: Sequence[Json]) -> Json:
    """RFC 6902. Raises Invalid naming the pointer that does not resolve or the test that fails."""
    document: Any = target
    for number, step in enumerate(patch):
        operation, pointer = step.get("op"), step.get("path")
        if operation not in _STEPS or not isinstance(pointer, str):
            raise _invalid(f"[{number}]", f"not a JSON patch operation: {step}")
        document = _STEPS[operation](document, pointer, step)
    if not isinstance(document, dict):
        raise _invalid("", "the patch leaves something that is not an object")
    return document


def _add(document: Any, pointer: str, step: Json) -> Any:
    return _set(document, _tokens(pointer), step.get("value"), pointer, insert=True)


def _replace(document: Any, pointer: str, step: Json) -> Any:
    _find(document, pointer)
    return _set(document, _tokens(pointer), step.get("value"), pointer, insert=False)


def _remove(document: Any, pointer: str, _step: Json) -> Any:
    _find(document, pointer)
    return _without(document, _tokens(pointer))


def _copy(document: Any, pointer: str, step: Json) -> Any:
    return _set(document, _tokens(pointer), _find(document, step["from"]), pointer, insert=True)


def _move(document: Any, pointer: str, step: Json) -> Any:
    value = _find(document, step["from"])
    return _set(_without(document, _tokens(step["from"])), _tokens(pointer), value, pointer, insert=True)


def _test(document: Any, pointer: str, step: Json) -> Any:
    if _find(document, pointer) != step.get("value"):
        raise _invalid(pointer, "testing value failed")
    return document


_STEPS: dict[str, Callable[[Any, str, Json], Any]] = {
    "add": _add, "replace": _replace, "remove": _remove, "copy": _copy, "move": _move, "test": _test,
}  # fmt: skip


def _tokens(pointer: str) -> list[str]:
    if pointer and not pointer.startswith("/"):
        raise _invalid(pointer, "a JSON pointer begins with '/'")
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def _find(document: Any, pointer: str) -> Any:
    for token in _tokens(pointer):
        if isinstance(document, dict) and token in document:
            document = document[token]
        elif isinstance(document, list) and token.isdigit() and int(token) < len(document):
            document = document[int(token)]
        else:
            raise _invalid(pointer, "nothing is there")
    return document


def _set(document: Any, tokens: list[str], value: Any, pointer: str, *, insert: bool) -> Any:
    if not tokens:
        return value
    token, rest = tokens[0], tokens[1:]
    if isinstance(document, dict):
        if rest and token not in document:
            raise _invalid(pointer, "its parent is missing")
        return {**document, token: _set(document.get(token), rest, value, pointer, insert=insert)}
    if not isinstance(document, list):
        raise _invalid(pointer, "its parent is missing")
    items = list(document)
    index = len(items) if token == "-" else int(token) if token.isdigit() else len(items) + 1
    if index > len(items) or (rest and index == len(items)):
        raise _invalid(pointer, "no such item")
    if rest:
        items[index] = _set(items[index], rest, value, pointer, insert=insert)
    elif insert:
        items.insert(index, value)
    else:
        items[index] = value
    return items


def _without(document: Any, tokens: list[str]) -> Any:
    token, rest = tokens[0], tokens[1:]
    if isinstance(document, dict):
        result = dict(document)
        if rest:
            result[token] = _without(document[token], rest)
        else:
            del result[token]
        return result
    items = list(document)
    if rest:
        items[int(token)] = _without(items[int(token)], rest)
    else:
        del items[int(token)]
    return items


def _invalid(pointer: str, message: str) -> Invalid:
    fault = Fault(pointer, message)
    return Invalid(f"the server rejected our request due to an error in our request: {fault}", [fault])
