"""What hooks of a user's plugin answer is checked before anybody works with it: a slip is then told as one of that plugin.

The kind of an answer comes from its annotation in hooks.py. What a kind cannot say is checked by the hook's row in `_FAULTS`:
rows must be among those that were given, arrays must be for the places that were given, points must be finite."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Real
from types import NoneType
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from extender.api.meta import Kind
from extender.api.operations import Prior
from extender.core.hooks import Hooks
from extender.core.hyper_nodes import HyperNode
from extender.core.placement import NOWHERE
from extender.core.plugin import Across, At, Change, Plugin, Refusal, Refused, Vote
from extender.core.session import Session

HOOKS = {name: method for name, method in vars(Hooks).items() if inspect.isfunction(method) and not name.startswith("_")}
# Everything that a plugin is asked.
ASKED: dict[str, Callable[..., Any]] = HOOKS | {name: getattr(Plugin, name) for name in ("open", "close", "next_due", "follows")}
_MOST = 1e15  # points beyond it would swallow those of other plugins, or overflow when they are added up

# As hooks.py writes it -> what an answer must be.
_KINDS: dict[str, type | tuple[type, ...]] = {
    "Key": object, "Hashable": Hashable, "None": NoneType, "str": str, "bool": (bool, np.bool_), "int": (int, np.integer),
    "Vote": (int, np.integer), "FloatN": np.ndarray, "BoolN": np.ndarray, "Across": Across, "Refused": Refused,
    "Gradient": (list, tuple), "Sequence[int]": (Sequence, np.ndarray), "Mapping[str, float]": Mapping, "list[Refusal]": list,
    "list[Prior]": list, "tuple[str, dict[str, object]]": tuple,
    "Time": Real, "tuple[Kind, ...]": tuple,
}  # fmt: skip

# What the hook was given, and its answer, which is not None -> what is wrong with it; "": it is of another kind altogether.
Fault = Callable[[tuple[Any, ...], Any], str | None]
_OTHER_KIND = ""


def checked(hook: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """The method; it raises TypeError for an answer that nobody could work with. One for each session: keys are compared.

    Lists and arrays are lent as copies, so that a plugin that changes them changes nothing; the points of node_reduce are not.
    What lies within the session and the places is too much to copy: it cannot be written meanwhile."""
    wanted = str(inspect.signature(ASKED[hook]).return_annotation)
    kinds = tuple(kind for word in wanted.split(" | ") for kind in _several(_KINDS[word]))
    fault = _comparable() if wanted == "Key" else _FAULTS.get(hook) or _FAULTS.get(wanted.removesuffix(" | None"))
    kept = 2 if hook == "node_reduce" else -1

    def call(*given: Any) -> Any:
        lent = (each.copy() if isinstance(each, (list, np.ndarray)) and at != kept else each for at, each in enumerate(given))
        with _only_read(given):
            answer = method(*lent)
        if wanted == "None":
            return None
        wrong = None if isinstance(answer, kinds) else _OTHER_KIND
        if wrong is None and answer is not None and fault is not None:
            wrong = fault(given, answer)
        if wrong is not None:
            raise TypeError(f"{hook} answered {wrong or f'{_shown(answer)}, not {wanted}'}")
        return answer

    return call


@contextmanager
def _only_read(given: Iterable[Any]) -> Iterator[None]:
    """Who writes into an array of these is told so, by NumPy. Calls may be nested: what is locked already stays so."""
    arrays = [array for each in given for array in _within(each) if array.flags.writeable]
    for array in arrays:
        array.flags.writeable = False
    try:
        yield
    finally:
        for array in arrays:
            array.flags.writeable = True


def _within(lent: object) -> Iterable[NDArray[Any]]:
    match lent:
        case Session():
            return lent.moved
        case At(rows, allocatable, used, requested, nonzero, extra):
            return rows, allocatable, used, requested, nonzero, extra
        case Change(request=request, total=total):
            return request, total
        case _:
            return ()


def _several(kind: type | tuple[type, ...]) -> tuple[type, ...]:
    return kind if isinstance(kind, tuple) else (kind,)


def _shown(answer: object) -> str:
    return f"{answer!r:.40}"


# --- sort keys --------------------------------------------------------------------------------------------------------------


def _comparable() -> Fault:
    """Numbers, strings or tuples of such, of which any two can be compared."""
    known: list[Any] = []  # of what the keys so far are made

    def fault(given: tuple[Any, ...], answer: Any) -> str | None:
        del given
        made_of = _made_of(answer)
        if made_of is None:
            return f"{_shown(answer)}, not a number, a string or a tuple of such"
        merged = _merged(known[0], made_of) if known else made_of
        if merged is None:
            return f"{_shown(answer)}, which cannot be compared with what it answered before"
        known[:] = [merged]
        return None

    return fault


def _made_of(key: object) -> Any:
    """`number`, `string`, a tuple of these; None for anything else."""
    if isinstance(key, (Real, np.bool_)):
        return "number" if key == key else None  # NaN is not equal to itself
    if isinstance(key, str):
        return "string"
    if not isinstance(key, tuple):
        return None
    parts = tuple(_made_of(part) for part in key)
    return None if None in parts else parts


def _merged(one: Any, other: Any) -> Any:
    """What both are made of, the longer where one goes on; None where they cannot be compared."""
    if not isinstance(one, tuple) or not isinstance(other, tuple):
        return one if one == other else None
    both = tuple(_merged(*pair) for pair in zip(one, other, strict=False))
    return None if None in both else both + max(one, other, key=len)[len(both) :]


# --- nodes ------------------------------------------------------------------------------------------------------------------


def _places(given: tuple[Any, ...]) -> int:
    """K where places are judged, else N."""
    return len(given[-1].rows) if isinstance(given[-1], At) else len(given[0].nodes)


def _array(array: object, count: int, kinds: str) -> str | None:
    """`kinds`: of its numbers, as NumPy abbreviates them."""
    if not isinstance(array, np.ndarray) or array.dtype.kind not in kinds:
        what = f"of {array.dtype}" if isinstance(array, np.ndarray) else _shown(array)
        return f"an array {what}, not of {'yes and no' if kinds == 'b' else 'numbers'}"
    if array.shape != (count,):
        return f"an array of shape {array.shape}, not ({count},)"
    return None


def _points(given: tuple[Any, ...], answer: Any) -> str | None:
    wrong = _array(answer, _places(given), "biuf")
    if wrong is None and not (np.abs(answer) <= _MOST).all():
        return f"points that are no numbers, or beyond {_MOST:g}"
    return wrong


def _refusals(given: tuple[Any, ...], answer: Any) -> str | None:
    if not all(isinstance(each, Refusal) and isinstance(each.message, str) for each in answer):
        return _OTHER_KIND
    return next((wrong for each in answer if (wrong := _array(each.mask, _places(given), "b")) is not None), None)


def _best(given: tuple[Any, ...], answer: Any) -> str | None:
    scores = given[-1]
    if _is_row(answer) and 0 <= answer < len(scores) and scores[answer] > NOWHERE:
        return None
    return f"{_shown(answer)}, which is not the row of a feasible node"


def _gradient(given: tuple[Any, ...], answer: Any) -> str | None:
    if not all(isinstance(each, (list, tuple)) and all(isinstance(one, HyperNode) for one in each) for each in answer):
        return _OTHER_KIND
    inner = (_array(one.nodes, len(given[0].nodes), "b") for each in answer for one in each)
    return next((f"a HyperNode with {wrong}" for wrong in inner if wrong is not None), None)


def _points_by_name(given: tuple[Any, ...], answer: Any) -> str | None:
    del given
    good = all(isinstance(name, str) and isinstance(value, Real) and abs(float(value)) <= _MOST for name, value in answer.items())
    return None if good else _OTHER_KIND


# --- rows and the rest ------------------------------------------------------------------------------------------------------


def _is_row(value: object) -> TypeGuard[int]:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _given_row(given: tuple[Any, ...], answer: Any) -> str | None:
    return _among((answer,), given[-1])


def _given_rows(given: tuple[Any, ...], answer: Any) -> str | None:
    if not all(_is_row(each) for each in answer):
        return _OTHER_KIND
    return _among(answer, set(given[-1])) or (f"{_shown(answer)}, one of them twice" if len(set(answer)) < len(answer) else None)


def _among(rows: Iterable[int], known: Container[int]) -> str | None:
    return next((f"{row}, which is none of those that it was given" for row in rows if row not in known), None)


def _hashable(given: tuple[Any, ...], answer: Any) -> str | None:
    del given
    try:
        hash(answer)
    except TypeError:
        return _OTHER_KIND
    return None


def _only(fits: Callable[[Any], bool]) -> Fault:
    return lambda _, answer: None if fits(answer) else _OTHER_KIND


# By hook, or else by what hooks.py says it answers.
_FAULTS: dict[str, Fault] = {
    "best_node": _best,
    "target_job": _given_row,
    "evictable": lambda given, answer: _array(answer, len(given[-1]), "b"),
    "Hashable": _hashable,
    "FloatN": _points,
    "Across": lambda given, answer: _points(given, answer.scores),
    "list[Refusal]": _refusals,
    "Gradient": _gradient,
    "Mapping[str, float]": _points_by_name,
    "Sequence[int]": _given_rows,
    "list[Prior]": _only(lambda answer: all(isinstance(each, Prior) for each in answer)),
    "Vote": _only(lambda answer: answer in tuple(Vote)),
    "Refused": _only(lambda answer: all(isinstance(each, str) for each in answer)),
    "tuple[str, dict[str, object]]": _only(lambda answer: list(map(type, answer)) == [str, dict]),
    "tuple[Kind, ...]": _only(lambda answer: all(isinstance(each, Kind) for each in answer)),
    "Time": _only(lambda answer: bool(np.isfinite(float(answer)))),
}
