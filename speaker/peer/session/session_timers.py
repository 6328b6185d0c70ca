"""The timers of one session: which of them run, until when, and with which negotiated times.

The session handles their expiry (`TimerOwner`). No clock is read here.
"""

from __future__ import annotations

from typing import final

from speaker.peer.engine_context import EngineContext, Timer, TimerOwner


@final
class SessionTimers:
    """The timers of one session. All times are in seconds."""

    __slots__ = ("_context", "_hold", "_owner", "hold_time", "keepalive_time")

    def __init__(self, context: EngineContext, owner: TimerOwner) -> None:
        self._context = context
        self._owner = owner
        self._hold = (owner, Timer.HOLD)
        self.hold_time = 0
        """As negotiated (RFC 4271 section 4.2); 0 for none."""
        self.keepalive_time = 0

    def start(self, timer: Timer, seconds: float) -> None:
        """Start a timer, or restart it."""
        self._context.timers.start((self._owner, timer), self._context.now + seconds)

    def stop(self, timer: Timer) -> None:
        """Stop a timer."""
        self._context.timers.stop((self._owner, timer))

    def deadline(self, timer: Timer) -> float | None:
        """Return when a timer expires, None where it does not run."""
        return self._context.timers.deadline((self._owner, timer))

    def remaining(self, timer: Timer) -> float | None:
        """Return the seconds until a timer expires, None where it does not run."""
        due = self.deadline(timer)
        return None if due is None else max(0.0, due - self._context.now)

    def stop_all(self) -> None:
        """Stop every timer: the session is discarded."""
        for timer in Timer:
            self.stop(timer)

    def connection_dropped(self) -> None:
        """Stop the timers that belong to a connection."""
        for timer in (Timer.HOLD, Timer.KEEPALIVE, Timer.COLLISION, Timer.SEND_HOLD):
            self.stop(timer)

    def restart_hold(self) -> None:
        """Restart the hold timer: a message was received."""
        if self.hold_time:
            # For every read with an UPDATE: the key is made once, and no method is called.
            self._context.timers.start(self._hold, self._context.now + self.hold_time)

    def restart_keepalive(self) -> None:
        """Restart the time until the next KEEPALIVE is sent, with jitter."""
        if self.keepalive_time:
            self.start(Timer.KEEPALIVE, self._context.jitter(self.keepalive_time))

    def start_negotiated(self, *, keepalive: bool) -> None:
        """Start the negotiated timers; without ``keepalive`` the KEEPALIVE is still withheld."""
        if self.hold_time:
            self.restart_hold()
            if keepalive:
                self.restart_keepalive()
        else:
            self.stop(Timer.HOLD)
            self.stop(Timer.KEEPALIVE)
