"""A peer's situation in words: why it is not Established, and when it is tried again.

Reads a peer and never changes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from speaker.fsm import State
from speaker.peer.engine_context import Timer

if TYPE_CHECKING:
    from speaker.peer.peer import Peer


def reason(peer: Peer) -> str:
    """Return why the session is not Established; empty when it is."""
    state = peer.connections.primary.state
    if state is State.ESTABLISHED:
        return ""
    if peer.config.disabled_reason is not None:
        return peer.config.disabled_reason
    if peer.down is not None:
        return peer.down
    if peer.address is None:
        return f"no neighbour was heard on interface {peer.config.interface} yet"
    doing = _doing(peer, state)
    why = "; then ".join(
        text for text in (peer.session_end.failure, peer.session_end.trouble) if text
    )
    return f"{why} ({doing})" if why else doing


def retry_in(peer: Peer) -> float | None:
    """Return the seconds until the next attempt of ours, None where none is due."""
    if peer.connections.primary.state not in (State.IDLE, State.ACTIVE):
        return None
    for timer in (Timer.IDLE_HOLD, Timer.CONNECT_RETRY):
        due = peer.connections.primary.timers.deadline(timer)
        if due is not None:
            return max(0.0, due - peer.context.now)
    return None


def _doing(peer: Peer, state: State) -> str:
    if state is State.ACTIVE and peer.connections.primary.connection is not None:
        # With DelayOpen the peer's OPEN comes first.
        return "waiting for the peer's OPEN"
    if state in (State.IDLE, State.ACTIVE):
        due = retry_in(peer)
        if due is not None:
            return f"retry in {due:.0f}s"
        return "stopped" if state is State.IDLE else "waiting for the peer to connect"
    if state is State.CONNECT:
        return "connecting"
    if state is State.OPEN_SENT:
        return "waiting for the peer's OPEN"
    return "waiting for the peer's KEEPALIVE"
