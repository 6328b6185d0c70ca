"""The host cell: the kernel's interfaces and default routes, for objects that refer to them.

The netlink library is loaded once an object refers to the host. A netlink failure shows in health, and
the job is retried.
"""

from __future__ import annotations

from cells.hive import Group, Health, Wiring
from cells.hive.jobs import Jobs
from cells.hive.signal import Signal
from cells.node import ThisNode
from cells.sources.gateways import GatewayWatch
from reconcilers.dialect import Dialect
from reconcilers.intent import host_needs
from resources.host import Host
from resources.tables import Tables
from statedb import Database, Initializer


class HostNeed:
    """A member of this group needs the kernel's interfaces, whatever the objects refer to."""


class HostWatch:
    """The job that reads the kernel's state by netlink."""

    def __init__(
        self,
        database: Database,
        tables: Tables,
        dialects: Group[Dialect],
        needs: Group[HostNeed],
        node: ThisNode,
        health: Health,
        jobs: Jobs,
    ) -> None:
        self._dialects = dialects
        self._needs = needs
        self._database = database
        self._tables = tables
        self._node = node.name
        self._health = health
        # The first round of intent waits for it where an object refers to the host.
        self._first: Initializer | None = tables.host.register_initializer("netlink")
        jobs.add("netlink", self._run)

    async def _run(self) -> None:
        self._health.ok("nothing refers to an interface or a default route")
        tables = host_needs.followed(self._tables, self._dialects)
        with Signal(*(table.observable for table in tables)) as signal:
            while not self._is_needed():
                await signal.wait()
        # Only now: the library takes as much memory as the rest of the agent.
        from resources.host import netlink

        try:
            await netlink.watch(self._found)
        except OSError:
            # Objects that do not refer to the host must not wait for it.
            self._store(None)
            raise

    def _is_needed(self) -> bool:
        if self._needs:
            return True
        snapshot = self._database.snapshot()
        return host_needs.is_host_needed(
            self._tables, self._dialects, snapshot, self._node, self._report_failure
        )

    def _report_failure(self, dialect: str, error: Exception) -> None:
        self._health.degraded(f"{dialect} cannot be evaluated: {type(error).__name__}: {error}")

    def _store(self, host: Host | None) -> None:
        with self._database.write(self._tables.host) as txn:
            if host is not None and self._tables.host.get(txn, host.key) != host:
                self._tables.host.upsert(txn, host)
            if self._first is not None:
                self._first(txn)
                self._first = None

    def _found(self, host: Host) -> None:
        self._store(host)
        self._health.ok(
            f"{len(host.devices)} interfaces, {len(host.default_routes)} default routes"
        )


WIRING = Wiring(
    invokes=(HostWatch, GatewayWatch),
)
