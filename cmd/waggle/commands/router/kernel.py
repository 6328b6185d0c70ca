"""Installs the received routes of a router in the kernel (`kernel` of its file), as an agent does.

The reconciler, its writer and the jobs that feed them are the agent's (`cells.kernel`); the rows of the
intent that they read are made of the file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from cells.api.resource import ApiAction, ApiResource
from cells.apply.reconcile import reconcile
from cells.apply.session_readings import NextHopWriter, SessionReadings
from cells.hive import Group
from cells.intent.installing_dialects import InstallingDialects
from cells.kernel.api import approve_action, kernel_route_resource
from cells.kernel.cell import WriterJob
from cells.kernel.following import (
    BestPathFollower,
    DeferralJob,
    HostFollower,
    NextHopFollower,
    SessionFollower,
)
from cells.kernel.reachability import ReachabilityCheck
from cells.options import NodeOptions
from cells.sources.host import HostNeed, HostWatch
from cells.state.node import ThisNode
from reconcilers.intent.host_needs import HostDemand
from reconcilers.kernel.options import FibOptions
from reconcilers.kernel.reconciler import KernelReconciler
from reconcilers.kernel.writer.client import WriterClient
from reconcilers.target.runner import Runner
from speaker.api import Event
from speaker.server import Speaker
from waggle.commands.router.file_rows import FileRows
from waggle.commands.router.jobs import RouterJobs, SessionEvents
from waggle.router_config import INSTANCE, Config

if TYPE_CHECKING:
    from cells.speaker.events import SpeakerEvents


class RouterKernel:
    """The kernel's routes of one router."""

    def __init__(
        self, speaker: Speaker, options: FibOptions, report: Callable[[str], None]
    ) -> None:
        """``report`` prints a line."""
        self._events = SessionEvents()
        self._rows = FileRows()
        self._jobs = RouterJobs("kernel", report, "routes are no longer installed")
        database, tables, intent = self._rows.database, self._rows.tables, self._rows.intent
        health, jobs, events = (
            self._jobs.health,
            self._jobs.jobs,
            cast("SpeakerEvents", self._events),
        )
        client = WriterClient("waggle router")
        kernel = KernelReconciler(database, intent, client, options, lambda _: True)
        runner = Runner(database, None, [kernel], name="kernel")
        self._node = ThisNode(NodeOptions(name=INSTANCE))
        check = ReachabilityCheck(database, tables, kernel, None, self._node, options, health, jobs)
        self.resource: ApiResource = kernel_route_resource(self._node, kernel)
        """The routes, in the API."""
        self.approve: ApiAction = approve_action(self._node, kernel, check)
        demand = HostDemand(tables, (), INSTANCE)
        HostWatch(database, tables, demand, Group((HostNeed(),)), health, jobs)
        BestPathFollower(database, intent, speaker, kernel, options, health, jobs)
        HostFollower(database, tables, kernel, jobs)
        NextHopFollower(database, intent, speaker, kernel, jobs)
        SessionFollower(speaker, events, kernel, jobs)
        DeferralJob(database, intent, speaker, kernel, jobs)
        installing = InstallingDialects(frozenset())
        WriterJob(client, kernel, options, health, jobs, self._jobs.lifecycle, installing)
        jobs.add("rounds", lambda: reconcile(runner, lambda: None))
        SessionReadings(speaker, events, (NextHopWriter(database, intent),), jobs)

    def configure(self, config: Config) -> None:
        """Take the instance and the neighbours of a file."""
        self._node.name = config.router_id
        self._rows.configure(config)

    def event(self, event: Event) -> None:
        """Take an event of the speaker."""
        self._events.observable.on_next(event)

    async def start(self) -> None:
        """Start the writer, which takes the capability, and what feeds it."""
        await self._jobs.start().wait()

    async def stop(self) -> None:
        """End the jobs and the writer; routes stay, unless ``keep`` is false."""
        await self._jobs.stop()
