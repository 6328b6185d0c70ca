"""The asyncio shell: one `Engine`, its sockets and its clock.

Everything that happens becomes an input of the core, in order, and the core's actions are carried
out at once. Peers are told of changes once per turn of the event loop. Belongs to the loop's
thread. It must never decide anything about BGP.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, Self

import msgspec

from speaker.api import (
    BmpCollector,
    CollectorStatus,
    DynamicPeerConfig,
    Event,
    Fault,
    InstanceConfig,
    InstanceStatus,
    PeerConfig,
    PeerStatus,
    RouteChanges,
    RouteView,
)
from speaker.engine import Engine
from speaker.engine.configuration import ConfigurationReads
from speaker.engine.inputs import (
    EnablePeer,
    Input,
    RemoveInstance,
    RemovePeer,
    RemoveRouteSet,
    RequestRefresh,
    ResetPeer,
    SendUpdates,
    SetCollectors,
    SetInstance,
    SetPeer,
    Shutdown,
    ShutDownPeer,
    TimersDue,
    UpdateRoutes,
    WallClock,
)
from speaker.nlri import Family
from speaker.peer.actions import Action, Close, Connect, ReportEvent, SetTtl, Write
from speaker.recording import DEFAULT_LIMIT, Recorder
from speaker.server.discovery import Neighbors
from speaker.server.instance_listeners import InstanceListeners
from speaker.server.recording_file import RecordingFile, create
from speaker.server.trace_links import TraceLinks
from speaker.server.transports import Transports

STOP_TIMEOUT: Final = 2.0
_CONFIGURING: Final = frozenset({SetInstance, RemoveInstance, SetPeer, RemovePeer, Shutdown})
"""Inputs of which the host has to do a part."""
CLOCK_STEP: Final = 0.01
"""Seconds by which the wall clock has to move against the other one to be told anew."""


def _ignore(_: Event) -> None:
    """Do nothing with an event."""


class Speaker(ConfigurationReads):
    """BGP on this host; see `speaker.api.SpeakerPort` for the methods that drivers use.

    ``clock`` is a monotonic clock in seconds (the loop's own by default), ``wall_clock`` gives
    Unix time for what people read, ``rng`` is the source of jitter. ``on_event`` is called from
    the loop, must be quick and must not raise. ``restarting`` says that a predecessor left without
    a Cease, so that peers keep its routes (RFC 4724). ``record`` is a file into which every input of
    the core is written, for at most ``record_limit`` octets (`speaker.recording`). Before `start`,
    calls are only remembered.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] | None = None,
        wall_clock: Callable[[], float] = time.time,
        rng: random.Random | None = None,
        on_event: Callable[[Event], None] | None = None,
        restarting: bool = False,
        record: Path | None = None,
        record_limit: int = DEFAULT_LIMIT,
    ) -> None:
        self._clock = clock
        self._wall_clock = wall_clock
        self._on_event = on_event or _ignore
        self._rng = rng or random.Random()  # noqa: S311  jitter, no secret
        self._engine = Engine(self._rng, restarting=restarting)
        super().__init__(self._engine)
        self._handle = self._engine.handle
        self._record = record
        self._record_limit = record_limit
        self._recorder: Recorder | None = None
        self._file: RecordingFile | None = None
        self._inputs: deque[Input] = deque()
        self._feeding = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.Handle | None = None
        self._timer_at = 0.0
        """When it comes (loop time). uvloop's cannot always say: one that comes at once is none."""
        self._flushing = False
        self._early = False
        """Whether peers were told of something in this turn of the loop already."""
        self._transports = Transports(self._feed, self._feed_at_once)
        self._instances = InstanceListeners(self._transports, self._on_event)
        self._neighbors = Neighbors(self._feed)
        self._trace_links = TraceLinks()
        self._monitored = False
        self._offset: float | None = None

    # ------------------------------------------------------------------ life

    async def start(self) -> None:
        """Open the listening sockets and the sessions that are configured, and all later ones.

        Raises OSError where the file of a recording cannot be had.
        """
        if self._record is not None:
            self._file = RecordingFile(self._record, create(self._record))
        self._loop = asyncio.get_running_loop()
        if self._file is not None:
            self._recorder = Recorder(
                self._engine,
                self._file,
                rng=self._rng,
                now=self._now(),
                started=self._wall_clock(),
                limit=self._record_limit,
            )
            self._handle = self._recorder.handle
        self._tell_time()
        self._drain()
        self._plan()

    async def stop(self, timeout: float = STOP_TIMEOUT) -> None:  # noqa: ASYNC109  a promise
        """End all sessions within ``timeout`` seconds.

        Peers get a Cease (administrative shutdown), those with graceful restart only the end of
        the connection, so that they keep our routes (RFC 4724 section 4).
        """
        loop = self._loop
        if loop is None:
            return
        deadline = loop.time() + timeout
        self._feed(Shutdown())
        await self._instances.close()
        await self._transports.drain(deadline)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._recorder is not None and self._file is not None:
            self._recorder.finish(self._now())
            left = max(0.1, deadline - loop.time())
            await loop.run_in_executor(None, self._file.close, left)
        self._loop = None

    async def __aenter__(self) -> Self:
        """Start."""
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop."""
        await self.stop()

    # -------------------------------------------------------------- commands

    def set_instance(self, config: InstanceConfig) -> None:
        """See `speaker.api.SpeakerPort`."""
        self._feed(SetInstance(config))

    def remove_instance(self, name: str) -> None:
        """See `speaker.api.SpeakerPort`."""
        self._feed(RemoveInstance(name))

    def set_peer(self, instance: str, config: PeerConfig | DynamicPeerConfig) -> None:
        """See `speaker.api.SpeakerPort`."""
        self._known(instance)
        self._feed(SetPeer(instance, config))

    def remove_peer(self, instance: str, name: str) -> None:
        """See `speaker.api.SpeakerPort`."""
        self._feed(RemovePeer(instance, name))

    def shut_down_peer(self, instance: str, peer: str, communication: str = "") -> None:
        """End a session by hand and keep it down; the other side is told why (RFC 9003).

        A dynamic peer may connect again. Raises `UnknownName`.
        """
        self._known(instance)
        self._feed(ShutDownPeer(instance, peer, communication))

    def enable_peer(self, instance: str, peer: str) -> None:
        """Begin again after `shut_down_peer`. Raises `UnknownName`."""
        self._known(instance)
        self._feed(EnablePeer(instance, peer))

    def reset_peer(self, instance: str, peer: str, communication: str = "") -> None:
        """End a session and begin again at once (RFC 9003). Raises `UnknownName`.

        Also ends the wait of a peer that had sent too many prefixes.
        """
        self._known(instance)
        self._feed(ResetPeer(instance, peer, communication))

    def request_refresh(self, instance: str, peer: str, families: Sequence[Family] = ()) -> None:
        """Ask a peer to say its routes again, of all families where none is named (RFC 2918).

        Nothing happens where it is not Established or cannot. Raises `UnknownName`.
        """
        self._known(instance)
        self._feed(RequestRefresh(instance, peer, tuple(families)))

    def update_routes(self, instance: str, route_set: str, changes: RouteChanges) -> None:
        """See `speaker.api.SpeakerPort`."""
        self._known(instance)
        self._trace_links.note()
        self._feed(UpdateRoutes(instance, route_set, changes))

    def remove_route_set(self, instance: str, route_set: str) -> None:
        """See `speaker.api.SpeakerPort`."""
        self._trace_links.note()
        self._feed(RemoveRouteSet(instance, route_set))

    def update_local(self, instance: str, changes: RouteChanges) -> None:
        """See `speaker.api.SpeakerPort`; told before this returns, unless something just was."""
        self._known(instance)
        self._trace_links.note()
        self._feed_at_once(UpdateRoutes(instance, None, changes))

    def set_collectors(self, collectors: Sequence[BmpCollector]) -> None:
        """Connect to these monitoring stations and to no others (BMP, RFC 7854).

        Those that are as they were stay connected.
        """
        self._monitored = bool(collectors)
        self._tell_time()
        self._feed(SetCollectors(tuple(collectors)))

    # --------------------------------------------------------------- answers

    def collectors(self) -> Sequence[CollectorStatus]:
        """Return the monitoring stations, by name."""
        now = self._now()
        to_wall = self._wall_clock() - now
        return [
            msgspec.structs.replace(status, since=status.since + to_wall)
            for status in self._engine.collectors(now)
        ]

    def peers(self) -> Sequence[PeerStatus]:
        """See `speaker.api.SpeakerPort`."""
        now = self._now()
        to_wall = self._wall_clock() - now
        return [
            msgspec.structs.replace(
                status,
                since=status.since + to_wall,
                reason=self._neighbors.error(status) or status.reason,
            )
            for status in self._engine.peers(now)
        ]

    def instances(self) -> Sequence[InstanceStatus]:
        """See `speaker.api.SpeakerPort`."""
        return [self._instances.complete(status) for status in self._engine.instances()]

    def routes_available(self, instance: str, family: Family) -> Iterator[RouteView]:
        """See `speaker.api.SpeakerPort`."""
        return self._engine.routes_available(instance, family)

    def routes_advertised(
        self, instance: str, peer: str | None, family: Family
    ) -> Iterator[RouteView]:
        """See `speaker.api.SpeakerPort`."""
        return self._engine.routes_advertised(instance, peer, family)

    def routes_received(
        self, instance: str, peer: str | None, family: Family
    ) -> Iterator[RouteView]:
        """See `speaker.api.SpeakerPort`."""
        return self._engine.routes_received(instance, peer, family)

    # -------------------------------------------------------------- the pump

    def _now(self) -> float:
        if self._clock is not None:
            return self._clock()
        return self._loop.time() if self._loop is not None else 0.0

    def _tell_time(self) -> None:
        """Tell the core the date, which monitoring stations are told, and again when it is set."""
        if self._monitored and self._loop is not None:
            offset = self._wall_clock() - self._now()
            if self._offset is None or abs(offset - self._offset) > CLOCK_STEP:
                self._offset = offset
                self._feed(WallClock(offset))

    def _known(self, instance: str) -> None:
        """Raise where an instance is neither there nor on its way."""
        if self._loop is not None:
            self._engine.instance(instance)

    def _feed(self, item: Input) -> None:
        self._inputs.append(item)
        if not self._feeding and self._loop is not None:
            self._drain()
            self._plan()

    def _feed_at_once(self, item: Input) -> bool:
        """Take an input, and tell of it without waiting for others: of the first one of a turn.

        Returns whether it is something that others are told of.
        """
        self._inputs.append(item)
        if self._feeding or self._loop is None:
            return False
        self._drain()
        told = self._engine.updates_pending
        if told and not self._early:
            self._early = True
            self._tell()
        self._plan()
        return told

    def _drain(self) -> None:
        # An action may cause an input (a queue that fills): it waits for its turn, so that the
        # core is never entered twice.
        self._feeding = True
        inputs = self._inputs
        try:
            while inputs:
                item = inputs.popleft()
                if type(item) in _CONFIGURING:
                    self._instances.prepare(item)
                    self._neighbors.follow(item)
                self._perform(self._handle(item, self._now()))
        finally:
            self._feeding = False

    def _plan(self) -> None:
        """See to it that what is left is done: with the end of this turn, and when time has come."""
        if not self._flushing and (self._early or self._engine.updates_pending):
            self._flushing = True
            assert self._loop is not None  # noqa: S101  nothing is planned before start
            self._loop.call_soon(self._flush)
        self._arm()

    def _perform(self, actions: Sequence[Action]) -> None:
        write = self._transports.write
        for action in actions:
            # Fence: an error of ours in one action must not keep the others from being carried out.
            try:
                if type(action) is Write:
                    write(action)
                else:
                    self._perform_other(action)
            except Exception as error:  # noqa: BLE001  the documented fence
                self._on_event(
                    Fault(
                        instance="",
                        peer=None,
                        where=f"carrying out {type(action).__name__}",
                        error=f"{type(error).__name__}: {error}",
                    )
                )

    def _perform_other(self, action: Action) -> None:
        match action:
            case Connect():
                name = action.instance
                vrf = None if name is None else self._engine.instance(name).vrf
                self._transports.connect(action, vrf)
            case SetTtl():
                self._transports.configure(action)
            case Close():
                self._transports.close(action)
            case ReportEvent(event):
                self._on_event(event)

    def _flush(self) -> None:
        self._flushing = self._early = False
        if self._loop is not None:
            if self._engine.updates_pending:
                self._tell()
            self._plan()

    def _tell(self) -> None:
        if self._monitored:
            self._tell_time()
        causes = self._trace_links.take() if self._trace_links.contexts else ()
        actions = self._handle(SendUpdates(), self._now())
        if causes:
            self._trace_links.trace(causes, actions, self._engine.describe_connection)
        self._feeding = True
        try:
            self._perform(actions)
        finally:
            self._feeding = False
        if self._inputs:
            self._drain()

    def _arm(self) -> None:
        loop = self._loop
        if loop is None:
            return
        deadline = self._engine.next_deadline()
        timer = self._timer
        if deadline is None:
            if timer is not None:
                timer.cancel()
                self._timer = None
            return
        when = deadline if self._clock is None else loop.time() + max(0.0, deadline - self._now())
        if timer is not None and self._timer_at <= when:
            # It comes earlier than needed and is armed again then: cheaper than a new timer each
            # time that a deadline moves.
            return
        if timer is not None:
            timer.cancel()
        self._timer, self._timer_at = loop.call_at(when, self._due), when

    def _due(self) -> None:
        self._timer = None
        self._feed(TimersDue())
