"""Fast path for UPDATEs in Established: event 27 of RFC 4271 without the table and its actions.

A full table passes here. Slow path: `Session.fire` with `Event.UPDATE_MSG`, whose transition in
Established has two actions, restart the hold timer and process the UPDATE; the state stays. The
receiver does both directly, the first one once for all UPDATEs of an input. The equality is tested
in tests/speaker/peer/session/test_update_receiver.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, final

from speaker.peer.engine_context import EngineContext
from speaker.peer.message_counts import MessageCounters
from speaker.peer.session.session_timers import SessionTimers


class PlainUpdateHandler(Protocol):
    """Fast path for the routes of an Established session."""

    def receive(self, bodies: Sequence[bytes], start: int) -> int:
        """Process the leading run of plain UPDATEs from an index on and return its length.

        0 leaves the first UPDATE to `RouteHandler.update`, the slow path.
        """


class RouteHandler(Protocol):
    """Processes the messages of an Established session that carry or request routes."""

    def update(self, body: bytes) -> None:
        """Process the body of an UPDATE. Raises `NotificationError`."""

    def route_refresh(self, body: bytes) -> None:
        """Process the body of a ROUTE-REFRESH. Raises `NotificationError`."""


@final
class UpdateReceiver:
    """The UPDATEs of one session, from Established to its end."""

    __slots__ = (
        "_context",
        "_counters",
        "_hold_restarted",
        "_plain",
        "_timers",
        "handler",
        "received",
    )

    def __init__(
        self, context: EngineContext, timers: SessionTimers, counters: MessageCounters
    ) -> None:
        """``counters`` are of all sessions of the peer."""
        self._context = context
        self._counters = counters
        self._timers = timers
        self._plain: PlainUpdateHandler | None = None
        self.handler: RouteHandler | None = None
        """None unless the session is Established."""
        self.received = 0
        """Number of UPDATEs."""
        self._hold_restarted: float | None = None
        """The time of the last input that restarted the hold timer."""

    def start(self, plain: PlainUpdateHandler, handler: RouteHandler) -> None:
        """Hand UPDATEs to these handlers from now on: the session is Established."""
        self._plain = plain
        self.handler = handler

    def stop(self) -> None:
        """Hand on no further UPDATE, not even of the run that is being processed."""
        self._plain = self.handler = None

    def receive(self, bodies: Sequence[bytes]) -> None:
        """Process UPDATEs, until one ends the session. Raises `NotificationError`."""
        now = self._context.now
        if self._hold_restarted != now:
            self._hold_restarted = now
            self._timers.restart_hold()
        plain, handler = self._plain, self.handler
        position = 0
        while position < len(bodies) and plain is not None and handler is not None:
            taken = plain.receive(bodies, position)
            count = taken or 1
            self.received += count
            self._counters.updates_received += count
            if not taken:
                handler.update(bodies[position])
            position += count
            if self.handler is not handler:
                return
