"""The host cell: the kernel's interfaces and routes, for objects that refer to them.

The netlink library is loaded once an object refers to the host. A netlink failure shows in health, and
the job is retried.
"""

from __future__ import annotations

from typing import Final

from cells.hive import Group, Health, Wiring
from cells.hive.jobs import WITHOUT_END, Jobs
from cells.hive.signal import Signal
from cells.sources.gateways import GatewayWatch
from cells.sources.kernel_routes import KernelRouteWatch
from reconcilers.intent.host_needs import HostDemand
from resources.enumeration import counted
from resources.host import Host
from resources.tables import Tables
from statedb import Database, Initializer

UNUSED: Final = "nothing refers to an interface or a default route"


class HostNeed:
    """A member of this group needs the kernel's interfaces, whatever the objects refer to."""


class HostWatch:
    """The job that reads the kernel's state by netlink."""

    def __init__(
        self,
        database: Database,
        tables: Tables,
        demand: HostDemand,
        needs: Group[HostNeed],
        health: Health,
        jobs: Jobs,
    ) -> None:
        self._database = database
        self._tables = tables
        self._demand = demand
        self._needs = needs
        self._health = health
        # The first round of intent waits for it where an object refers to the host.
        self._first: Initializer | None = tables.host.register_initializer("netlink")
        jobs.add("netlink", self._run, policy=WITHOUT_END)

    async def _run(self) -> None:
        self._health.ok(UNUSED)
        with Signal(self._demand.changes) as signal:
            while not self._needs and not self._demand.needed:
                await signal.wait()
                self._report_failures()
        try:
            # Only now: the library takes as much memory as the rest of the agent.
            from resources.host import netlink

            await netlink.watch(self._found)
        except Exception:
            # Objects that do not refer to the host must not wait for it.
            self._store(None)
            raise

    def _report_failures(self) -> None:
        failures = [
            f"{dialect} cannot be evaluated: {type(error).__name__}: {error}"
            for dialect, error in self._demand.failures.items()
        ]
        if failures:
            self._health.degraded(failures[0])
        else:
            self._health.ok(UNUSED)

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
            f"{counted(len(host.devices), 'interface')}, "
            f"{counted(len(host.default_routes), 'default route')}"
        )


WIRING = Wiring(
    invokes=(HostWatch, GatewayWatch, KernelRouteWatch),
)
