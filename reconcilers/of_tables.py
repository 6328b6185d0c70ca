"""A value that is computed from the rows of some tables, kept until one of them changes.

The operator reads it for each node; its part and the compiler of one process for each change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_
from typing import Any, Generic, TypeVar

from statedb import Snapshot, Table

T = TypeVar("T")


class OfTables(Generic[T]):
    """The value of one namespace, of the tables as they were at the last call."""

    def __init__(self, tables: Sequence[Table[Any]], compute: Callable[[Snapshot, str], T]) -> None:
        """``compute`` reads these tables alone."""
        self._tables = tables
        self._compute = compute
        self._last: tuple[list[object], str, T] | None = None

    def of(self, snapshot: Snapshot, namespace: str) -> T:
        """Return the value of the tables for a namespace; the kept one while no table has changed."""
        # Not the revisions: a trial uses its numbers again, with other rows.
        versions: list[object] = [*map(snapshot.state, self._tables)]
        last = self._last
        if last is not None and last[1] == namespace and all(map(is_, last[0], versions)):
            return last[2]
        value = self._compute(snapshot, namespace)
        self._last = (versions, namespace, value)
        return value
