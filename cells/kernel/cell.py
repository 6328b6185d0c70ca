"""The kernel cell: received routes in the kernel's tables, and the process that writes them."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import structlog

from cells.hive import Group, Health, Wiring, provide
from cells.hive.capabilities import NET_ADMIN, give_up
from cells.hive.child_process import ChildProcess, stay_connected
from cells.hive.jobs import WITHOUT_END, Jobs
from cells.hive.lifecycle import Lifecycle
from cells.intent.installing_dialects import InstallingDialects
from cells.kernel.api import approve_action, kernel_route_resource
from cells.kernel.following import (
    BestPathFollower,
    DeferralJob,
    HostFollower,
    NextHopFollower,
    SessionFollower,
)
from cells.kernel.inputs import kernel_inputs_resource
from cells.kernel.metrics import KernelMetrics
from cells.kernel.reachability import ReachabilityCheck
from cells.kernel.state import KernelState
from cells.observability.metrics import MetricsCollector
from cells.sources.host import HostNeed
from cells.sources.kernel_routes import OwnProtocol
from cells.sources.resources import ApplyTraceLinks
from reconcilers.dialect import Dialect
from reconcilers.intent_tables import IntentTables
from reconcilers.kernel.options import Fib, FibOptions
from reconcilers.kernel.reconciler import KernelReconciler
from reconcilers.kernel.writer.client import WriterClient
from reconcilers.kernel.writer.protocol_messages import Goodbye
from reconcilers.model import Instance
from reconcilers.target import Reconciler
from resources.enumeration import counted
from statedb import Database

log = structlog.get_logger("waggle.kernel")

WRITER: Final = "waggle-kernel"
GOODBYE_SECONDS: Final = 2.0
"""For the writer to remove all routes at the end of the agent."""
ANSWER_POLL_SECONDS: Final = 2.0
"""Poll interval of whether the writer answers."""


def make_client() -> WriterClient:
    """Return the agent's end of the connection to the writer."""
    return WriterClient("waggle-agent")


def make_installing_dialects(dialects: Group[Dialect], options: FibOptions) -> InstallingDialects:
    """Return the dialects whose peers' routes are installed."""
    return InstallingDialects(options.installing(dialects))


def make_kernel_routes(
    database: Database,
    intent_tables: IntentTables,
    client: WriterClient,
    installing: InstallingDialects,
    options: FibOptions,
    trace_links: ApplyTraceLinks,
) -> KernelReconciler:
    """Return the reconciler."""

    def installs(row: Instance) -> bool:
        return row.dialect in installing.dialects

    return KernelReconciler(database, intent_tables, client, options, installs, causes=trace_links)


def make_own_protocol(options: FibOptions) -> OwnProtocol:
    """Return the protocol of installed routes."""
    return OwnProtocol(options.protocol)


class WriterJob:
    """The job that runs the writer, or stays connected to a writer in a container of its own."""

    def __init__(
        self,
        client: WriterClient,
        kernel: KernelReconciler,
        options: FibOptions,
        health: Health,
        jobs: Jobs,
        lifecycle: Lifecycle,
        installing: InstallingDialects,
    ) -> None:
        self._client = client
        self._kernel = kernel
        self._options = options
        self._health = health.scope("writer")
        self._routes = health.scope("kernel")
        self._capability = health.scope("capability")
        self._gave_up = False
        self._child: ChildProcess | None = None
        if options.socket is None:
            command = (sys.executable, "-m", "waggle_kernel")
            self._child = ChildProcess(
                WRITER, command, lambda: client, self._health, started=self._give_up_capability
            )
            # A thread that another part starts would keep the capability.
            lifecycle.append("writer", reserve=self._child.start, stop=self._child.stop, first=True)
        kernel.changed.subscribe(lambda _: self._report())
        jobs.add("writer", self._run, policy=WITHOUT_END)
        jobs.add("answers", self._watch_answers)
        # Hooks run in the opposite order: before the end of the job, and of the connection with it.
        lifecycle.append("goodbye", stop=self._goodbye)
        self._installing = installing
        lifecycle.append("choice", start=self._log_choice)

    async def _run(self) -> None:
        if self._child is not None:
            await self._child.run()
        elif self._options.socket is not None:
            await stay_connected(
                str(Path(self._options.socket)), lambda: self._client, self._health, WRITER
            )

    async def _log_choice(self) -> None:
        log_choice(self._options.fib, sorted(self._installing.dialects))

    def _give_up_capability(self) -> None:
        """Leave CAP_NET_ADMIN to the writer: its keeper starts another writer that has it, too."""
        if self._gave_up:
            # Nothing has the capability any more that could start a writer with it.
            self._capability.degraded(
                f"{WRITER} was killed with the process that keeps NET_ADMIN for it: routes stay as "
                "they are, and are written again when the agent is started again"
            )
            return
        try:
            self._gave_up = give_up(NET_ADMIN)
        except OSError as error:
            reason = error.strerror or str(error)
            self._capability.degraded(
                f"the agent keeps NET_ADMIN, which it does not need: {reason}"
            )

    async def _goodbye(self) -> None:
        """Without --fib-keep: have the writer remove the routes, after which it disconnects."""
        if self._options.keep:
            return
        self._client.send(Goodbye())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GOODBYE_SECONDS):
                await self._client.disconnected()

    async def _watch_answers(self) -> None:
        """Report a writer that hangs, until it goes on."""
        reported = ""
        while True:
            await asyncio.sleep(ANSWER_POLL_SECONDS)
            if self._hanging != reported:
                reported = self._hanging
                self._report()

    @property
    def _hanging(self) -> str:
        """The fault of a connected writer that does not answer; its job reports a lost one."""
        return self._kernel.installed.answers.problem if self._client.is_connected else ""

    def _report(self) -> None:
        installed = self._kernel.installed
        failures = installed.failures.counts()
        problem = (
            installed.health
            or self._hanging
            or ", ".join(
                [
                    *self._kernel.wanted_tables.problems(),
                    *(
                        f"{counted(count, 'route')}: {reason}"
                        for reason, count in sorted(failures.items())
                    ),
                ]
            )
        )
        if problem:
            self._routes.degraded(problem)
        elif installed.listed:
            total = sum(map(installed.count, installed.tables))
            self._routes.ok(counted(total, "route"))


def log_choice(fib: Fib, installing: Sequence[str]) -> None:
    """Log whether routes are installed; ``installing``: the dialects whose routes are."""
    shown = "default" if fib is None else str(fib).lower()
    if not installing and fib is not True:
        log.info(
            "received routes are not installed in the kernel; routes of an earlier run are removed",
            event_name="kernel.off",
            reason=f"--fib={shown}",
        )
        return
    log.info(
        "received routes are installed in the kernel",
        event_name="kernel.on",
        dialects=",".join(installing),
        fib=shown,
    )


WIRING = Wiring(
    provides=(make_kernel_routes,),
    private=(make_installing_dialects, make_client, KernelMetrics, ReachabilityCheck),
    invokes=(
        BestPathFollower,
        HostFollower,
        NextHopFollower,
        SessionFollower,
        DeferralJob,
        KernelState,
        ReachabilityCheck,
        WriterJob,
    ),
    contributes=(
        make_installing_dialects,
        provide(make_kernel_routes, as_=Reconciler),
        provide(KernelMetrics, as_=MetricsCollector),
        HostNeed,
        make_own_protocol,
        kernel_route_resource,
        kernel_inputs_resource,
        approve_action,
    ),
)
