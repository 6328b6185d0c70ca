"""A peer's status as text: why its session is not Established, and when it is tried again.

Reads a session and never changes it.
"""

from __future__ import annotations

from speaker.api import PeerConfig
from speaker.fsm import State
from speaker.peer.engine_context import Timer
from speaker.peer.session import Session


def reason(session: Session, config: PeerConfig, *, address: str | None, down: str | None) -> str:
    """Return why a session is not Established; empty when it is.

    ``address`` is the peer's address where it is known, ``down`` why it is administratively down.
    """
    if session.state is State.ESTABLISHED:
        return ""
    if config.disabled_reason is not None:
        return config.disabled_reason
    if down is not None:
        return down
    if address is None:
        return f"no neighbour was discovered on interface {config.interface} yet"
    activity = _activity(session)
    end = session.owner.session_end
    why = "; then ".join(text for text in (end.failure, end.trouble) if text)
    return f"{why} ({activity})" if why else activity


def retry_in(session: Session) -> float | None:
    """Return the seconds until the next connection attempt, None where none is due."""
    if session.state not in (State.IDLE, State.ACTIVE):
        return None
    for timer in (Timer.IDLE_HOLD, Timer.CONNECT_RETRY):
        seconds = session.timers.remaining(timer)
        if seconds is not None:
            return seconds
    return None


def _activity(session: Session) -> str:
    state = session.state
    if state is State.OPEN_SENT or (state is State.ACTIVE and session.connection is not None):
        # In Active with a connection: DelayOpen waits for the peer's OPEN.
        return "waiting for the peer's OPEN"
    if state in (State.IDLE, State.ACTIVE):
        due = retry_in(session)
        if due is not None:
            return f"retry in {due:.0f}s"
        return "stopped" if state is State.IDLE else "waiting for the peer to connect"
    if state is State.CONNECT:
        return "connecting"
    return "waiting for the peer's KEEPALIVE"
