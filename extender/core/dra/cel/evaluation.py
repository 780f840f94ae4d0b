"""Tree > closures over variables. Macros (has, all, exists, map ...) are made here, for they look at trees, not at values."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, partial

from extender.core.dra.cel import functions
from extender.core.dra.cel.syntax import Call, Entries, Index, Literal, Name, Node, Select, Sequence, parse
from extender.core.dra.cel.values import CelError, Domains, Optional, Value, is_number, no_overload, type_name

Scope = Mapping[str, Value]
Evaluate = Callable[[Scope], Value]
DEVICE = "device"
_FIELDS = ("driver", "attributes", "capacity", "allowMultipleAllocations")


class Program:
    """A compiled expression. One that cannot be compiled says so whenever it is asked."""

    __slots__ = ("_evaluate", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self._evaluate = _compile(parse(text), frozenset((DEVICE,)))
        except CelError as error:
            self._evaluate = _failing(f"CEL compile error: {error}")
        except RecursionError:
            self._evaluate = _failing("CEL compile error: nests too deep")

    def value(self, variables: Scope) -> Value:
        """Raises CelError."""
        return self._evaluate(variables)

    def matches(self, variables: Scope) -> bool:
        """Raises CelError where there is no answer, or it is neither true nor false."""
        value = self._evaluate(variables)
        if not isinstance(value, bool):
            raise CelError(f"must be true or false, not of type {type_name(value)}")
        return value


@lru_cache(maxsize=4096)
def compiled(text: str) -> Program:
    return Program(text)


def _failing(message: str) -> Evaluate:
    def evaluate(scope: Scope) -> Value:
        del scope
        raise CelError(message)

    return evaluate


def _constant(value: Value) -> Evaluate:
    def evaluate(scope: Scope) -> Value:
        del scope
        return value

    return evaluate


def _compile(node: Node, known: frozenset[str]) -> Evaluate:
    """`known`: variables that there are at this place."""
    match node:
        case Literal(value):
            return _constant(value)
        case Name(name):
            if name not in known:
                raise CelError(f"there is no variable {name!r}")
            return lambda scope: scope[name]
        case Select(of, field, optional):
            if of == Name(DEVICE) and field not in _FIELDS:
                raise CelError(f"device has no field {field!r}: its fields are {', '.join(_FIELDS)}")
            whole = _compile(of, known)
            return (lambda scope: _maybe(whole(scope), field)) if optional else (lambda scope: _entry(whole(scope), field))
        case Index(of, key, optional):
            whole, which = _compile(of, known), _compile(key, known)
            if optional:
                return lambda scope: _maybe(whole(scope), which(scope))
            return lambda scope: _entry(whole(scope), which(scope))
        case Sequence(items):
            parts = [_compile(item, known) for item in items]
            return lambda scope: [part(scope) for part in parts]
        case Entries(items):
            pairs = [(_compile(key, known), _compile(value, known)) for key, value in items]
            return lambda scope: {key(scope): value(scope) for key, value in pairs}
        case Call():
            return _call(node, known)


def _entry(whole: Value, key: Value) -> Value:
    if isinstance(whole, Optional):
        return _maybe(whole.value, key) if whole.there else whole
    if isinstance(whole, dict):
        if isinstance(key, bool) or not isinstance(key, (str, int)):
            raise no_overload("[]", whole, key)
        if key in whole:
            return whole[key]
        if isinstance(whole, Domains):
            return {}
        raise CelError(f"no such key: {key}")
    if isinstance(whole, list) and is_number(key):
        if key != int(key) or not 0 <= key < len(whole):
            raise CelError(f"index out of bounds: {key}")
        return whole[int(key)]
    raise no_overload("[]" if not isinstance(key, str) else f"field {key!r}", whole)


def _maybe(whole: Value, key: Value) -> Optional:
    if isinstance(whole, Optional):
        return _maybe(whole.value, key) if whole.there else whole
    if isinstance(whole, dict):
        return Optional(True, whole[key]) if key in whole else Optional(False)
    if isinstance(whole, list) and isinstance(key, int):
        return Optional(True, whole[key]) if 0 <= key < len(whole) else Optional(False)
    raise no_overload("?.", whole)


# --- calls ----------------------------------------------------------------------------------------------------------------


def _call(node: Call, known: frozenset[str]) -> Evaluate:
    lazy = _LAZY.get(node.function)
    if lazy is not None:
        return lazy([_compile(argument, known) for argument in node.arguments])
    macro = _macro(node, known)
    if macro is not None:
        return macro
    if isinstance(node.target, Name) and node.target.name not in known:  # a namespace, such as in sets.contains
        name, parts = f"{node.target.name}.{node.function}", list(node.arguments)
        function = functions.FUNCTIONS.get(name)
    else:
        name, parts = node.function, [*([node.target] if node.target is not None else []), *node.arguments]
        function = (functions.METHODS if node.target is not None else functions.FUNCTIONS).get(name)
    if function is None:
        raise CelError(f"there is no function {name!r}")
    values = [_compile(part, known) for part in parts]
    try:
        inspect.signature(function).bind(name, *values)
    except TypeError:
        raise CelError(f"{name} does not take {len(values)} values") from None

    def evaluate(scope: Scope) -> Value:
        return function(name, *(value(scope) for value in values))

    if not all(isinstance(part, Literal) for part in parts):
        return evaluate
    try:
        return _constant(evaluate({}))  # the same for every device: quantity("40Gi")
    except CelError:
        return evaluate


def _decided_by(parts: list[Evaluate], decisive: bool) -> Evaluate:
    return lambda scope: _decided((partial(part, scope) for part in parts), decisive)


def _decided(answers: Iterable[Callable[[], Value]], decisive: bool) -> bool:
    """One with the decisive value decides, even where others have none."""
    error: CelError | None = None
    for answer in answers:
        try:
            if _true(answer()) is decisive:
                return decisive
        except CelError as found:
            error = error or found
    if error is not None:
        raise error
    return not decisive


def _choice(parts: list[Evaluate]) -> Evaluate:
    condition, chosen, other = parts

    def evaluate(scope: Scope) -> Value:
        return chosen(scope) if _true(condition(scope)) else other(scope)

    return evaluate


_LAZY: dict[str, Callable[[list[Evaluate]], Evaluate]] = {
    "&&": lambda parts: _decided_by(parts, False),
    "||": lambda parts: _decided_by(parts, True),
    "?:": _choice,
}


# --- macros ---------------------------------------------------------------------------------------------------------------


def _macro(node: Call, known: frozenset[str]) -> Evaluate | None:
    match node:
        case Call("has", (Select(of, field, False),), None):
            whole = _compile(of, known)
            return lambda scope: _has(whole(scope), field)
        case Call("has", _, None):
            raise CelError("has() takes a field, as in has(a.b)")
        case Call("bind", (Name(name), value, body), Name("cel")):
            bound, inner = _compile(value, known), _compile(body, known | {name})
            return lambda scope: inner({**scope, name: bound(scope)})
        case Call("optMap" | "optFlatMap" as which, (Name(name), body), target) if target is not None:
            maybe, inner = _compile(target, known), _compile(body, known | {name})
            return lambda scope: _opt_map(maybe(scope), scope, name, inner, flat=which == "optFlatMap")
        case Call("or" | "orValue" as which, (other,), target) if target is not None:
            maybe, instead = _compile(target, known), _compile(other, known)
            return lambda scope: _or_else(maybe(scope), scope, instead, flat=which == "or")
        case Call(function, (Name(name), *bodies), target) if target is not None and (function, len(bodies)) in _OVER:
            if isinstance(target, Name) and target.name not in known:
                return None
            elements, inners = _compile(target, known), [_compile(body, known | {name}) for body in bodies]
            over = _OVER[function, len(bodies)]
            return lambda scope: over(_scopes(elements(scope), scope, name), name, *inners)
    return None


def _has(whole: Value, field: str) -> bool:
    if isinstance(whole, Optional):
        return whole.there and _has(whole.value, field)
    if not isinstance(whole, dict):
        raise no_overload("has()", whole)
    return field in whole


def _opt_map(maybe: Value, scope: Scope, name: str, body: Evaluate, *, flat: bool) -> Value:
    if not isinstance(maybe, Optional):
        raise no_overload("optMap", maybe)
    if not maybe.there:
        return maybe
    value = body({**scope, name: maybe.value})
    return value if flat else Optional(True, value)


def _or_else(maybe: Value, scope: Scope, other: Evaluate, *, flat: bool) -> Value:
    """What comes instead is asked for only where it is needed."""
    if not isinstance(maybe, Optional):
        raise no_overload("orValue", maybe)
    if maybe.there:
        return maybe if flat else maybe.value
    return other(scope)


def _scopes(whole: Value, scope: Scope, name: str) -> Iterator[Scope]:
    """One for each element of a list, or key of a map."""
    if not isinstance(whole, (list, dict)):
        raise no_overload("a loop", whole)
    return ({**scope, name: element} for element in whole)


def _true(value: Value) -> bool:
    if not isinstance(value, bool):
        raise no_overload("a condition", value)
    return value


def _all(scopes: Iterator[Scope], name: str, condition: Evaluate) -> Value:
    del name
    return _decided((partial(condition, each) for each in scopes), False)


def _exists(scopes: Iterator[Scope], name: str, condition: Evaluate) -> Value:
    del name
    return _decided((partial(condition, each) for each in scopes), True)


def _exists_one(scopes: Iterator[Scope], name: str, condition: Evaluate) -> Value:
    del name
    return sum(_true(condition(each)) for each in scopes) == 1


def _filter(scopes: Iterator[Scope], name: str, condition: Evaluate) -> Value:
    return [each[name] for each in scopes if _true(condition(each))]


def _map(scopes: Iterator[Scope], name: str, body: Evaluate) -> Value:
    del name
    return [body(each) for each in scopes]


def _filtered_map(scopes: Iterator[Scope], name: str, condition: Evaluate, body: Evaluate) -> Value:
    del name
    return [body(each) for each in scopes if _true(condition(each))]


_OVER: dict[tuple[str, int], Callable[..., Value]] = {
    ("all", 1): _all, ("exists", 1): _exists, ("exists_one", 1): _exists_one, ("existsOne", 1): _exists_one,
    ("filter", 1): _filter, ("map", 1): _map, ("map", 2): _filtered_map,
}  # fmt: skip
