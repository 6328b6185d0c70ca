"""The BFD cell: the process with the sessions, and what it reports."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from cells.bfd.following import PROGRAM, BfdClient, BfdFollower
from cells.bfd.metrics import BfdMetrics
from cells.hive import Health, Wiring, provide
from cells.hive.child_process import ChildProcess, stay_connected
from cells.hive.jobs import WITHOUT_END, Jobs
from cells.intent.cell import BfdRunner
from cells.observability.metrics import MetricsCollector
from cells.sources.host import HostNeed
from reconcilers.bfd.options import BfdOptions
from reconcilers.bfd.process.process_messages import CODEC, Hello
from reconcilers.bfd.reconciler import BfdReconciler
from reconcilers.intent_tables import IntentTables
from reconcilers.target import Reconciler
from resources.tables import Tables
from statedb import Database

ALONE_SECONDS: Final = 600
"""After which a process that no agent connects to ends its sessions: agents have gone for good."""


def make_client() -> BfdClient:
    """Return the agent's end of the connection to the process."""
    return BfdClient(CODEC, Hello("waggle-agent"))


def make_sessions(
    database: Database, intent_tables: IntentTables, tables: Tables, client: BfdClient
) -> BfdReconciler:
    """Return the reconciler."""
    return BfdReconciler(database, intent_tables, tables, client.send)


class BfdProcessJob:
    """The job that starts the process, or stays connected to that of another container.

    BGP goes on without it, as without a process that runs and hangs.
    """

    def __init__(self, client: BfdClient, options: BfdOptions, health: Health, jobs: Jobs) -> None:
        self._client = client
        self._options = options
        self._health = health.scope("process")
        jobs.add("process", self._run, policy=WITHOUT_END)

    async def _run(self) -> None:
        socket = self._options.socket
        if socket is None:
            await self._child().run()
        else:
            await stay_connected(socket, lambda: self._client, self._health, PROGRAM)

    def _child(self) -> ChildProcess:
        directory = Path(self._options.directory)
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        command = (
            *(sys.executable, "-m", "waggle_bfd"),
            *("--state-directory", str(directory)),
            *("--least-interval", f"{self._options.least_interval:g}"),
            *("--alone", str(ALONE_SECONDS)),
        )
        return ChildProcess(
            PROGRAM,
            command,
            lambda: self._client,
            self._health,
            survives=directory / "bfd.sock",
        )


WIRING = Wiring(
    provides=(make_sessions,),
    private=(make_client, BfdMetrics),
    invokes=(BfdFollower, BfdProcessJob),
    contributes=(
        provide(make_sessions, as_=Reconciler),
        BfdRunner,
        provide(BfdMetrics, as_=MetricsCollector),
        HostNeed,
    ),
)
