"""A peer's status as text: why its session is not Established, the likely cause, and the next attempt.

Reads a session and never changes it.
"""

from __future__ import annotations

from typing import Final

from speaker.api import PeerConfig
from speaker.fsm import State
from speaker.peer.engine_context import Timer
from speaker.peer.session import Session
from speaker.peer.session_end import CONNECTION_LOST, NO_ANSWER


def reason(session: Session, config: PeerConfig, *, address: str | None, down: str | None) -> str:
    """Return why a session is not Established; empty when it is.

    ``address`` is the peer's address where it is known, ``down`` why it is administratively down.
    The text is the same during every attempt that fails alike: it is written to the cluster, and
    must not change with a countdown. `retry_in` has the time of the next attempt.
    """
    if session.state is State.ESTABLISHED:
        return ""
    if config.disabled_reason is not None:
        return config.disabled_reason
    if down is not None:
        return down
    if address is None:
        return f"no neighbour was discovered on interface {config.interface} yet"
    end = session.owner.session_end
    return "; then ".join(text for text in (end.failure, end.trouble) if text) or _activity(session)


SHORT_SESSIONS: Final = 2
"""Short sessions in a row after which another speaker with the same address is likely."""


def likely_cause(session: Session, config: PeerConfig) -> str:
    """Return what to check where a peer does not come up; empty if `reason` suffices.

    A kernel drops segments with a wrong TCP MD5 digest, or without one, and answers nothing
    (RFC 2385 section 2): to either side that is the same as an unreachable peer.
    """
    if session.state is State.ESTABLISHED or config.disabled_reason is not None:
        return ""
    end = session.owner.session_end
    trouble = end.trouble
    if end.short_sessions >= SHORT_SESSIONS and trouble is None:
        return (
            "another BGP speaker has this node's address (a second agent, or another program's): the "
            "peer ends a session when the other router connects"
        )
    if trouble is None:
        if session.state is State.ACTIVE and retry_in(session) is None:
            return f"this node is not a neighbour of the peer, {_silence(config)}"
        return ""
    if trouble == NO_ANSWER or "timed out" in trouble:
        return f"the peer is down, {_silence(config)}"
    if "refused" in trouble:
        return (
            "no BGP speaker listens on that address and port, or a firewall rejects the connection"
        )
    if "unreachable" in trouble or "no route" in trouble:
        return "this node has no route to the address, or nothing on the link has the address"
    if trouble.startswith(CONNECTION_LOST) and not end.open_rejected:
        # A peer whose OPEN was rejected closes connections for a while: `reason` has why.
        return (
            "the peer ended the connection before its OPEN: it has no neighbour with this node's "
            "address, or expects another number of hops (eBGP multihop, TTL security)"
        )
    return ""


def _silence(config: PeerConfig) -> str:
    md5 = (
        "the peer requires a TCP MD5 password, which is not configured here"
        if config.password is None
        else "the TCP MD5 passwords differ, or the peer has none"
    )
    return f"a firewall drops the packets, or {md5}"


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
        if retry_in(session) is not None:
            return "waiting for the next attempt"
        return "stopped" if state is State.IDLE else "waiting for the peer to connect"
    if state is State.CONNECT:
        return "connecting"
    return "waiting for the peer's KEEPALIVE"
