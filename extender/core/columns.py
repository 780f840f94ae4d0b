"""Labels as integer columns, so that a selector is a few vector comparisons instead of a loop over objects.

A column is built when some selector first asks for its key and kept up to date from then on. Value 0 means: not there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from extender.api.selectors import LabelSelector, Requirement

IntColumn = NDArray[np.int32]


class LabelColumns:
    """Columns over the rows of one table (tasks or nodes). `labels(row)` gives the labels of a row, None where it is free."""

    def __init__(self) -> None:
        self._columns: dict[str, IntColumn] = {}
        self._values: dict[str, dict[str, int]] = {}
        self._rows: list[Mapping[str, str] | None] = []

    def set(self, row: int, labels: Mapping[str, str] | None) -> None:
        """Row `row` now has these labels; None: the row is free."""
        while len(self._rows) <= row:
            self._rows.append(None)
        self._rows[row] = labels
        for key, column in self._columns.items():
            if row >= len(column):
                column = self._columns[key] = np.concatenate([column, np.zeros(max(64, len(column), row), dtype=np.int32)])
            column[row] = self._code(key, labels.get(key) if labels else None)

    def _code(self, key: str, value: str | None) -> int:
        if value is None:
            return 0
        values = self._values[key]
        return values.setdefault(value, len(values) + 1)

    def column(self, key: str, size: int) -> IntColumn:
        """(size,) int32 codes of the label `key`; rows beyond those ever set are 0."""
        column = self._columns.get(key)
        if column is None:
            self._values[key] = {}
            column = np.zeros(max(len(self._rows), 1), dtype=np.int32)
            for row, labels in enumerate(self._rows):
                if labels:
                    column[row] = self._code(key, labels.get(key))
            self._columns[key] = column
        if len(column) < size:
            column = self._columns[key] = np.concatenate([column, np.zeros(size - len(column), dtype=np.int32)])
        return column[:size]

    def code(self, key: str, value: str) -> int:
        """The code of a value in column `key`, -1 where no row has it."""
        return self._values.get(key, {}).get(value, -1)

    def values(self, key: str) -> Sequence[str]:
        """The values of column `key`: code c is values[c - 1]."""
        return list(self._values.get(key, {}))

    def matches(self, selector: LabelSelector | None, size: int) -> NDArray[np.bool_]:
        """(size,) which rows a label selector matches; a missing selector matches none, an empty one all."""
        if selector is None:
            return np.zeros(size, dtype=bool)
        mask = np.ones(size, dtype=bool)
        for key, value in (selector.match_labels or {}).items():
            column = self.column(key, size)
            mask &= column == self.code(key, value)
        for requirement in selector.match_expressions or ():
            mask &= self._satisfies(requirement, size)
        return mask

    def _satisfies(self, requirement: Requirement, size: int) -> NDArray[np.bool_]:
        column = self.column(requirement.key, size)
        match requirement.operator:
            case "Exists":
                return np.not_equal(column, 0)
            case "DoesNotExist":
                return np.equal(column, 0)
        wanted = [self.code(requirement.key, value) for value in requirement.values or ()]
        if not wanted or requirement.operator not in ("In", "NotIn"):
            return np.zeros(size, dtype=bool)  # the API server would have refused it
        among = np.isin(column, wanted)
        return among if requirement.operator == "In" else ~among
