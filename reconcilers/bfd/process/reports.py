"""Reports on a session to the agent: its status, and each change of its state."""

from __future__ import annotations

from reconcilers.bfd.process.process_messages import Change, SessionStatus
from speaker.bfd.engine import StateChange
from speaker.bfd.session import Session
from speaker.bfd.session_values import SessionKey, Settings, State


def session_status(
    key: SessionKey,
    wanted: Settings,
    session: Session,
    *,
    now: int,
    since: float,
    error: OSError | None,
    has_echo: bool,
) -> SessionStatus:
    """Return the BFD process's report of a session's status.

    ``wanted`` as the agent set it; ``now``: the time of the engine; ``since``: the Unix time of its
    last change; ``error`` of its socket; ``has_echo``: whether this process can send echo packets.
    """
    return SessionStatus(
        key,
        wanted,
        session.state,
        session.diagnostic,
        since,
        session.ups,
        session.local_discriminator,
        session.neighbor.discriminator,
        session.neighbor.state,
        session.neighbor.diagnostic,
        session.neighbor.independent,
        session.settings.desired_min_tx,
        session.settings.required_min_rx,
        session.neighbor.desired_min_tx,
        session.neighbor.min_rx if session.neighbor.discriminator else 0,
        session.neighbor.detect_multiplier,
        session.transmit_interval,
        session.detection_time,
        session.packets_sent,
        session.packets_received,
        session.longest_gap(now),
        "" if error is None else error.strerror or str(error),
        session.echoes_sent,
        session.echoes_received,
        _echo_problem(wanted, session, has_echo=has_echo),
    )


def _echo_problem(wanted: Settings, session: Session, *, has_echo: bool) -> str:
    """Return why a session that shall send echo packets does not, if that is known."""
    if not wanted.echo_interval or session.state is not State.UP:
        return ""
    if not has_echo:
        return "no echo packets, which need CAP_NET_RAW: control packets alone"
    if session.echo_unanswered:
        return "the neighbor returns no echo packets: control packets alone"
    return ""


def reported_change(change: StateChange, session: Session) -> Change:
    """Return the BFD process's report of a change of state, with the detection time."""
    return Change(
        change.key,
        change.before,
        change.after,
        change.diagnostic,
        change.remote_state,
        change.remote_diagnostic,
        change.remote_independent,
        session.local_discriminator,
        session.neighbor.detect_multiplier
        * max(session.settings.required_min_rx, session.neighbor.desired_min_tx),
    )


def change_text(change: StateChange) -> str:
    """Return the report of a BFD session's change of state as a line of the log."""
    key = change.key
    where = f"{key.peer}%{key.device}" if key.device else key.peer
    return (
        f"session to {where}: {change.before} to {change.after}, {change.diagnostic}; "
        f"the neighbor is {change.remote_state}"
    )
