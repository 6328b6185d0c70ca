"""Installs the received routes of a router in the kernel (`kernel` of its file), as an agent does.

The reconciler, its writer and the jobs that feed them are the agent's (`cells.kernel`); the rows of the
intent that they read are made of the file.
"""

from __future__ import annotations

import asyncio
import logging
import random
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, cast

import structlog
from reactivex.subject import Subject

from cells.api.resource import ApiAction, ApiResource
from cells.apply.session_readings import (
    INTERVAL_SECONDS,
    POLL_INTERVAL_SECONDS,
    NextHopWriter,
)
from cells.hive import Group, Health
from cells.hive.health import Level
from cells.hive.jobs import Jobs, Supervisor
from cells.hive.lifecycle import Lifecycle
from cells.hive.rounds import in_slices, run_rounds
from cells.hive.signal import Signal
from cells.kernel.api import approve_action, kernel_route_resource
from cells.kernel.cell import Writer
from cells.kernel.following import (
    BestPathFollower,
    DeferralJob,
    HostFollower,
    NextHopFollower,
    SessionFollower,
)
from cells.kernel.reachability import ReachabilityCheck
from cells.node import ThisNode
from cells.options import NodeOptions
from cells.sources.host import HostNeed, HostWatch
from reconcilers.dialect import Dialect
from reconcilers.intent.host_needs import HostDemand
from reconcilers.kernel.options import FibOptions
from reconcilers.kernel.reconciler import KernelRoutes
from reconcilers.kernel.writer.client import WriterClient
from reconcilers.model import Instance, Peer, PrefixRule
from reconcilers.tables import IntentTables
from reconcilers.target.runner import Runner
from resources.tables import Tables
from speaker.api import Event, PeerConfig, Policy
from speaker.server import Speaker
from statedb import Database
from waggle.commands.router.config import INSTANCE, Config

if TYPE_CHECKING:
    from cells.speaker.events import SpeakerEvents

REPORT_SECONDS: Final = 1.0
"""Between two readings of the health."""


class SessionEvents:
    """The speaker's events, for jobs that follow sessions."""

    def __init__(self) -> None:
        self.observable: Subject[Event] = Subject()


class RouterKernel:
    """The kernel's routes of one router."""

    def __init__(
        self, speaker: Speaker, options: FibOptions, report: Callable[[str], None]
    ) -> None:
        """``report`` prints a line."""
        self._report = report
        self._speaker = speaker
        self._events = SessionEvents()
        self._task: asyncio.Task[None] | None = None
        self._health = Health()
        self._lifecycle = Lifecycle()
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._supervisor = Supervisor(self._give_up, random.Random())  # noqa: S311  jitter
        jobs = Jobs("kernel", self._supervisor, self._lifecycle, self._health)
        database = self._database = Database()
        tables, self._intent = Tables(database), IntentTables(database)
        client = WriterClient("waggle router")
        kernel = KernelRoutes(database, self._intent, client, options, lambda _: True)
        self._runner = Runner(database, None, [kernel], name="kernel")
        self._node = ThisNode(NodeOptions(name=INSTANCE))
        check = ReachabilityCheck(
            database, tables, kernel, None, self._node, options, self._health, jobs
        )
        self.resource: ApiResource = kernel_route_resource(self._node, kernel)
        """The routes, in the API."""
        self.approve: ApiAction = approve_action(self._node, kernel, check)
        demand = HostDemand(database, tables, (), INSTANCE)
        HostWatch(database, tables, demand, Group((HostNeed(),)), self._health, jobs)
        BestPathFollower(database, self._intent, speaker, kernel, options, self._health, jobs)
        HostFollower(database, tables, kernel, jobs)
        NextHopFollower(database, self._intent, speaker, kernel, jobs)
        SessionFollower(speaker, cast("SpeakerEvents", self._events), kernel, jobs)
        DeferralJob(database, self._intent, speaker, kernel, jobs)
        dialects: Group[Dialect] = Group()
        Writer(client, kernel, options, self._health, jobs, self._lifecycle, dialects)
        jobs.add("rounds", self._rounds)
        jobs.add("session-readings", self._read_sessions)
        jobs.add("report", self._report_problems)

    def configure(self, config: Config) -> None:
        """Take the instance and the neighbours of a file."""
        instances, peers, next_hops = (
            self._intent.instances,
            self._intent.peers,
            self._intent.next_hops,
        )
        self._node.name = config.router_id
        rows = {
            peer.name: Peer(
                INSTANCE, peer.name, peer.address, peer.interface, 0, accept=_accepted(peer)
            )
            for peer in config.peers()
            if isinstance(peer, PeerConfig)
        }
        instance = Instance(INSTANCE, config.vrf, config.asn, config.router_id, dialect=INSTANCE)
        with self._database.write(instances, peers, next_hops) as txn:
            instances.upsert(txn, instance)
            for row in list(peers.all(txn)):
                if row.name not in rows:
                    peers.delete(txn, (row.instance, row.name))
                    next_hops.delete(txn, (row.instance, row.name))
            for row in rows.values():
                peers.upsert(txn, row)

    def event(self, event: Event) -> None:
        """Take an event of the speaker."""
        self._events.observable.on_next(event)

    async def start(self) -> None:
        """Start the writer, which takes the capability, and what feeds it."""
        # Standard output has the line of each listening address.
        structlog.configure(
            wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
            logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        )
        started = asyncio.Event()
        self._task = asyncio.create_task(self._run(started))
        self._task.add_done_callback(lambda _: started.set())
        await started.wait()

    async def stop(self) -> None:
        """End the jobs and the writer; routes stay, unless ``keep`` is false."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _run(self, started: asyncio.Event) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                self._supervisor.bind(group)
                await self._lifecycle.start()
                started.set()
                try:
                    await self._failed
                finally:
                    await self._lifecycle.stop()
        except Exception as error:  # noqa: BLE001  the sessions go on
            self._report(f"kernel: routes are no longer installed: {error}")

    def _give_up(self, error: Exception) -> None:
        if not self._failed.done():
            self._failed.set_exception(error)

    async def _rounds(self) -> None:
        loop = asyncio.get_running_loop()

        async def run(_: float | None) -> float | None:
            summary = await in_slices(self._runner.slices(loop.time))
            return None if summary.retry_at is None else max(0.0, summary.retry_at - loop.time())

        await run_rounds(Signal(*self._runner.wakes()), run)

    async def _read_sessions(self) -> None:
        """Write the next hops of received routes, of which the metrics are looked up."""
        writer = NextHopWriter(self._database, self._intent)

        async def read(_: float | None) -> None:
            writer.write(self._speaker.peers())

        await run_rounds(
            Signal(self._events.observable),
            read,
            interval=INTERVAL_SECONDS,
            poll=POLL_INTERVAL_SECONDS,
        )

    async def _report_problems(self) -> None:
        """Print what becomes wrong, and that it is over."""
        known: dict[tuple[str, ...], str] = {}
        while True:
            present = {
                status.path: status.message
                for status in self._health.report()
                if status.level is Level.DEGRADED
            }
            for path, message in present.items():
                if known.get(path) != message:
                    self._report(f"kernel: {message}")
            for path in known.keys() - present.keys():
                self._report(f"kernel: {' '.join(path)}: ok")
            known = present
            await asyncio.sleep(REPORT_SECONDS)


def _accepted(peer: PeerConfig) -> tuple[PrefixRule, ...] | None:
    """Return what a neighbour's import policy names: the kernel has a default route if it is named."""
    if not isinstance(peer.import_, Policy):
        return () if peer.import_ == "none" else None
    named = [rule for term in peer.import_.terms for rule in term.match.prefixes or ()]
    return tuple(PrefixRule(rule.prefix, rule.ge, rule.le) for rule in named) or None
