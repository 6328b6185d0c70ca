"""BFD sessions of the router's neighbours: their process, and what a lost path does to BGP.

The reconciler and what follows the process are the agent's (`cells.bfd`); the rows of the intent that
they read are made of the file.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from msgspec.structs import replace

from cells.api.model import BfdItem
from cells.apply.reconcile import reconcile
from cells.bfd.following import PROGRAM, BfdClient, BfdFollower
from cells.hive.child_process import ChildEndedError, ChildProcess, stay_connected
from cells.hive.jobs import WITHOUT_END
from cells.serve.bfd import bfd_items
from reconcilers.bfd.process.process_messages import CODEC, Change, Hello
from reconcilers.bfd.reconciler import BfdReconciler
from reconcilers.target import Runner
from resources.enumeration import enumerate_objects
from speaker.api import DynamicPeerConfig, Event, PeerConfig
from speaker.bfd.session_values import Key
from speaker.server import Speaker
from waggle.commands.router.file_rows import FileRows
from waggle.commands.router.jobs import RouterJobs, SessionEvents
from waggle.router_config import INSTANCE, Config

if TYPE_CHECKING:
    from cells.speaker.events import SpeakerEvents

COMMAND: Final = (sys.executable, "-m", "waggle_bfd", "--at-end", "admin-down", "--alone", "10")
MEMORY: Final = Path("/dev/shm")  # noqa: S108  of the operating system: what a process leaves there
WAITS: Final = "BFD is not Up, for which this neighbor waits (strict)"
RESTART_SECONDS: Final = 1.0
"""The pause before a process that has ended is started again."""


class RouterBfd:
    """The sessions of the neighbours that the file has BFD for."""

    def __init__(
        self,
        speaker: Speaker,
        report: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``report`` takes sentences for people."""
        self._speaker = speaker
        self._report = report
        self._rows = FileRows()
        self._router_id = ""
        self._strict: dict[str, PeerConfig] = {}
        """Neighbours that wait for BFD, by name."""
        self._keys: dict[str, Key] = {}
        """The keys of sessions, by the name of the neighbour."""
        self._socket: str | None = None
        database, intent = self._rows.database, self._rows.intent
        # A log line of each change would say again what is reported.
        self._jobs = RouterJobs("bfd", report, "sessions end no BGP session", logging.ERROR)
        self._events = SessionEvents()
        self.client = BfdClient(CODEC, Hello("waggle router"))
        self.sessions = BfdReconciler(
            database,
            intent,
            self._rows.tables,
            self.client.send,
            clock,
            keys=lambda _, peer: self._keys.get(peer),
        )
        self.follower = BfdFollower(
            database,
            intent,
            speaker,
            cast("SpeakerEvents", self._events),
            self.client,
            self.sessions,
            self._jobs.health,
            self._jobs.jobs,
            clock,
        )
        self.runner = Runner(database, None, [self.sessions], name="bfd")
        self.follower.changes.subscribe(self._report_change)
        intent.bfd_sessions.observable.subscribe(lambda _: self._hold())
        self._jobs.jobs.add("rounds", lambda: reconcile(self.runner, lambda: None))
        self._jobs.jobs.add("process", self._stay_connected, policy=WITHOUT_END)

    # The file

    def configured(self, config: Config) -> None:
        """Set the sessions of a file; call it before the speaker has its neighbours."""
        self._router_id = config.router_id
        self._socket = config.bfd_socket
        peers = [peer for peer in config.peers() if isinstance(peer, PeerConfig)]
        self._strict = {peer.name: peer for peer in peers if peer.bfd and peer.bfd.strict}
        self._keys = config.bfd_keys()
        self._rows.configure(config)
        self.sessions.keys_changed()

    def held(self, peer: PeerConfig | DynamicPeerConfig) -> PeerConfig | DynamicPeerConfig:
        """Return a neighbour as the speaker has it: down while it waits for BFD."""
        if peer.name in self._strict and self.follower.holds(INSTANCE, peer.name):
            # Meanwhile the routes stay that a restarting neighbor has left.
            return replace(peer, disabled_reason=WAITS, disabled_for_a_while=True)
        return peer

    def _hold(self) -> None:
        """Let strict neighbours wait, or no longer."""
        for name, peer in self._strict.items():
            held = self.held(peer)
            present = self._speaker.peer_config(INSTANCE, name)
            if present is not None and present != held:
                self._speaker.set_peer(INSTANCE, held)

    # The process

    def start(self) -> None:
        """Start the jobs, and with them the process."""
        self._jobs.start()

    async def stop(self) -> None:
        """End the sessions: their neighbours keep BGP, which is ended by itself."""
        await self._jobs.stop()

    async def _stay_connected(self) -> None:
        """Stay connected to the process; a process of this router is started again when it ends."""
        health = self._jobs.health.scope("process")
        if self._socket is not None:
            await stay_connected(self._socket, lambda: self.client, health, PROGRAM)
        memory = MEMORY if MEMORY.is_dir() else None
        with tempfile.TemporaryDirectory(prefix=f"{PROGRAM}-", dir=memory) as directory:
            command = (*COMMAND, "--state-directory", directory)
            while True:
                try:
                    await ChildProcess(PROGRAM, command, lambda: self.client, health).run()
                except (ChildEndedError, OSError) as error:
                    self._report(f"bfd: {error}")
                await asyncio.sleep(RESTART_SECONDS)

    def _report_change(self, change: Change) -> None:
        names = enumerate_objects(name for _, name in self.sessions.peers_of(change.key))
        self._report(f"{names or change.key.peer}: BFD {change.after}")

    # BGP

    def event(self, event: Event) -> None:
        """Take an event of the speaker."""
        self._events.observable.on_next(event)

    # The API

    def items(self, peer: str | None, instance: str | None) -> list[BfdItem]:
        """Return the sessions as the API has them."""
        database, intent = self._rows.database, self._rows.intent
        return bfd_items(self._router_id, database, intent, peer, instance)
