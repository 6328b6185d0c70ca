"""Dialects that wait for the first reading of the node's kernel: of its interfaces, or of routes.

What a dialect advertises after a start would lack what it needs of the kernel, and peers would drop
routes that they keep over a restart. A dialect in need waits for `WAIT_SECONDS` at most, as the kernel
may not be readable; what it lacks then is a problem. The others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from collections.abc import Set as AbstractSet
from typing import Any, Final, final

from reconcilers.dialect import Feeding
from reconcilers.model import ObjectRef, Problem
from statedb import Snapshot, Table

WAIT_SECONDS: Final = 10.0
"""The kernel answers within milliseconds, or not at all."""


@final
class KernelReadings:
    """Decides which dialects wait for a table of the kernel, together with the dialects they feed."""

    def __init__(self, feeding: Feeding, node: str, clock: Callable[[], float]) -> None:
        """``clock`` is monotonic, in seconds."""
        self._groups = {name: group for group in feeding.groups for name in group}
        self._node = ObjectRef("Node", "", node)
        self._clock = clock
        self._read: set[Table[Any]] = set()
        """The tables that have been read: nothing waits for them any more."""
        self._deadlines: dict[Table[Any], float] = {}
        self._late: dict[Table[Any], frozenset[str]] = {}
        self.waiting: dict[str, Table[Any]] = {}
        """The dialects that wait, with the table."""
        self.problems: tuple[Problem, ...] = ()
        """The tables that dialects lack."""

    def dialects_waiting(
        self,
        snapshot: Snapshot,
        table: Table[Any],
        needing: Collection[str],
        in_effect: AbstractSet[str] = frozenset(),
    ) -> frozenset[str]:
        """Return which dialects wait for the kernel's reading of a table, with their feeders.

        Dialects ``in_effect`` do not wait: they take what is read later.
        """
        if table in self._read or (not needing and table not in self._deadlines):
            return frozenset()
        self.waiting = {name: of for name, of in self.waiting.items() if of is not table}
        if self._late.pop(table, None):
            self.problems = tuple(map(self._problem, self._late))
        names = frozenset[str]().union(*(self._groups[name] for name in needing))
        if table.initialized(snapshot):
            self._read.add(table)
            return frozenset()
        if not names:
            return frozenset()
        now = self._clock()
        if now >= self._deadlines.setdefault(table, now + WAIT_SECONDS):
            self._late[table] = names
            self.problems = tuple(map(self._problem, self._late))
            return frozenset()
        self.waiting |= dict.fromkeys(names - in_effect, table)
        return names - in_effect

    @property
    def unread(self) -> tuple[str, ...]:
        """The names of the tables of the kernel that dialects wait for."""
        return tuple(dict.fromkeys(table.name for table in self.waiting.values()))

    @property
    def retry(self) -> float | None:
        """The seconds after which no dialect waits for a reading of the kernel any more."""
        deadlines = [self._deadlines[table] for table in self.waiting.values()]
        return min(deadlines) - self._clock() if deadlines else None

    def _problem(self, table: Table[Any]) -> Problem:
        text = (
            f"the kernel was not read within {WAIT_SECONDS:g} s ({table.name}): routes, interfaces and "
            "addresses of the node that objects refer to are missing"
        )
        return Problem((self._node,), "", text, dialect=min(self._late[table]))
