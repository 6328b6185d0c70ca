"""The loop between the core and the host: inputs in, in order, and actions out, at once.

UPDATEs are sent once per turn of the event loop, except the first ones of a turn, which are sent
immediately. One timer handle serves all deadlines of the core. Belongs to the event loop's thread;
decides nothing about BGP.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from speaker.api import Event, Fault
from speaker.engine import Engine
from speaker.engine.inputs import (
    Input,
    RemoveInstance,
    RemovePeer,
    SendUpdates,
    SetInstance,
    SetPeer,
    Shutdown,
    TimersDue,
    WallClock,
)
from speaker.peer.actions import (
    Action,
    Close,
    Connect,
    EndBestPaths,
    ReportEvent,
    SendBestPaths,
    SetTtl,
    Write,
)
from speaker.server.best_path_queue import BestPathQueue
from speaker.server.bound_devices import BoundDevices
from speaker.server.discovery import Neighbors
from speaker.server.instance_listeners import InstanceListeners
from speaker.server.trace_links import Export, Receiver, TraceLinks
from speaker.server.transports import Transports
from speaker.unix_time import UnixTime

_FOR_HOST: Final = frozenset({SetInstance, RemoveInstance, SetPeer, RemovePeer, Shutdown})
"""Inputs that concern listening sockets or neighbour discovery, too."""


class InputLoop:
    """One core with its transports, listening sockets and neighbour discovery."""

    def __init__(
        self,
        engine: Engine,
        *,
        clock: Callable[[], float] | None,
        wall_clock: Callable[[], float],
        on_event: Callable[[Event], None],
    ) -> None:
        """``clock`` is monotonic (None: the loop's), ``wall_clock`` Unix time; both in seconds."""
        self._engine = engine
        self._clock = clock
        self._on_event = on_event
        self.handle = engine.handle
        """Processes an input; a recorder takes the engine's place here."""
        self.loop: asyncio.AbstractEventLoop | None = None
        """None before `start` and after `stop`: inputs are queued then."""
        self.devices = BoundDevices(self.feed)
        self.transports = Transports(self.feed, self.feed_at_once, self.devices)
        self.listeners = InstanceListeners(self.transports, self.devices, on_event)
        self.neighbors = Neighbors(self.feed)
        self.trace_links = TraceLinks()
        self._export: Export | None = None
        """The traced UPDATEs that are being sent."""
        self.readers: dict[int, BestPathQueue] = {}
        """The readers of best paths, by number."""
        self.monitored = False
        """Whether there are monitoring stations, which need the wall clock."""
        self._inputs: deque[Input] = deque()
        self._feeding = False
        self._timer: asyncio.Handle | None = None
        self._timer_at = 0.0
        """Its time on the loop's clock; uvloop's handle has no time when it is due at once."""
        self._planned = False
        """Whether `_end_turn` is scheduled."""
        self._sent_early = False
        """Whether UPDATEs were sent in this turn of the loop."""
        self.unix_time = UnixTime(self.now, wall_clock)
        self._fed_offset: float | None = None

    # ------------------------------------------------------------ start, stop

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Set the event loop; `resume` processes the queued inputs."""
        self.loop = loop

    def trace_received(self, share: float) -> None:
        """Give a part of the reads with UPDATEs spans from now on."""
        from speaker.server.received_spans import ReceivedSpans

        def pending() -> bool:
            return self._engine.updates_pending

        spans = ReceivedSpans(self.handle, pending, self.trace_links, self._describe, share)
        self.handle = spans.handle

    def resume(self) -> None:
        """Process the queued inputs."""
        self._drain()
        self._plan()

    def stop(self) -> None:
        """Process no further inputs."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.devices.close()
        self.loop = None
        for queue in self.readers.values():
            queue.end()
        self.readers.clear()

    def now(self) -> float:
        """Return the time for the core, in seconds; 0 before `start` without a clock of its own."""
        if self._clock is not None:
            return self._clock()
        return self.loop.time() if self.loop is not None else 0.0

    def feed_wall_clock(self) -> None:
        """Feed the core the wall clock for BMP, when it has changed against the core's clock."""
        if self.monitored and self.loop is not None:
            offset = self.unix_time.offset()
            if offset != self._fed_offset:
                self._fed_offset = offset
                self.feed(WallClock(offset))

    # ------------------------------------------------------------------ inputs

    def feed(self, item: Input) -> None:
        """Process an input; UPDATEs that it causes are sent when this turn of the loop ends."""
        self._inputs.append(item)
        if not self._feeding and self.loop is not None:
            self._drain()
            self._plan()

    def feed_at_once(self, item: Input) -> bool:
        """Process an input; the first one of a turn has its UPDATEs sent before this returns.

        Returns whether the input causes UPDATEs.
        """
        self._inputs.append(item)
        if self._feeding or self.loop is None:
            return False
        self._drain()
        pending = self._engine.updates_pending
        if pending and not self._sent_early:
            self._sent_early = True
            self._send_updates()
        self._plan()
        return pending

    def _drain(self) -> None:
        # An action may cause an input (a full queue), which is processed after it: the core is never
        # entered twice.
        self._feeding = True
        inputs = self._inputs
        try:
            while inputs:
                item = inputs.popleft()
                if type(item) in _FOR_HOST:
                    self.listeners.prepare(item)
                    self.neighbors.follow(item)
                self._perform(self.handle(item, self.now()))
        finally:
            self._feeding = False

    # ------------------------------------------------------- turns and timers

    def _plan(self) -> None:
        """Schedule the end of this turn and the next deadline, where they are due."""
        if self._planned:
            self._arm()
        elif self._sent_early or self._engine.updates_pending:
            self._planned = True
            assert self.loop is not None  # noqa: S101  nothing is planned before start
            self.loop.call_soon(self._end_turn)
            self._arm()
        else:
            self._rest()

    def _rest(self) -> None:
        """Nothing is sent: what is sent later has other causes."""
        if self.trace_links.contexts:
            self.trace_links.contexts.clear()
        self._arm()

    def _end_turn(self) -> None:
        self._planned = self._sent_early = False
        if self.loop is not None:
            if self._engine.updates_pending:
                self._send_updates()
                self._plan()
            else:
                self._rest()

    def _send_updates(self) -> None:
        if self.monitored:
            self.feed_wall_clock()
        export = self._export = self.trace_links.begin() if self.trace_links.contexts else None
        actions = self.handle(SendUpdates(), self.now())
        if export is not None:
            export.sending(actions, self._describe)
        self._feeding = True
        try:
            self._perform(actions)
        finally:
            self._feeding = False
            if export is not None:
                export.end()
                self._export = None
                if self._engine.updates_pending:
                    self.trace_links.go_on(export)
        if self._inputs:
            self._drain()

    def _describe(self, connection: int) -> Receiver | None:
        names = self._engine.describe_connection(connection)
        return None if names is None else Receiver(*names, self.transports.peer_address(connection))

    def _arm(self) -> None:
        loop = self.loop
        if loop is None:
            return
        deadline = self._engine.next_deadline()
        timer = self._timer
        if deadline is None:
            if timer is not None:
                timer.cancel()
                self._timer = None
            return
        when = deadline if self._clock is None else loop.time() + max(0.0, deadline - self.now())
        if timer is not None and self._timer_at <= when:
            # It expires earlier than needed and is armed again then: cheaper than a new handle each
            # time that a deadline moves.
            return
        if timer is not None:
            timer.cancel()
        self._timer, self._timer_at = loop.call_at(when, self._due), when

    def _due(self) -> None:
        self._timer = None
        self.feed(TimersDue())

    # ----------------------------------------------------------------- actions

    def _perform(self, actions: Sequence[Action]) -> None:
        write = self.transports.write
        for action in actions:
            # Fence: an internal error in one action must not keep the others from being performed.
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
                        where=f"performing {type(action).__name__}",
                        error=f"{type(error).__name__}: {error}",
                    )
                )

    def _perform_other(self, action: Action) -> None:
        match action:
            case Connect():
                name = action.instance
                vrf = None if name is None else self._engine.instance(name).vrf
                self.transports.connect(action, vrf, self.listeners.refuse_connection)
            case SetTtl():
                self.transports.set_ttl(action)
            case Close():
                self.transports.close(action)
            case ReportEvent(event):
                self._on_event(event)
            case SendBestPaths(reader, items):
                queue = self.readers.get(reader)
                if queue is not None:
                    queue.put(items, None if self._export is None else self._export.span)
            case EndBestPaths(reader):
                queue = self.readers.pop(reader, None)
                if queue is not None:
                    queue.end()
