"""The timers of one session: which of them run, until when, and with which negotiated times.

The session handles their expiry (`TimerOwner`), and starts what the peer as a whole decides: the
pauses between connections. No clock is read here.
"""

from __future__ import annotations

from typing import Final, final

from speaker.fsm import Action
from speaker.peer.engine_context import EngineContext, Timer, TimerOwner

OPEN_DEADLINE_SECONDS: Final = 240.0
"""Until the peer's OPEN has to arrive: the large hold time of RFC 4271 section 8.2.2."""
ACCEPTED_OPEN_DEADLINE_SECONDS: Final = 60.0
"""The same for an accepted connection: any host can open one and send nothing."""
LATE_SECONDS: Final = 1.0
"""A hold timer that fires this late means that this process stood still, not that the peer did."""
MIN_SEND_HOLD_SECONDS: Final = 480.0
"""RFC 9687 section 3.1: the send hold time is the greater of this and twice the hold time."""
STOPS_TIMER: Final = {
    Action.STOP_CONNECT_RETRY: Timer.CONNECT_RETRY,
    Action.STOP_DELAY_OPEN: Timer.DELAY_OPEN,
    Action.STOP_IDLE_HOLD: Timer.IDLE_HOLD,
}


@final
class SessionTimers:
    """The timers of one session. All times are in seconds."""

    __slots__ = ("_context", "_hold", "_owner", "hold_extended", "hold_time", "keepalive_time")

    def __init__(self, context: EngineContext, owner: TimerOwner) -> None:
        self._context = context
        self._owner = owner
        self._hold = (owner, Timer.HOLD)
        self.hold_time = 0
        """As negotiated (RFC 4271 section 4.2); 0 for none."""
        self.keepalive_time = 0
        self.hold_extended = False
        """The hold timer fired late and runs again, without a message since."""

    def forget_negotiated(self) -> None:
        """Forget the times of a former connection."""
        self.hold_time = self.keepalive_time = 0
        self.hold_extended = False

    def perform(self, action: Action, *, outgoing: bool, keepalive: bool) -> bool:
        """Perform an action on the timers of a connection; False for any other action.

        ``outgoing``: this side initiated the connection. Without ``keepalive`` the KEEPALIVE is still
        withheld.
        """
        stopped = STOPS_TIMER.get(action)
        if stopped is not None:
            self.stop(stopped)
            return True
        match action:
            case Action.RESTART_HOLD:
                self.restart_hold()
            case Action.RESTART_KEEPALIVE:
                self.restart_keepalive()
            case Action.START_LARGE_HOLD:
                seconds = OPEN_DEADLINE_SECONDS if outgoing else ACCEPTED_OPEN_DEADLINE_SECONDS
                self.start(Timer.HOLD, seconds)
            case Action.START_NEGOTIATED_TIMERS:
                self.start_negotiated(keepalive=keepalive)
            case _:
                return False
        return True

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

    def extend_late_hold(self, due: float) -> bool:
        """Give the peer more time if the hold timer, due at ``due``, fired late; once only.

        This process stood still, and octets of the peer may wait to be read.
        """
        if self.hold_extended or self._context.now - due <= LATE_SECONDS:
            return False
        self.hold_extended = True
        self.start(Timer.HOLD, LATE_SECONDS)
        return True

    def supervise_sending(self, *, progress: bool) -> None:
        """Start the send hold timer (RFC 9687): octets wait, and the peer read some if ``progress``."""
        if self.hold_time and (progress or self.deadline(Timer.SEND_HOLD) is None):
            self.start(Timer.SEND_HOLD, max(MIN_SEND_HOLD_SECONDS, 2.0 * self.hold_time))
