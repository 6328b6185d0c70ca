"""The timers of one session: which run, until when, and by which negotiated times.

What it means that one ran out is the session's to say; no clock is asked here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from speaker.peer.engine_context import EngineContext, Timer

if TYPE_CHECKING:
    from speaker.peer.session.session import Session


@final
class SessionTimers:
    """The timers of one session. All times are in seconds."""

    __slots__ = ("_context", "_hold", "_session", "hold_time", "keepalive_time")

    def __init__(self, context: EngineContext, session: Session) -> None:
        self._context = context
        self._session = session
        self._hold = (session, Timer.HOLD)
        self.hold_time = 0
        """As negotiated; 0 for none."""
        self.keepalive_time = 0

    def start(self, timer: Timer, seconds: float) -> None:
        """Run a timer, from now on."""
        self._context.timers.start((self._session, timer), self._context.now + seconds)

    def stop(self, timer: Timer) -> None:
        """Forget a timer."""
        self._context.timers.stop((self._session, timer))

    def deadline(self, timer: Timer) -> float | None:
        """Return when a timer is due, None where it does not run."""
        return self._context.timers.deadline((self._session, timer))

    def stop_all(self) -> None:
        """Forget every timer: the session is given up."""
        for timer in Timer:
            self.stop(timer)

    def connection_dropped(self) -> None:
        """Forget the timers that belong to a connection."""
        for timer in (Timer.HOLD, Timer.KEEPALIVE, Timer.COLLISION, Timer.SEND_HOLD):
            self.stop(timer)

    def restart_hold(self) -> None:
        """Begin the hold time again: the peer has been heard."""
        if self.hold_time:
            # With every UPDATE: the key is made once, and nobody is asked on the way.
            self._context.timers.start(self._hold, self._context.now + self.hold_time)

    def restart_keepalive(self) -> None:
        """Begin the time until our next KEEPALIVE again, with jitter."""
        if self.keepalive_time:
            self.start(Timer.KEEPALIVE, self._context.jitter(self.keepalive_time))

    def start_negotiated(self, *, keepalive: bool) -> None:
        """Begin with what the OPENs say; without ``keepalive`` ours are held back."""
        if self.hold_time:
            self.restart_hold()
            if keepalive:
                self.restart_keepalive()
        else:
            self.stop(Timer.HOLD)
            self.stop(Timer.KEEPALIVE)
