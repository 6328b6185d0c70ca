"""Needs of the dialects of the node's kernel: interfaces and default routes, or tables of routes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from reactivex import Observable
from reactivex.subject import Subject

from reconcilers.dialect import Dialect, HostNeeds, extended
from resources.host import KernelTable
from resources.tables import Tables
from statedb import Snapshot, Table


class HostDemand:
    """The answer of the dialects of one node, kept until a table changes on which it depends.

    The compiler asks when a followed table has changed, as a round of intent waits for what is needed,
    until the host has been read; the reader of the kernel follows the answer.
    """

    def __init__(self, tables: Tables, dialects: Sequence[Dialect], node: str) -> None:
        self._tables = tables
        self._dialects = extended(dialects, HostNeeds)
        self._node = node
        self.followed: frozenset[Table[Any]] = frozenset(
            (
                *(table for dialect in dialects for table in dialect.compiled_tables),
                tables.nodes,
                tables.node_networks,
            )
        )
        """The tables on which the answer depends."""
        self._changes: Subject[None] = Subject()
        self.needing: frozenset[str] = frozenset()
        """The last answer: the dialects that need it."""
        self.needed = False
        """Whether any does."""
        self.host_read = False
        """Whether the host has been read: no round waits for it, and the answer stays."""
        self.kernel_tables: frozenset[KernelTable] = frozenset()
        """The redistributed tables, as of the last compilation (`NodeIntent.kernel_tables`)."""
        self.failures: dict[str, Exception] = {}
        """Of the last answer: dialects that failed, taken as not needing it, by name."""

    @property
    def changes(self) -> Observable[None]:
        """Emits when the host needs of the dialects have changed, or the needed tables."""
        return self._changes

    def unread(
        self,
        snapshot: Snapshot,
        changed: AbstractSet[Table[Any]],
        on_error: Callable[[str, Exception], None] = lambda _dialect, _error: None,
    ) -> frozenset[str]:
        """Return the dialects that need the host's kernel, which has not been read yet.

        They answer again if a followed table is in ``changed``; ``on_error`` takes each dialect that
        fails then. A NodeNetwork stands in for the kernel.
        """
        self.host_read = self._tables.host.initialized(snapshot)
        if self.host_read:
            return frozenset()
        if not changed.isdisjoint(self.followed):
            self._ask(snapshot, on_error)
        return self.needing

    def _ask(self, snapshot: Snapshot, on_error: Callable[[str, Exception], None]) -> None:
        before = (self.needed, self.failures.keys())
        self.failures = {}
        self.needing = frozenset(self._compute(snapshot))
        self.needed = bool(self.needing)
        if before != (self.needed, self.failures.keys()):
            self._changes.on_next(None)
        for name, error in self.failures.items():
            on_error(name, error)

    def redistribute(self, snapshot: Snapshot, tables: frozenset[KernelTable]) -> None:
        """Set the tables of the host whose redistributed routes a compilation needs."""
        if tables and self._described(snapshot):
            tables = frozenset()
        if tables != self.kernel_tables:
            self.kernel_tables = tables
            self._changes.on_next(None)

    def _described(self, snapshot: Snapshot) -> bool:
        """Return whether a NodeNetwork describes the node."""
        return self._tables.node_networks.get(snapshot, ("", self._node)) is not None

    def _compute(self, snapshot: Snapshot) -> Iterator[str]:
        """Yield the dialects that need the kernel."""
        if self._described(snapshot):
            return
        for dialect, needs in self._dialects:
            try:
                if needs.needed(dialect, snapshot, self._node):
                    yield dialect.name
            except Exception as error:  # noqa: BLE001  one dialect's error is that dialect's
                self.failures[dialect.name] = error
