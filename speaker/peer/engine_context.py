"""The context that all peers of an engine share: timers, actions for the shell, the time, and jitter.

The time is that of the input being handled; the core reads no clock.
"""

from __future__ import annotations

import enum
import random
from typing import Protocol

from speaker.api import Event
from speaker.peer.actions import Action, ReportEvent
from speaker.timers import Timers


class Timer(enum.IntEnum):
    """The timers of RFC 4271 section 8 and of its extensions; an integer, for quick look-ups."""

    CONNECT_RETRY = enum.auto()
    HOLD = enum.auto()
    KEEPALIVE = enum.auto()
    DELAY_OPEN = enum.auto()
    IDLE_HOLD = enum.auto()
    COLLISION = enum.auto()
    """How long a connection that would lose a collision waits for the winning connection."""
    SEND_HOLD = enum.auto()
    """RFC 9687: how long a peer may accept no octets."""
    STALE = enum.auto()
    """How long stale routes of a peer are kept (RFC 4724, 7313, 9494)."""
    DEFERRAL = enum.auto()
    """How long route selection is deferred after a restart (RFC 4724 section 4.1)."""
    COLLECTOR_RETRY = enum.auto()
    """The pause before the next connection to a monitoring station (RFC 7854 section 3.2)."""
    STATISTICS = enum.auto()
    """The interval between two BMP Statistics Reports (RFC 7854 section 4.8)."""


class TimerOwner(Protocol):
    """The object that a timer belongs to."""

    @property
    def where(self) -> tuple[str, str | None]:
        """The names of the instance and the peer, for reports."""

    def expired(self, timer: Timer, due: float) -> None:
        """Handle a timer that expired at ``due``."""


class ConnectionHandler(Protocol):
    """The owner of a connection: receives its octets and transport events."""

    @property
    def where(self) -> tuple[str, str | None]:
        """The names of the instance and the peer."""

    def received(self, data: bytes) -> None:
        """Handle octets, in order, in pieces of any size."""

    def connected(
        self, local: tuple[str, int], remote: tuple[str, int], interface_address: str | None
    ) -> None:
        """Handle the success of a connection attempt (`speaker.engine.inputs.TransportConnected`)."""

    def connect_failed(self, reason: str) -> None:
        """Handle the failure of a connection attempt."""

    def closed(self, reason: str) -> None:
        """Handle the loss of the connection."""

    def queue_changed(self, octets: int, limit: int) -> None:
        """Handle a change of the octets that wait to be sent; ``limit`` is their maximum."""


class EngineContext:
    """Shared by the peers of an engine."""

    __slots__ = ("_connection", "connections", "now", "out", "rng", "timers")

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.now = 0.0
        """Seconds on the clock of the inputs."""
        self.out: list[Action] = []
        """Actions since the last `take`, in order."""
        self.timers: Timers[tuple[TimerOwner, Timer]] = Timers()
        self.connections: dict[int, ConnectionHandler] = {}
        """Connection number -> its owner."""
        self._connection = 0

    def new_connection(self) -> int:
        """Return a number for a connection attempt; numbers of accepted connections are negative."""
        self._connection += 1
        return self._connection

    def jitter(self, seconds: float) -> float:
        """Return 75 to 100 percent of a time (RFC 4271 section 10)."""
        return seconds * self.rng.uniform(0.75, 1.0)

    def report(self, event: Event) -> None:
        """Report an event."""
        self.out.append(ReportEvent(event))

    def take(self) -> list[Action]:
        """Return the actions since the last call, in order."""
        out, self.out = self.out, []
        return out
