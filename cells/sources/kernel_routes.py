"""The job of the host cell that reads routes of other programs, which objects redistribute.

A failure keeps the routes that are known, shows in health, and the job is retried.
"""

from __future__ import annotations

import asyncio
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from cells.hive import Group, Health
from cells.hive.jobs import WITHOUT_END, Jobs
from cells.hive.signal import Signal
from reconcilers.intent.host_needs import HostDemand
from resources.enumeration import counted
from resources.host import BGP_PROTOCOL, KernelRoute, KernelTable
from resources.host.redistributed import watch
from resources.row_updates import replace_some
from resources.tables import Tables
from statedb import Database, Initializer

NONE_NEEDED: Final = "no object redistributes routes of the kernel"


class OwnProtocol(NamedTuple):
    """The protocol of routes that this agent installs: they are never redistributed."""

    number: int


class KernelRouteWatch:
    """Writes the table of routes that other programs have installed."""

    def __init__(
        self,
        database: Database,
        tables: Tables,
        demand: HostDemand,
        own: Group[OwnProtocol],
        health: Health,
        jobs: Jobs,
    ) -> None:
        self._database = database
        self._table = tables.kernel_routes
        self._demand = demand
        self._received = {BGP_PROTOCOL, *(protocol.number for protocol in own)}
        self._health = health.scope("redistributed")
        # A round of intent that needs them waits for the first reading.
        self._first: Initializer | None = self._table.register_initializer("kernel")
        jobs.add("redistributed", self._run, policy=WITHOUT_END)

    async def _run(self) -> None:
        with Signal(self._demand.changes) as signal:
            while True:
                await signal.wait()
                tables = self._demand.kernel_tables
                if not tables:
                    self._health.ok(NONE_NEEDED)
                    self._store(frozenset())
                    continue
                try:
                    await self._follow(tables, signal)
                except Exception:
                    # Objects that redistribute nothing must not wait.
                    self._store(None)
                    raise

    async def _follow(self, tables: frozenset[KernelTable], signal: Signal) -> None:
        """Follow the routes of tables until others are needed. Raises `OSError`."""

        def store_foreign(routes: frozenset[KernelRoute]) -> None:
            # The AS paths of BGP's routes would be lost.
            others = {route for route in routes if route.protocol not in self._received}
            self._store(others)
            self._health.ok(f"{counted(len(others), 'route')} of other programs")

        watching = asyncio.ensure_future(watch(tables, store_foreign))
        try:
            while self._demand.kernel_tables == tables:
                waiting = asyncio.ensure_future(signal.wait())
                await asyncio.wait((watching, waiting), return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
                if watching.done():
                    await watching
        finally:
            watching.cancel()
            signal.raise_flag()

    def _store(self, routes: AbstractSet[KernelRoute] | None) -> None:
        """Write the routes; None keeps the known routes."""
        known = frozenset(self._table.all(self._database.snapshot()))
        wanted = known if routes is None else routes
        is_first = self._first is not None and (routes is None or self._demand.kernel_tables)
        if wanted == known and not is_first:
            return
        with self._database.write(self._table) as txn:
            replace_some(txn, self._table, known - wanted, wanted - known)
            if self._first is not None and is_first:
                self._first(txn)
                self._first = None
