"""Routes that wait for approval: with them in the kernel the node did not reach its cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeAlias, final

from reconcilers.kernel.writer.protocol_messages import NextHopSet, RouteTable

Batch: TypeAlias = Mapping[RouteTable, AbstractSet[bytes]]
"""Prefixes by table."""
Installed: TypeAlias = Sequence[tuple[RouteTable, Mapping[bytes, NextHopSet | None]]]
"""Changes of routes, as they were handed over."""


def routes_of(installed: Installed) -> Batch:
    """Return the prefixes that were installed or changed, whose reachability is not checked yet."""
    batch: dict[RouteTable, set[bytes]] = {}
    for table, changes in installed:
        some = {nlri for nlri, hops in changes.items() if hops is not None}
        if some:
            batch.setdefault(table, set()).update(some)
    return batch


@final
class WithheldRoutes:
    """The routes that were installed since the last check, and the routes that a check removed."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """``wake`` is called when `take_changed` has something."""
        self._wake = wake
        self._unchecked: list[tuple[RouteTable, Mapping[bytes, NextHopSet | None]]] = []
        self._withheld: dict[RouteTable, set[bytes]] = {}
        self._changed: dict[RouteTable, set[bytes]] = {}

    def installed(self, table: RouteTable, changes: Mapping[bytes, NextHopSet | None]) -> None:
        """Note routes that are being installed or changed, which are unchecked."""
        if any(hops is not None for hops in changes.values()):
            self._unchecked.append((table, changes))

    @property
    def is_due(self) -> bool:
        """True if a check is due: routes were installed since the last `take_unchecked`."""
        return bool(self._unchecked)

    def take_unchecked(self) -> Installed:
        """Return the unchecked routes: installed since the last call."""
        unchecked, self._unchecked = self._unchecked, []
        return unchecked

    def withhold(self, batch: Batch) -> None:
        """Withhold these unchecked routes: they are no longer installed."""
        for table, prefixes in batch.items():
            self._withheld.setdefault(table, set()).update(prefixes)
        self._change(batch)

    def release(self, batch: Batch | None = None) -> Batch:
        """Install these withheld routes again, unchecked; without a batch all. Returns the routes."""
        released: Batch
        if batch is None:
            released, self._withheld = self._withheld, {}
        else:
            released = {table: batch[table] & self.routes(table) for table in batch}
            for table, some in released.items():
                self._withheld.get(table, set()).difference_update(some)
        self._change(released)
        return released

    def routes(self, table: RouteTable) -> AbstractSet[bytes]:
        """Return the prefixes of a table that a check has withheld."""
        return self._withheld.get(table, frozenset())

    @property
    def count(self) -> int:
        """The number of routes that checks have withheld."""
        return sum(map(len, self._withheld.values()))

    def take_changed(self) -> Batch:
        """Return prefixes withheld after a check, or released, since the last call, to reconcile."""
        changed, self._changed = self._changed, {}
        return changed

    def _change(self, batch: Batch) -> None:
        for table, prefixes in batch.items():
            self._changed.setdefault(table, set()).update(prefixes)
        if batch:
            self._wake()
