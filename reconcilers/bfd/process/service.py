"""The loop of the BFD process: its sessions, and the agent's connection beside them.

Sessions come first: in one turn of the loop the connection costs a piece of a report, or what an agent
sent at once. Without an agent everything goes on.
"""

from __future__ import annotations

import gc
import random
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from socket import AF_INET, AF_INET6
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

from reconcilers.bfd.process.process_messages import (
    CODEC,
    REPORT_SECONDS,
    Change,
    Changes,
    Discarded,
    Hello,
    Message,
    ProcessStatus,
    RemoveSessions,
    SessionStatus,
    SetSessions,
    Statuses,
)
from reconcilers.bfd.process.realtime import RealTime
from reconcilers.bfd.process.reports import change_text, reported_change, session_status
from reconcilers.bfd.process.settings_file import SESSIONS, SettingsFile
from reconcilers.process.codec import ProtocolError, VersionError
from reconcilers.process.connection import AgentTooSlowError, Connection, is_trusted
from reconcilers.process.log import log
from speaker.bfd.echo_socket import EchoSocket, returns_echoes
from speaker.bfd.engine import Engine, StateChange
from speaker.bfd.session_values import SessionKey, Settings
from speaker.bfd.shell import Shell, monotonic_microseconds
from speaker.bfd.state_file import StateFile
from speaker.unix_time import UnixTime

MICROSECONDS: Final = 1_000_000
PIECE: Final = 32
"""Sessions of one message: half a millisecond."""
BY_KERNEL: Final = "kernel"
"""The reason of packets that the filter of a socket dropped, or for which it had no room."""
_UNREAD_SECONDS: Final = 0.05
"""Until the next attempt to write to an agent that does not read."""
_LAST_SECONDS: Final = 3.0
"""At most, for neighbors to notice that their sessions are AdminDown."""

AtEnd: TypeAlias = Literal["keep", "admin-down"]


class Policy(NamedTuple):
    """The policy that the flags of the program set."""

    least_interval: int = 300_000
    """To which shorter intervals are raised without real time, in microseconds."""
    at_end: AtEnd = "keep"
    """``keep``: another process continues the sessions before neighbors notice. ``admin-down``: it
    comes later, and neighbors shall not take the end for a failure (RFC 5882 section 4.2)."""
    alone_seconds: float | None = None
    """Without an agent that speaks a version of its messages, until the process ends by itself; None:
    never."""


class BfdService:
    """The process, from its start until `end`."""

    def __init__(
        self,
        listener: socket.socket,
        program: str,
        realtime: RealTime,
        policy: Policy,
        *,
        directory: Path | None = None,
        echo_sockets: Sequence[EchoSocket] = (),
        clock: Callable[[], int] = monotonic_microseconds,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """``directory``: of the files by which the next process continues.

        ``clock`` is the sessions' own, ``wall_clock`` Unix time in seconds.
        """
        self._listener = listener
        self._program = program
        self._realtime = realtime
        self._policy = policy
        self._microseconds = clock
        self._unix_time = UnixTime(self._clock, wall_clock)
        self._states_error: OSError | None = None
        """Why there is no file with the sessions, if there shall be one."""
        self._file = None if directory is None else SettingsFile(directory)
        self._states = None if directory is None else self._state_file(directory)
        source = random.SystemRandom()
        self._engine = Engine(source.random, random.Random(source.random()).random)  # noqa: S311
        self._shell = Shell(
            self._engine,
            clock=clock,
            on_change=self._note,
            state_file=self._states,
            echo_sockets=echo_sockets,
        )
        self._has_echo = bool(echo_sockets)
        self._returns_echoes = {family: returns_echoes(family) for family in (AF_INET, AF_INET6)}
        self._wanted: dict[SessionKey, Settings] = {}
        """As the agent set them."""
        self._agent: Connection[Message] | None = None
        self._greeted = False
        """Whether the agent speaks a version of the messages that this process does."""
        self._has_refused = False
        """Whether a second agent connected while this one is there."""
        self._alone_since = self._clock()
        self._pieces: Iterator[Statuses] | None = None
        """The rest of a report, or of a listing."""
        self._next_report = self._clock()
        self._links_at = self._clock()
        """When interfaces are compared next."""
        self._accepts_at: float | None = None
        """When connections are accepted again, after one failed; None: they are."""
        self._changes: list[Change] = []
        self._ending = False
        self._forgets = False
        """Whether sessions end with this process: no successor continues them."""
        self._wake = socket.socketpair()
        for end in self._wake:
            end.setblocking(False)
        listener.setblocking(False)
        self._shell.register(listener.fileno())
        self._shell.register(self._wake[0].fileno())
        if self._file is not None:
            self._set(self._file.read())

    def _state_file(self, directory: Path) -> StateFile | None:
        """Return the file with the sessions; sessions go on without it."""
        try:
            return StateFile(directory / SESSIONS)
        except OSError as error:
            self._states_error = error
            log("error", _not_kept(error))
            return None

    def _clock(self) -> float:
        """Return the time of the sessions' clock in seconds."""
        return self._microseconds() / MICROSECONDS

    def run(self) -> None:
        """Run the BFD process's sessions until `end`."""
        for problem in self._realtime.problems:
            log("error", problem)
        while not self._ending:
            self.turn()
        if self._forgets or self._policy.at_end == "admin-down":
            self._leave()
        self._shell.close()

    def end(self) -> None:
        """Let `run` of the BFD process return, from a handler of signals as well."""
        self._ending = True
        self._wake[1].send(b"\0")

    def turn(self) -> None:
        """Wait for a BFD packet, a deadline or a message of the agent, and do what is due."""
        for descriptor in self._shell.turn(self._longest_wait()):
            if descriptor == self._listener.fileno():
                self._accept()
            elif self._agent is not None and descriptor == self._agent.fileno():
                self._readable()
            elif descriptor == self._wake[0].fileno():
                self._wake[0].recv(64)
        if self._changes:
            changes, self._changes = tuple(self._changes), []
            self._send(Changes(changes))
        self._look_around(self._clock())
        self._report()
        if self._agent is None and self._is_abandoned():
            log("info", "no agent has connected: all sessions are ended")
            self._ending = self._forgets = True

    def _look_around(self, now: float) -> None:
        """Follow interfaces that were renamed or made anew, and accept connections again."""
        if now >= self._links_at:
            self._links_at = now + REPORT_SECONDS
            self._shell.links_changed()
            forwards = {family: returns_echoes(family) for family in self._returns_echoes}
            if forwards != self._returns_echoes:
                self._returns_echoes = forwards
                self._shell.configure({k: self._held(k, s) for k, s in self._wanted.items()})
        if self._accepts_at is not None and now >= self._accepts_at:
            self._accepts_at = None
            self._shell.register(self._listener.fileno())

    def _longest_wait(self) -> float:
        if self._agent is None:
            return REPORT_SECONDS
        if self._agent.has_waiting:
            return _UNREAD_SECONDS
        if self._pieces is not None:
            return 0.0
        return max(0.0, self._next_report - self._clock())

    def _is_abandoned(self) -> bool:
        longest = self._policy.alone_seconds
        return longest is not None and self._clock() - self._alone_since >= longest

    def _leave(self) -> None:
        """Send AdminDown to the neighbors: the sessions end, and BGP goes on."""
        self._shell.configure({})
        until = self._clock() + _LAST_SECONDS
        while self._engine.sessions and self._clock() < until:
            self._shell.turn(until - self._clock())
        if self._forgets and self._file is not None:
            self._file.write({})

    # The agent

    def _accept(self) -> None:
        try:
            agent, _ = self._listener.accept()
        except OSError as error:
            # Of too many descriptors: the connection waits, and would wake this loop for ever.
            log("error", f"a connection cannot be accepted: {error.strerror}")
            self._shell.unregister(self._listener.fileno())
            self._accepts_at = self._clock() + REPORT_SECONDS
            return
        if not is_trusted(agent):
            log("error", "a process of another user connected; its connection is closed")
            agent.close()
            return
        if self._agent is not None and self._agent.is_in_use:
            # The sessions are the running agent's, of whose peers this one knows nothing.
            self._refuse(agent)
            return
        self._disconnect("the agent has ended it")
        self._agent, self._greeted, self._has_refused = Connection(agent, CODEC), False, False
        self._shell.register(self._agent.fileno())
        self._send(Hello(self._program))
        self._begin_report(listing=True)

    def _refuse(self, agent: socket.socket) -> None:
        """Close the connection of a second agent, which tries again and again."""
        agent.close()
        if not self._has_refused:
            self._has_refused = True
            log("error", "a second agent connected; its connection is closed")

    def _disconnect(self, reason: str) -> None:
        if self._agent is None:
            return
        self._shell.unregister(self._agent.fileno())
        self._agent.close()
        self._agent, self._pieces = None, None
        if self._greeted:
            self._alone_since = self._clock()
        log("info", f"the connection to the agent is closed: {reason}; sessions go on")

    def _send(self, message: Message) -> None:
        if self._agent is None:
            return
        try:
            self._agent.send(message)
        except (OSError, AgentTooSlowError) as error:
            self._disconnect(str(error))

    def _readable(self) -> None:
        agent = self._agent
        if agent is None:
            return
        wanted = dict(self._wanted)
        try:
            received = agent.receive()
            if received is None:
                self._disconnect("the agent has ended it")
                return
            for message in received:
                _take(message, wanted)
                self._greeted = True
        except (OSError, ProtocolError, VersionError) as error:
            self._disconnect(str(error))
        self._set(wanted)

    def _set(self, wanted: Mapping[SessionKey, Settings]) -> None:
        """Set these sessions, with intervals that this process can hold."""
        if wanted == self._wanted:
            return
        changed = {key for key, settings in wanted.items() if self._wanted.get(key) != settings}
        self._wanted = dict(wanted)
        self._shell.configure({key: self._held(key, each) for key, each in wanted.items()})
        if self._file is not None:
            try:
                self._file.write(self._wanted)
            except OSError as error:
                log("error", f"settings are not kept for the next process: {error}")
        # What a session consists of is not looked at by the collector any more.
        gc.freeze()
        if changed:
            self._send(Statuses(tuple(self._status(key) for key in changed)))

    def _held(self, key: SessionKey, settings: Settings) -> Settings:
        """Return settings that this process and the kernel can hold."""
        least = 0 if self._realtime.scheduled else self._policy.least_interval
        receive = settings.required_min_rx
        return msgspec.structs.replace(
            settings,
            desired_min_tx=max(settings.desired_min_tx, least),
            required_min_rx=receive and max(receive, least),
            echo_interval=settings.echo_interval if self._has_echo else 0,
            required_min_echo_rx=settings.required_min_echo_rx
            if self._returns_echoes[AF_INET6 if ":" in key.peer else AF_INET]
            else 0,
        )

    # Reports

    def _note(self, change: StateChange) -> None:
        session = self._engine.sessions.get(change.key)
        if session is None or change.key not in self._wanted:
            return
        log("info", change_text(change))
        self._changes.append(reported_change(change, session))

    def _report(self) -> None:
        """Send a piece of a report, or begin the next one."""
        agent = self._agent
        if agent is None:
            return
        if agent.has_waiting:
            try:
                agent.flush()
            except OSError as error:
                self._disconnect(str(error))
            return
        if self._pieces is None:
            if self._clock() < self._next_report:
                return
            self._begin_report(listing=False)
        piece = None if self._pieces is None else next(self._pieces, None)
        if piece is None:
            self._pieces = None
            self._send(self._own_status())
        else:
            self._send(piece)

    def _begin_report(self, *, listing: bool) -> None:
        self._next_report = self._clock() + REPORT_SECONDS
        self._pieces = self._statuses(listing=listing)

    def _statuses(self, *, listing: bool) -> Iterator[Statuses]:
        keys = list(self._wanted)
        for start in range(0, len(keys), PIECE):
            present = (key for key in keys[start : start + PIECE] if key in self._wanted)
            yield Statuses(tuple(self._status(key) for key in present))
        if listing:
            yield Statuses((), last=True)

    def _status(self, key: SessionKey) -> SessionStatus:
        session = self._engine.sessions[key]
        return session_status(
            key,
            self._wanted[key],
            session,
            now=self._shell.now(),
            since=round(session.since / MICROSECONDS + self._unix_time.offset(), 3),
            error=self._shell.error(key),
            has_echo=self._has_echo,
        )

    def _discarded(self) -> tuple[Discarded, ...]:
        counts = {reason.value: count for reason, count in self._engine.discarded.items()}
        if dropped := self._shell.dropped():
            counts[BY_KERNEL] = dropped
        return tuple(Discarded(*item) for item in sorted(counts.items()))

    def _own_status(self) -> ProcessStatus:
        return ProcessStatus(
            self._realtime.scheduled,
            self._realtime.memory_locked,
            0 if self._realtime.scheduled else self._policy.least_interval,
            self._shell.lateness(),
            self._discarded(),
            (*self._realtime.problems, *self._file_problems(), *self._echo_problems()),
        )

    def _file_problems(self) -> tuple[str, ...]:
        error = self._states_error if self._states is None else self._states.error
        return () if error is None else (_not_kept(error),)

    def _echo_problems(self) -> tuple[str, ...]:
        error = self._shell.echo_error
        if error is None:
            return ()
        return (f"the neighbors of echo packets are not known: {error.strerror or error}",)


def _not_kept(error: OSError) -> str:
    return f"sessions are not kept for the next process: {error.strerror or error}"


def _take(message: Message, wanted: dict[SessionKey, Settings]) -> None:
    """Handle a message. Raises `ProtocolError`, `VersionError`."""
    match message:
        case Hello():
            CODEC.common_version(message)
        case SetSessions(sessions):
            wanted.update(sessions)
        case RemoveSessions(keys):
            for key in keys:
                wanted.pop(key, None)
        case _:
            raise ProtocolError(f"a BFD process takes no {type(message).__name__}")


def serve(service: BfdService) -> None:
    """Run the BFD process's service until SIGTERM or SIGINT."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: service.end())
    gc.freeze()
    service.run()
