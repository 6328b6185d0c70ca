"""Writes the rows of the kernel's tables, next hops and settings, as they change."""

from __future__ import annotations

import asyncio
from typing import Final

from cells.hive.jobs import Jobs
from cells.hive.signal import Signal
from reconcilers.kernel.options import FibOptions
from reconcilers.kernel.reconciler import KernelRoutes
from reconcilers.kernel.state_rows import next_hop_rows, settings_row, table_rows
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
        self._intent = intent_tables
        self._kernel = kernel
        self._options = options
        jobs.add("state", self._run)

    async def _run(self) -> None:
        with Signal(self._kernel.changed) as signal:
            while True:
                await signal.wait()
                self.write()
                await asyncio.sleep(INTERVAL_SECONDS)

    def write(self) -> None:
        """Write what differs."""
        wanted, installed, withheld = (
            self._kernel.wanted_tables,
            self._kernel.installed,
            self._kernel.withheld,
        )
        tables, next_hops = self._intent.kernel_tables, self._intent.kernel_next_hops
        settings = self._intent.kernel_settings
        with self._database.write(tables, next_hops, settings) as txn:
            rows = table_rows(wanted, installed, withheld, self._options.protocol)
            replace_all(txn, tables, rows)
            replace_all(txn, next_hops, next_hop_rows(wanted))
            replace_all(txn, settings, (settings_row(self._options, wanted, installed),))
