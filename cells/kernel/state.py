"""Writes the rows of the kernel's tables, next hops and settings, as they change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, zip_longest
from typing import Final

from cells.hive.jobs import Jobs
from cells.hive.rounds import in_slices, run_rounds
from cells.hive.signal import Signal
from reconcilers.intent_tables import IntentTables
from reconcilers.kernel.options import FibOptions
from reconcilers.kernel.reconciler import KernelReconciler
from reconcilers.kernel.state_rows import next_hop_rows, settings_row, table_rows
from reconcilers.kernel_state import KernelNextHops
from reconcilers.sliced_work import Slices
from resources.row_updates import replace_all, replace_some
from statedb import Database

INTERVAL_SECONDS: Final = 2.0
"""Between two writes: numbers of routes change with every batch."""
SLICE_ROWS: Final = 250
"""Rows of next hops that are compared, or removed and written, in a turn: some milliseconds."""


class KernelState:
    """The job that writes the rows."""

    def __init__(
        self,
        database: Database,
        intent_tables: IntentTables,
        kernel: KernelReconciler,
        options: FibOptions,
        jobs: Jobs,
    ) -> None:
        self._database = database
        self._intent = intent_tables
        self._kernel = kernel
        self._options = options
        jobs.add("state", self._run)

    async def _run(self) -> None:
        async def write(_: float | None) -> None:
            await in_slices(self.write())

        await run_rounds(Signal(self._kernel.changed), write, interval=INTERVAL_SECONDS)

    def write(self) -> Slices[None]:
        """Write what differs, in slices: a route server announces very many sets of next hops."""
        wanted, installed, withheld = (
            self._kernel.wanted_tables,
            self._kernel.installed,
            self._kernel.withheld,
        )
        tables, settings = self._intent.kernel_tables, self._intent.kernel_settings
        with self._database.write(tables, settings) as txn:
            rows = table_rows(wanted, installed, withheld)
            replace_all(txn, tables, rows)
            replace_all(txn, settings, (settings_row(self._options, wanted, installed),))
        table = self._intent.kernel_next_hops
        new: set[KernelNextHops] = set()
        for some in _pieces(next_hop_rows(wanted)):
            new.update(some)
            yield
        gone: list[KernelNextHops] = []
        for some in _pieces(table.all(self._database.snapshot())):
            gone += [row for row in some if row not in new]
            new.difference_update(some)
            yield
        for deleted, written in zip_longest(_pieces(gone), _pieces(new), fillvalue=()):
            with self._database.write(table) as txn:
                replace_some(txn, table, deleted, written)
            yield


def _pieces(rows: Iterable[KernelNextHops]) -> Iterator[Sequence[KernelNextHops]]:
    """Yield the rows of next hops, a slice of them at a time."""
    rest = iter(rows)
    while some := list(islice(rest, SLICE_ROWS)):
        yield some
