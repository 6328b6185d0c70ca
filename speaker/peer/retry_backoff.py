"""When a peer is tried again after a session or a connection attempt (RFC 4271 sections 8 and 10).

Holds the state that the pauses depend on: consecutive failures, the time in Established, and a
pause that a command or a prefix limit imposed. Starts no timer itself.
"""

from __future__ import annotations

from speaker.fsm import State
from speaker.peer.damping import Damping, retry_after
from speaker.peer.engine_context import EngineContext


class RetryBackoff:
    """The retry backoff of one peer. All times are in seconds."""

    def __init__(self, context: EngineContext) -> None:
        self._context = context
        self._damping = Damping(context.rng)
        self._established_at: float | None = None
        self.retries = 0
        """ConnectRetryCounter of RFC 4271 section 8."""
        self.imposed: float | None = 0.0
        """A pause after the session in place of damping; 0 for none, None without end."""
        self.immediate = False
        """Whether the session that ends now is followed by the next one without a pause."""

    def established(self) -> None:
        """Start to measure the time in Established."""
        self.retries = 0
        self._established_at = self._context.now

    def ended(self) -> None:
        """Stop to measure: the session is over, and its idle hold time has started."""
        self._established_at = None

    def reset(self) -> None:
        """Set the count of failures to zero: a command or the configuration restarts the peer."""
        self._damping.reset()

    def up_for(self) -> float | None:
        """Return the time in Established, None without a session."""
        up = self._established_at
        return None if up is None else self._context.now - up

    def idle_hold(self, idle_hold_time: float, *, lost: bool) -> float | None:
        """Return the idle hold time after a session, None without end; an imposed one is used once.

        ``lost``: the session ended without a protocol error.
        """
        imposed, self.imposed = self.imposed, 0.0
        if self.immediate:
            return 0.0
        if imposed is None or imposed:
            return imposed
        return self._damping.idle_hold(idle_hold_time, self.up_for(), lost=lost)

    def connect_retry(self, state: State, connect_retry_time: float) -> float:
        """Return the connect-retry time for a state, with jitter."""
        if state is State.ACTIVE:
            return self._context.jitter(retry_after(self.retries, connect_retry_time))
        return self._context.jitter(connect_retry_time)
