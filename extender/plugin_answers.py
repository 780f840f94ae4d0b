"""What hooks of a user's plugin answer is checked before anybody works with it: a slip is then told as one of that plugin."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from types import NoneType
from typing import Any

import numpy as np

from extender.core.hooks import Hooks
from extender.core.plugin import Across, At, Refusal, Refused

HOOKS = {name: method for name, method in vars(Hooks).items() if inspect.isfunction(method) and not name.startswith("_")}

# As hooks.py writes it -> what an answer must be.
_KINDS: dict[str, type | tuple[type, ...]] = {
    "Key": object, "Hashable": Hashable, "None": NoneType, "str": str, "bool": (bool, np.bool_), "int": (int, np.integer),
    "Vote": (int, np.integer), "FloatN": np.ndarray, "BoolN": np.ndarray, "Across": Across, "Refused": Refused,
    "Gradient": Sequence, "Sequence[int]": (Sequence, np.ndarray), "Mapping[str, float]": Mapping, "list[Refusal]": list,
    "list[Prior]": list, "tuple[str, dict[str, object]]": tuple,
}  # fmt: skip


def checked(hook: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """The method; it raises TypeError for an answer of another kind than the hook's, or for other places than it was given."""
    wanted = str(inspect.signature(HOOKS[hook]).return_annotation)
    kinds = tuple(kind for word in wanted.split(" | ") for kind in _several(_KINDS[word]))

    def call(*given: Any) -> Any:
        answer = method(*given)
        if wanted != "None" and not isinstance(answer, kinds):
            raise TypeError(f"{hook} answered {answer!r:.40}, not {wanted}")
        if wanted == "list[Refusal]" and not all(isinstance(each, Refusal) for each in answer):
            raise TypeError(f"{hook} answered {answer!r:.40}, not {wanted}")
        if given and isinstance(given[-1], At):
            _check_places(hook, answer, len(given[-1].rows))
        return answer

    return call


def _several(kind: type | tuple[type, ...]) -> tuple[type, ...]:
    return kind if isinstance(kind, tuple) else (kind,)


def _check_places(hook: str, answer: Any, count: int) -> None:
    arrays = [each.mask for each in answer] if isinstance(answer, list) else [answer] if answer is not None else []
    for array in arrays:
        if np.shape(array) != (count,):
            raise TypeError(f"{hook} answered an array of shape {np.shape(array)}, not ({count},)")
