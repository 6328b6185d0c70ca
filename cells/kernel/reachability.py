"""The job that removes routes with which the node no longer reaches its cluster.

After routes were installed it connects to what the node reached before: the API server, other nodes,
DNS servers. If one of these is lost the routes are removed, and installed again. They were the cause,
and wait for approval, if what was lost is reached without them, and lost with them once more: a server
that restarts meanwhile is not.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Final

import structlog

from cells.hive import Health
from cells.hive.jobs import WITHOUT_END, Jobs
from cells.hive.signal import Signal
from cells.sources.api_server import Kubernetes
from cells.state.node import ThisNode
from reconcilers.intent.service_addresses.cluster_networks import networks_of_tables
from reconcilers.kernel.options import FibOptions
from reconcilers.kernel.reachability import Target, targets
from reconcilers.kernel.reconciler import KernelReconciler
from reconcilers.kernel.withheld_routes import Batch, routes_of
from resources.core.kinds import CONFIG_MAP
from resources.enumeration import counted, enumerate_objects
from resources.tables import Tables
from statedb import Database

CONNECT_SECONDS: Final = 1.0
SETTLE_SECONDS: Final = 0.3
"""From the writer's last confirmation to the check."""
ATTEMPTS: Final = 3
PAUSE_SECONDS: Final = 0.5
"""Between two attempts."""
BASELINE_SECONDS: Final = 30.0
"""Between two probes of all targets, unless a check finds another reason."""
ADDRESSES_SECONDS: Final = 2.0
"""From a change of the addresses of nodes to the first probe of new addresses."""
INTERVAL_SECONDS: Final = 2.0
"""From one check to the next one, while routes are installed all the time."""
RESOLV_CONF: Final = Path("/etc/resolv.conf")

log = structlog.get_logger("waggle.kernel")


async def is_reached(target: Target) -> bool:
    """Connect by TCP; a host that refuses is reached, too."""
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(target.address, target.port)
    except (ConnectionRefusedError, ConnectionResetError):
        return True
    except (OSError, ValueError):
        # An invalid name is a ValueError.
        return False
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return True


class ReachabilityCheck:
    """Checks after each batch of routes."""

    def __init__(
        self,
        database: Database,
        tables: Tables,
        kernel: KernelReconciler,
        kubernetes: Kubernetes | None,
        node: ThisNode,
        options: FibOptions,
        health: Health,
        jobs: Jobs,
    ) -> None:
        self._database = database
        self._tables = tables
        self._kernel = kernel
        self._kubernetes = kubernetes
        self._node = node.name
        self._health = health.scope("reachability")
        self._is_reached: Callable[[Target], Awaitable[bool]] = is_reached
        self._settle, self._pause = SETTLE_SECONDS, PAUSE_SECONDS
        self._probe_due = 0.0
        """When all targets are probed again, by the clock of the loop."""
        self._unreached = ""
        """The targets that were not reached with the withheld routes, as text."""
        self._known: frozenset[Target] = frozenset()
        """The targets of the last attempt."""
        self._read_at: tuple[int, int] = (0, 0)
        """The revisions of the tables with addresses of nodes that were read last."""
        self.reached: frozenset[Target] = frozenset()
        """The targets that were reached last."""
        self.approved = False
        """True if the next routes are installed whatever is reached with them."""
        if options.check:
            jobs.add("reachability", self._run, policy=WITHOUT_END)

    def approve(self) -> Batch:
        """Install the routes that are withheld, whatever is reached with them; returns them."""
        self.approved = bool(self._kernel.withheld.count)
        released = self._kernel.withheld.release()
        self._report()
        return released

    async def _run(self) -> None:
        tables = (self._tables.nodes, self._tables.of(CONFIG_MAP))
        sources = (table.observable for table in tables)
        with Signal(self._kernel.changed, *sources) as signal:
            clock = asyncio.get_running_loop().time
            read_at = 0.0
            while True:
                if clock() >= self._probe_due:
                    self._probe_due = clock() + BASELINE_SECONDS
                    await self.probe()
                    read_at = clock()
                elif self._has_new_addresses and clock() >= read_at + ADDRESSES_SECONDS:
                    read_at = clock()
                    await self._probe_new()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout_at(self._probe_due) as limit:
                        while not self._kernel.withheld.is_due:
                            if self._has_new_addresses:
                                limit.reschedule(min(self._probe_due, read_at + ADDRESSES_SECONDS))
                            await signal.wait()
                if self._kernel.withheld.is_due:
                    await self.check()
                    await asyncio.sleep(INTERVAL_SECONDS)

    async def check(self) -> None:
        """Check the routes that were installed since the last time."""
        await self._settled()
        installed = self._kernel.withheld.take_unchecked()
        approved, self.approved = self.approved, False
        if approved:
            self.reached -= await self._lost(self.reached)
            self._probe_due = 0.0
        if approved or not installed or not (lost := await self._lost(self.reached)):
            return
        batch = routes_of(installed)
        if await self._without(batch, lost) == lost:
            cause = frozenset[Target]()
        else:
            # A server that has restarted is not lost with them again.
            self._kernel.withheld.release(batch)
            await self._settled()
            cause = await self._lost(lost)
            batch = routes_of(self._kernel.withheld.take_unchecked()) if cause else batch
            cause -= await self._without(batch, cause) if cause else cause
        names = enumerate_objects(sorted(map(str, cause or lost)))
        if not cause:
            log.warning(
                "what the node reached before is lost, for another reason than routes",
                event_name="kernel.unreached",
                addresses=names,
            )
            self._kernel.withheld.release(batch)
            self.reached -= lost
            self._probe_due = 0.0
            return
        log.error(
            "routes were removed: with them the node does not reach its cluster",
            event_name="kernel.withheld",
            routes=sum(map(len, batch.values())),
            addresses=names,
        )
        self._unreached = names
        self._report()

    async def _without(self, batch: Batch, some: Iterable[Target]) -> frozenset[Target]:
        """Remove routes; return the targets that are not reached without them."""
        self._kernel.withheld.withhold(batch)
        await self._settled()
        return await self._lost(some)

    def _report(self) -> None:
        count = self._kernel.withheld.count
        if count:
            self._health.degraded(
                f"not installed: {counted(count, 'route')}, with which the node does not reach "
                f"{self._unreached}; to install them: waggle routes kernel --approve"
            )
        else:
            reached = counted(len(self.reached), "address", "addresses")
            self._health.ok(f"reaches {reached} of the cluster")

    async def probe(self) -> None:
        """Probe all targets.

        A target that was reached stays so while routes are unchecked: they may be the reason.
        """
        known = await self._targets()
        reached = known - await self._lost(known, attempts=1)
        if self._kernel.withheld.is_due:
            reached |= known & self.reached
        self.reached = reached
        self._report()

    async def _probe_new(self) -> None:
        """Probe the targets that are new since the last probe."""
        former = self._known
        new = await self._targets() - former
        if new:
            self.reached |= new - await self._lost(new, attempts=1)
            self._report()

    @property
    def _has_new_addresses(self) -> bool:
        return self._revisions() != self._read_at

    def _revisions(self) -> tuple[int, int]:
        snapshot, tables = self._database.snapshot(), self._tables
        return tables.nodes.revision(snapshot), tables.of(CONFIG_MAP).revision(snapshot)

    async def _targets(self) -> frozenset[Target]:
        self._read_at = self._revisions()
        nodes, own, url, text = await self._addresses()
        self._known = frozenset(targets(url, nodes, own, text))
        return self._known

    async def _addresses(self) -> tuple[set[str], set[str], str, str]:
        snapshot = self._database.snapshot()
        published = (row.data.get("nodes", "") for row in self._tables.of(CONFIG_MAP).all(snapshot))
        nodes = {*networks_of_tables(self._tables, snapshot).nodes, *" ".join(published).split()}
        own = set(networks_of_tables(self._tables, snapshot, self._node).nodes)
        url = "" if self._kubernetes is None else self._kubernetes.source.server
        try:
            text = await asyncio.to_thread(RESOLV_CONF.read_text)
        except (OSError, UnicodeDecodeError):
            text = ""
        return nodes, own, url, text

    async def _lost(self, some: Iterable[Target], attempts: int = ATTEMPTS) -> frozenset[Target]:
        """Return the targets that no attempt reaches."""
        lost = list(some)
        for attempt in range(attempts):
            if attempt and lost:
                await asyncio.sleep(self._pause)
            answers = await asyncio.gather(*map(self._is_reached, lost))
            lost = [target for target, reached in zip(lost, answers, strict=True) if not reached]
        return frozenset(lost)

    async def _settled(self) -> None:
        """Wait until the writer has confirmed all routes."""
        while True:
            await asyncio.sleep(self._settle)
            if not self._kernel.installed.pending:
                return
