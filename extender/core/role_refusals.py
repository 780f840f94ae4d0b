"""What refuses one task of a role for good refuses all of them, where the configuration says so (predicateErrorCacheEnable)."""

from __future__ import annotations

import numpy as np

from extender.core.axis import BoolN
from extender.core.plugin import TaskClass

Role = tuple[int, str]  # a job and the name of one of its roles


class RoleRefusals:
    """By role the nodes that refused a task of it for good: roles are meant to be of one template.

    Tasks without a role are judged on their own."""

    def __init__(self) -> None:
        self._by_class: dict[Role, dict[int, BoolN]] = {}

    def by_others(self, role: Role, cls: TaskClass) -> bool:
        """Some other class of the role has been judged."""
        return any(known != cls.id for known in self._by_class.get(role, ()))

    def with_others(self, role: Role, cls: TaskClass, refused: BoolN) -> BoolN:
        """(N,) what the class is refused by now and what the role was refused by before; remembers the former."""
        if not role[1]:
            return refused
        known = self._by_class.setdefault(role, {})
        known[cls.id] = refused | known[cls.id] if cls.id in known else refused
        union: BoolN = np.logical_or.reduce(list(known.values()))
        return union
