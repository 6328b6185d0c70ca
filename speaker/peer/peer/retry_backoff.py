"""When a peer is tried again after a session or an attempt (RFC 4271 sections 8 and 10).

Holds what the pauses follow from: failures in a row, how long the session was up, and a pause that
somebody asked for. Starts no timer itself.
"""

from __future__ import annotations

from speaker.fsm import State
from speaker.peer.damping import Damping, retry_after
from speaker.peer.engine_context import EngineContext


class RetryBackoff:
    """The pauses of one peer. All times are in seconds."""

    def __init__(self, context: EngineContext) -> None:
        self._context = context
        self._damping = Damping(context.rng)
        self._established_at: float | None = None
        self.retries = 0
        """ConnectRetryCounter of RFC 4271 section 8."""
        self.held: float | None = 0.0
        """A pause after the session that is longer than damping has it; None is for good."""
        self.at_once = False
        """Whether the session that ends now is followed by the next one without a pause."""

    def established(self) -> None:
        """Begin to count how long the session is up."""
        self.retries = 0
        self._established_at = self._context.now

    def ended(self) -> None:
        """Count no longer: the session is over, and its pause has begun."""
        self._established_at = None

    def forgive(self) -> None:
        """Forget the failures: somebody has asked for another beginning."""
        self._damping.forgive()

    def up_for(self) -> float | None:
        """Return how long the session has been up, None where it is not."""
        up = self._established_at
        return None if up is None else self._context.now - up

    def after_session(self, idle_hold_time: float, *, lost: bool) -> float | None:
        """Return the pause after a session, None for good; what was asked for counts once.

        ``lost``: it ended without an error of the protocol.
        """
        held, self.held = self.held, 0.0
        if self.at_once:
            return 0.0
        if held is None or held:
            return held
        return self._damping.pause(idle_hold_time, self.up_for(), lost=lost)

    def connect_retry(self, state: State, connect_retry_time: float) -> float:
        """Return the connect-retry time for a state, with jitter."""
        if state is State.ACTIVE:
            return self._context.jitter(retry_after(self.retries, connect_retry_time))
        return self._context.jitter(connect_retry_time)
