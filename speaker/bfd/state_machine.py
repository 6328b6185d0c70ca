"""The state machine of a BFD session: RFC 5880 section 6.2, as section 6.8.6 applies it. Pure."""

from __future__ import annotations

from speaker.bfd.session_values import Diagnostic, State


def transition(state: State, received: State) -> tuple[State, Diagnostic | None] | None:
    """Return the next state of a session by the state of a packet, and its diagnostic.

    None: the session stays in its state. Without a diagnostic the last one stays. A session that is
    AdminDown receives no packet.
    """
    if received is State.ADMIN_DOWN or (received is State.DOWN and state is State.UP):
        if state is State.DOWN:
            return None
        return State.DOWN, Diagnostic.NEIGHBOR_SIGNALED_SESSION_DOWN
    if state is State.DOWN:
        if received is State.DOWN:
            return State.INIT, None
        return (State.UP, Diagnostic.NONE) if received is State.INIT else None
    if state is State.INIT and received is not State.DOWN:
        return State.UP, Diagnostic.NONE
    return None
