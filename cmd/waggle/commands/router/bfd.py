"""BFD sessions of the router's neighbours: their process, and what a lost path does to BGP."""

from __future__ import annotations

import asyncio
import logging
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import structlog
from msgspec.structs import replace

from cells.api.model import BfdItem
from cells.hive.child_process import ChildEndedError, ChildProcess, stay_connected
from cells.hive.health import Health
from cells.serve.bfd import bfd_item
from reconcilers.bfd.coupling import Coupling, PathDown
from reconcilers.bfd.process.values import (
    CODEC,
    Change,
    Changes,
    Hello,
    Message,
    ProcessStatus,
    RemoveSessions,
    SessionStatus,
    SetSessions,
    Statuses,
    Wanted,
)
from reconcilers.bfd.rows import counters_row, process_row, session_row
from reconcilers.bfd.wanted import shared_settings, wanted_session
from reconcilers.bfd_session import BfdProcess
from reconcilers.model import Instance, Peer
from reconcilers.process.client import ProcessClient
from resources.host.network import Host
from speaker.api import (
    ESTABLISHED,
    DynamicPeerConfig,
    Event,
    PeerConfig,
    StateChanged,
    UnknownName,
)
from speaker.bfd.values import Key, SessionKey, Settings
from speaker.server import Speaker
from waggle.commands.router.config import INSTANCE, Config

PROGRAM: Final = "waggle-bfd"
COMMAND: Final = (sys.executable, "-m", "waggle_bfd", "--at-end", "admin-down", "--alone", "10")
MEMORY: Final = Path("/dev/shm")  # noqa: S108  of the operating system: what a process leaves there
WAITS: Final = "BFD is not Up, for which this neighbor waits (strict)"
CHECK_SECONDS: Final = 1.0
"""The interval at which neighbours on interfaces are looked up and lost paths judged again, and the
pause before a process that has ended is started again."""


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
        self._clock = clock
        self._peers: dict[str, tuple[PeerConfig, Peer]] = {}
        """The neighbours with BFD, by name."""
        self._secrets: dict[str, Key] = {}
        """The keys of sessions, by the name of the neighbour."""
        self._instance = Instance(INSTANCE, None, 0, "")
        self._addresses: dict[str, str | None] = {}
        """Of neighbours on interfaces."""
        self._wanted: dict[SessionKey, Settings] = {}
        self._keys: dict[str, SessionKey] = {}
        self._statuses: dict[SessionKey, SessionStatus] = {}
        self._process: ProcessStatus | None = None
        self._coupling = Coupling(self._peers_of)
        self._client: ProcessClient[Message] = ProcessClient(CODEC, Hello("waggle router"))
        self._client.follow(self._connected, self._received)
        self._said = ""

    # The file

    def configured(self, config: Config) -> None:
        """Have the sessions of a file; call it before the speaker has its neighbours."""
        self._instance = Instance(INSTANCE, config.vrf, config.asn, config.router_id)
        peers = [peer for peer in config.peers() if isinstance(peer, PeerConfig)]
        self._peers = {peer.name: (peer, _row(peer)) for peer in peers if peer.bfd is not None}
        self._secrets = config.bfd_keys()
        self._update()

    def held(self, peer: PeerConfig | DynamicPeerConfig) -> PeerConfig | DynamicPeerConfig:
        """Return a neighbour as the speaker has it: down while it waits for BFD."""
        if peer.bfd is None or not peer.bfd.strict:
            return peer
        waits = self._coupling.holds((INSTANCE, peer.name), self._keys.get(peer.name))
        return replace(peer, disabled_reason=WAITS) if waits else peer

    def _update(self) -> None:
        """Set the sessions that differ, and remove the others."""
        # A neighbour that is not heard on its interface any more keeps its session until BFD ends it.
        addresses = self._addresses = {
            status.name: status.address or self._addresses.get(status.name)
            for status in self._speaker.peers()
            if status.interface is not None
        }
        settings: dict[SessionKey, list[Settings]] = {}
        self._keys = {}
        for name, (_, row) in self._peers.items():
            session = wanted_session(row, self._instance, addresses.get(name), Host())
            if session is not None:
                self._keys[name] = session[0]
                with_key = replace(session[1], key=self._secrets.get(name))
                settings.setdefault(session[0], []).append(with_key)
        wanted = {key: shared_settings(of) for key, of in settings.items()}
        before, self._wanted = self._wanted, wanted
        changed = [Wanted(*item) for item in wanted.items() if before.get(item[0]) != item[1]]
        gone = tuple(before.keys() - wanted.keys())
        if changed:
            self._client.send(SetSessions(tuple(changed)))
        if gone:
            self._client.send(RemoveSessions(gone))
        self._coupling.forget(wanted)

    def _peers_of(self, key: SessionKey) -> list[tuple[str, str]]:
        return [(INSTANCE, name) for name, of in self._keys.items() if of == key]

    # The process

    async def run(self, socket: str | None) -> None:
        """Stay connected to the process; a process of this router is restarted when it ends."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._stay_connected(socket))
            while True:
                await asyncio.sleep(CHECK_SECONDS)
                self._check()

    async def _stay_connected(self, socket: str | None) -> None:
        # Standard output has the listening addresses alone.
        structlog.configure(
            wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
            logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        )
        health = Health()
        if socket is not None:
            await stay_connected(socket, lambda: self._client, health, PROGRAM)
        memory = MEMORY if MEMORY.is_dir() else None
        with tempfile.TemporaryDirectory(prefix=f"{PROGRAM}-", dir=memory) as directory:
            command = (*COMMAND, "--state-directory", directory)
            while True:
                try:
                    await ChildProcess(PROGRAM, command, lambda: self._client, health).run()
                except (ChildEndedError, OSError) as error:
                    self._report(f"bfd: {error}")
                await asyncio.sleep(CHECK_SECONDS)

    def _connected(self) -> None:
        self._client.send(SetSessions(tuple(map(Wanted, self._wanted, self._wanted.values()))))

    def _received(self, message: Message) -> None:
        now = self._clock()
        match message:
            case Changes(changes):
                self._end(self._coupling.changed(changes, now))
                for change in changes:
                    self._note(change)
                    names = ", ".join(name for _, name in self._peers_of(change.key))
                    self._report(f"{names or change.key.peer}: BFD {change.after}")
            case Statuses(sessions):
                self._statuses |= {status.key: status for status in sessions}
                self._end(self._coupling.reported(sessions, now))
                unknown = tuple(s.key for s in sessions if s.key not in self._wanted)
                if unknown:
                    self._client.send(RemoveSessions(unknown))
            case ProcessStatus():
                self._process = message
                problems = "; ".join(message.problems)
                if problems != self._said:
                    self._said = problems
                    self._report(f"bfd: {problems}")
        self._hold()

    def _note(self, change: Change) -> None:
        """Keep a change until the next status of the session."""
        status = self._statuses.get(change.key)
        if status is not None:
            self._statuses[change.key] = status._replace(
                state=change.after,
                diagnostic=change.diagnostic,
                since=time.time(),
                remote_state=change.remote_state,
                remote_diagnostic=change.remote_diagnostic,
            )

    def _check(self) -> None:
        """Find neighbours on interfaces, and judge again what is due."""
        self._update()
        self._end(self._coupling.due(self._clock()))
        self._hold()

    # BGP

    def event(self, event: Event) -> None:
        """Take an event of the speaker."""
        if isinstance(event, StateChanged):
            key = (event.instance, event.peer)
            self._coupling.bgp_changed(key, self._clock(), established=event.new == ESTABLISHED)

    def _end(self, paths: list[PathDown]) -> None:
        for path in paths:
            try:
                self._speaker.path_down(
                    path.instance, path.peer, path.reason, independent=path.independent
                )
            except UnknownName:
                continue  # removed in the meantime

    def _hold(self) -> None:
        """Let strict neighbours wait, or no longer."""
        for name, (peer, _) in self._peers.items():
            held = self.held(peer)
            if peer.bfd is not None and peer.bfd.strict:
                present = self._speaker.peer_config(INSTANCE, name)
                if present is not None and present != held:
                    self._speaker.set_peer(INSTANCE, held)

    # The API

    def items(self, peer: str | None, instance: str | None) -> list[BfdItem]:
        """Return the sessions as the API has them."""
        process: BfdProcess = process_row(
            PROGRAM, self._process, connected=self._client.is_connected
        )
        return [
            self._item(name, row, process)
            for name, (_, row) in self._peers.items()
            if peer in (None, name, row.address) and instance in (None, INSTANCE)
        ]

    def _item(self, name: str, row: Peer, process: BfdProcess) -> BfdItem:
        key = self._keys.get(name)
        status = None if key is None else self._statuses.get(key)
        session = session_row(
            row,
            key,
            status,
            holds=self._coupling.holds((INSTANCE, name), key),
            connected=process.connected,
            problem="" if process.connected else f"there is no connection to {PROGRAM}",
        )
        counters = None if status is None else counters_row(row, status)
        return bfd_item(self._instance.router_id, session, counters, process)


def _row(peer: PeerConfig) -> Peer:
    """Return a neighbour as a row of the intent, with all that its BFD session depends on."""
    return Peer(
        instance=INSTANCE,
        name=peer.name,
        address=peer.address,
        interface=peer.interface,
        peer_asn=peer.peer_asn,
        local_asn=peer.local_asn,
        local_address=peer.local_address,
        ebgp_multihop=peer.ebgp_multihop,
        bfd=peer.bfd,
    )
