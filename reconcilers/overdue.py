"""Sessions that do not come up: after how long they are reported, and in which words.

The log, the Events and the statuses of objects report the same sessions. Pure.
"""

from __future__ import annotations

from typing import Final

from speaker.api import PeerStatus

FAILURES: Final = 3
"""Failed attempts after which a session is reported, but not before `FAILING_SECONDS`."""
FAILING_SECONDS: Final = 10.0
"""A node and its routers may start at the same time."""
DOWN_SECONDS: Final = 45.0
"""Without a session, after which it is reported whatever the number of attempts."""


def is_tried(session: PeerStatus) -> bool:
    """Return whether a session that is not Established is tried, or waited for, and can be overdue."""
    return session.state != "Idle" or session.retry_in is not None


def is_overdue(session: PeerStatus, now: float) -> bool:
    """Return whether a session should have come up by ``now`` (Unix time)."""
    if session.established or not is_tried(session):
        return False
    return now >= _due(session)


def due_in(session: PeerStatus, now: float) -> float | None:
    """Return the seconds until a session is overdue without another attempt, None if it never is."""
    if session.established or is_overdue(session, now):
        return None
    return max(0.0, _due(session) - now) if is_tried(session) else None


def _due(session: PeerStatus) -> float:
    return session.since + (FAILING_SECONDS if session.failures >= FAILURES else DOWN_SECONDS)


def describe_overdue(session: PeerStatus) -> str:
    """Return why an overdue session is down, with the likely cause, as a sentence without its end."""
    reason = session.reason or "unknown"
    return f"{reason}; likely {session.likely_cause}" if session.likely_cause else reason
