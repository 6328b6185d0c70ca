"""The job of the host cell that reads the gateways of default routes: no Service may use them.

It needs no netlink library: a dump of the routing tables now and then is enough, as gateways hardly
ever change. On a node with many routes it is read less often.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from cells.hive import Health
from cells.hive.jobs import Jobs
from resources.host import Gateway
from resources.host.default_routes import default_gateways
from resources.row_updates import replace_some
from resources.tables import Tables
from statedb import Database, Initializer

POLL_INTERVAL_SECONDS: Final = 30.0
RESTS: Final = 200
"""Times as long as a reading takes until the next one, at least."""


class GatewayWatch:
    """Writes the table of gateways."""

    def __init__(
        self,
        database: Database,
        tables: Tables,
        health: Health,
        jobs: Jobs,
        read: Callable[[], frozenset[str]] = default_gateways,
    ) -> None:
        self._database = database
        self._table = tables.gateways
        self._health = health.scope("gateways")
        self._read = read
        # The first round of intent waits for it.
        self._first: Initializer | None = tables.gateways.register_initializer("kernel")
        jobs.add("gateways", self._run)

    async def _run(self) -> None:
        while True:
            began = time.monotonic()
            try:
                gateways = await asyncio.to_thread(self._read)
            except OSError as error:
                # The known gateways remain.
                self._health.stopped(f"the default gateways cannot be read: {error}")
                self._store(None)
            else:
                self._store(gateways)
                self._health.ok(f"{len(gateways)} default gateways")
            took = time.monotonic() - began
            await asyncio.sleep(max(POLL_INTERVAL_SECONDS, RESTS * took))

    def _store(self, gateways: frozenset[str] | None) -> None:
        known = set(self._table.all(self._database.snapshot()))
        rows = known if gateways is None else {Gateway(text) for text in gateways}
        if rows == known and self._first is None:
            return
        with self._database.write(self._table) as txn:
            replace_some(txn, self._table, known - rows, rows - known)
            if self._first is not None:
                self._first(txn)
                self._first = None
