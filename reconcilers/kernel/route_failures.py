"""The routes of all tables that the kernel does not have as they were sent, and their next attempt.

A place that another program has is no error: its route is sent again once the place is free. All others
are sent again after a pause, which doubles with each failure of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from collections.abc import Set as AbstractSet
from typing import Final, final

from reconcilers.kernel.failed_routes import FailedRoutes, RouteFailure
from reconcilers.kernel.writer.protocol_messages import Reason, RouteTable
from resources.enumeration import counted

ERRORS: Final = frozenset(
    {Reason.NOT_PERMITTED, Reason.TABLE_FULL, Reason.UNUSABLE_NEXT_HOP, Reason.REFUSED}
)
"""Why the kernel does not take a route; it is sent again."""
FIRST_RETRY, LAST_RETRY = 1.0, 30.0
"""Seconds until routes that the kernel did not take are sent again; they double with each failure."""


@final
class RouteFailures:
    """The failed routes by table, and the prefixes in whose place another program has a route."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """``clock`` is in seconds."""
        self._clock = clock
        self._failed: dict[RouteTable, FailedRoutes] = {}
        self._occupied: dict[RouteTable, set[bytes]] = {}
        self._retry: dict[RouteTable, tuple[float, float]] = {}
        """Of tables with failures: when their routes are sent again, and the pause before."""

    def get(self, table: RouteTable, nlri: bytes) -> RouteFailure | None:
        """Return the failure of a route of any table: why the kernel does not have it; or None."""
        failed = self._failed.get(table)
        return None if failed is None else failed.get(nlri)

    def counts(self, table: RouteTable | None = None) -> dict[Reason, int]:
        """Return the number of route failures, of a table or of all, by reason."""
        numbers: dict[Reason, int] = {}
        for of_table, failed in self._failed.items():
            for failure, count in failed.counts() if table in (None, of_table) else ():
                numbers[failure.reason] = numbers.get(failure.reason, 0) + count
        return numbers

    def error(self, table: RouteTable) -> str:
        """Return the route failures of a table as text; empty without an error.

        A place that another program has is no error.
        """
        failed = self._failed.get(table)
        counts = () if failed is None else failed.counts()
        return ", ".join(
            f"{counted(n, 'route')}: {f.reason}: {f.text}" for f, n in counts if f.reason in ERRORS
        )

    def prefixes(self, table: RouteTable) -> Collection[bytes]:
        """Return the prefixes of the route failures of a table; a copy."""
        return tuple(self._failed.get(table, ()))

    def occupied(self, table: RouteTable) -> Collection[bytes]:
        """Return the prefixes that failed as another program has a route in their place."""
        return self._occupied.get(table, ())

    def postponed(self, table: RouteTable, prefixes: Iterable[bytes]) -> AbstractSet[bytes]:
        """Return which of some prefixes failed and are not to be sent again yet."""
        failed = self._failed.get(table)
        if not failed or self._clock() >= self._retry.get(table, (0.0, 0.0))[0]:
            return frozenset()
        return {
            nlri
            for nlri in prefixes
            if (failure := failed.get(nlri)) is not None and failure.reason in ERRORS
        }

    def add(self, table: RouteTable, prefixes: Collection[bytes], failure: RouteFailure) -> None:
        """Add route failures of a table, in place of earlier ones."""
        self._failed.setdefault(table, FailedRoutes()).add(prefixes, failure)
        if failure.reason is Reason.OCCUPIED:
            self._occupied.setdefault(table, set()).update(prefixes)

    def postpone(self, table: RouteTable) -> None:
        """Begin the pause after a route failure of a table, unless one is running."""
        due, pause = self._retry.get(table, (0.0, FIRST_RETRY / 2))
        now = self._clock()
        if now >= due:
            pause = min(2 * pause, LAST_RETRY)
            self._retry[table] = (now + pause, pause)

    def confirmed(self, table: RouteTable, prefixes: Iterable[bytes]) -> None:
        """Forget the route failures of a confirmed batch; new ones follow by `add`."""
        if failed := self._failed.get(table):
            failed.discard(prefixes)

    def end_pauses(self, tables: Iterable[RouteTable]) -> None:
        """Forget the pauses of tables without route failures: the next one has the first pause."""
        for table in tables:
            if not self._failed.get(table):
                self._retry.pop(table, None)

    def freed(self, table: RouteTable, prefixes: Iterable[bytes]) -> None:
        """Note that another program has removed the routes in place of failed ones."""
        self._occupied.get(table, set()).difference_update(prefixes)

    def forget(self, table: RouteTable, unwanted: Iterable[bytes], held: Collection[bytes]) -> bool:
        """Forget the failures of routes that are not wanted; False where there are none.

        Routes in ``held``, which the kernel has, are failures until they are removed.
        """
        failed = self._failed.get(table)
        if not failed:
            return False
        gone = [nlri for nlri in unwanted if failed.get(nlri) and nlri not in held]
        if gone:
            failed.discard(gone)
            self.freed(table, gone)
        return bool(gone)

    def clear(self) -> None:
        """Forget all route failures: the kernel's routes were listed again."""
        self._failed.clear()
        self._retry.clear()
        self._occupied.clear()
