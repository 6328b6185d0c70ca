"""What all peers of one engine share: timers, the way out, the time, and chance.

The time is that of the input being handled; nothing in the core asks a clock.
"""

from __future__ import annotations

import enum
import random
from typing import TYPE_CHECKING, Protocol

from speaker.api import Event
from speaker.peer.actions import Action, ReportEvent
from speaker.timers import Timers

if TYPE_CHECKING:
    from speaker.peer.session import Session


class Timer(enum.IntEnum):
    """The timers of RFC 4271 section 8, and two more; a number, as it is looked up each time."""

    CONNECT_RETRY = enum.auto()
    HOLD = enum.auto()
    KEEPALIVE = enum.auto()
    DELAY_OPEN = enum.auto()
    IDLE_HOLD = enum.auto()
    COLLISION = enum.auto()
    """How long a connection that would lose a collision waits for the one that would win."""
    SEND_HOLD = enum.auto()
    """RFC 9687: how long a peer may take nothing of what we send."""
    STALE = enum.auto()
    """How long routes are kept that the peer has not said again (RFC 4724, 7313, 9494)."""
    DEFERRAL = enum.auto()
    """How long selection waits for the peers after a restart of ours (RFC 4724 section 4.1)."""
    COLLECTOR_RETRY = enum.auto()
    """The pause before a monitoring station is tried again (RFC 7854 section 3.2)."""
    STATISTICS = enum.auto()


class TimerOwner(Protocol):
    """What a timer belongs to."""

    @property
    def where(self) -> tuple[str, str | None]:
        """The instance and the peer, for reports."""

    def expired(self, timer: Timer, due: float) -> None:
        """Handle a timer that ran out at ``due``."""


class EngineContext:
    """Shared by the peers of an engine."""

    __slots__ = ("_connection", "connections", "now", "out", "rng", "timers")

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.now = 0.0
        self.out: list[Action] = []
        self.timers: Timers[tuple[TimerOwner, Timer]] = Timers()
        self.connections: dict[int, Session] = {}
        """Whose a connection is."""
        self._connection = 0

    def new_connection(self) -> int:
        """Return a number for an attempt of our own; the shell's are negative."""
        self._connection += 1
        return self._connection

    def jitter(self, seconds: float) -> float:
        """Return 75 to 100 percent of a time (RFC 4271 section 10)."""
        return seconds * self.rng.uniform(0.75, 1.0)

    def report(self, event: Event) -> None:
        """Report an event."""
        self.out.append(ReportEvent(event))

    def take(self) -> list[Action]:
        """Return the actions so far, and forget them."""
        out, self.out = self.out, []
        return out
