"""Operators, which are functions by the name they are written by. The logical ones are in evaluation.py: they need not know all.

Source: the CEL specification; cel-go v0.26, common/types."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from extender.core.dra.cel.values import INT64, UINT64, CelError, Unsigned, Value, is_number, no_overload, same

Function = Callable[..., Value]


def ordered(compare: Callable[[Any, Any], bool]) -> Function:
    def checked(name: str, a: Value, b: Value) -> bool:
        alike = type(a) is type(b) and isinstance(a, (bool, str, bytes))
        if not alike and not (is_number(a) and is_number(b)):
            raise no_overload(name, a, b)
        return compare(a, b)

    return checked


def _arithmetic(of_integers: Callable[[int, int], int], of_doubles: Callable[[float, float], float] | None) -> Function:
    def checked(name: str, a: Value, b: Value) -> Value:
        if type(a) is not type(b) or not is_number(a):
            raise no_overload(name, a, b)
        if isinstance(a, float):
            if of_doubles is None:
                raise no_overload(name, a, b)
            return of_doubles(a, b)
        return integer(of_integers(int(a), int(b)), unsigned=isinstance(a, Unsigned))

    return checked


def integer(value: int, *, unsigned: bool = False) -> int:
    if value not in (UINT64 if unsigned else INT64):
        raise CelError("integer overflow")
    return Unsigned(value) if unsigned else value


def _divided(a: int, b: int) -> int:
    if b == 0:
        raise CelError("division by zero")
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _remainder(a: int, b: int) -> int:
    if b == 0:
        raise CelError("modulus by zero")
    return a - b * _divided(a, b)


def _double_divided(a: float, b: float) -> float:
    if b:
        return a / b
    return float("nan") if a == 0 or a != a else float("inf") * a


def plus(name: str, a: Value, b: Value) -> Value:
    if type(a) is type(b) and isinstance(a, (str, bytes, list)):
        return a + b
    return _ADD(name, a, b)


def _minus(name: str, a: Value, *rest: Value) -> Value:
    if rest:
        return _SUBTRACT(name, a, *rest)
    if not is_number(a) or isinstance(a, Unsigned):
        raise no_overload(name, a)
    return -a if isinstance(a, float) else integer(-a)


def _not(name: str, a: Value) -> bool:
    if not isinstance(a, bool):
        raise no_overload(name, a)
    return not a


def _in(name: str, a: Value, b: Value) -> bool:
    if isinstance(b, list):
        return any(same(a, item) for item in b)
    if isinstance(b, dict):
        return isinstance(a, (str, int)) and not isinstance(a, bool) and a in b
    raise no_overload(name, a, b)


_ADD = _arithmetic(operator.add, operator.add)
_SUBTRACT = _arithmetic(operator.sub, operator.sub)


OPERATORS: dict[str, Function] = {
    "==": lambda _, a, b: same(a, b),
    "!=": lambda _, a, b: not same(a, b),
    "<": ordered(operator.lt), "<=": ordered(operator.le), ">": ordered(operator.gt), ">=": ordered(operator.ge),
    "in": _in, "!": _not, "+": plus, "-": _minus,
    "*": _arithmetic(operator.mul, operator.mul), "/": _arithmetic(_divided, _double_divided),
    "%": _arithmetic(_remainder, None),
}  # fmt: skip
