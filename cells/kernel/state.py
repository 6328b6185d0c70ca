"""Writes the rows of the kernel's tables and next hops, as they change."""

from __future__ import annotations

import asyncio
from typing import Final

from cells.hive.jobs import Jobs
from cells.hive.signal import Signal
from reconcilers.kernel.options import FibOptions
from reconcilers.kernel.reconciler import KernelRoutes
from reconcilers.kernel.state_rows import next_hop_rows, table_rows
from reconcilers.tables import IntentTables
from resources.row_updates import replace_all
from statedb import Database

INTERVAL_SECONDS: Final = 2.0
"""Between two writes: numbers of routes change with every batch."""


class KernelState:
    """The job that writes the rows."""

    def __init__(
        self,
        database: Database,
        intent_tables: IntentTables,
        kernel: KernelRoutes,
        options: FibOptions,
        jobs: Jobs,
    ) -> None:
        self._database = database
        self._tables = (intent_tables.kernel_tables, intent_tables.kernel_next_hops)
        self._kernel = kernel
        self._protocol = options.protocol
        jobs.add("state", self._run)

    async def _run(self) -> None:
        with Signal(self._kernel.changed) as signal:
            while True:
                await signal.wait()
                self.write()
                await asyncio.sleep(INTERVAL_SECONDS)

    def write(self) -> None:
        """Write what differs."""
        kernel = self._kernel
        tables, next_hops = self._tables
        rows = table_rows(kernel.wanted_tables, kernel.installed, kernel.withheld, self._protocol)
        with self._database.write(*self._tables) as txn:
            replace_all(txn, tables, rows)
            replace_all(txn, next_hops, next_hop_rows(kernel.wanted_tables))
