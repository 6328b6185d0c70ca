"""Entries of the speaker's events."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from cells.api.history import FieldChangeItem, HistoryItem
from speaker.api import (
    ESTABLISHED,
    CollectorChanged,
    ConnectionsRefused,
    Event,
    Fault,
    ListenChanged,
    PrefixLimit,
    RecordingEnded,
    RouteLeftOut,
    SessionError,
    StateChanged,
)

SESSION: Final = "Session"
"""The kind of the entries of sessions."""


def entry_of(event: Event, now: datetime) -> HistoryItem | None:
    """Return the entry of an event; None for a step on the way of a session without a reason."""

    def occurred(kind: str, name: str, message: str, *, address: str | None = None) -> HistoryItem:
        return HistoryItem(
            event_time=now, type="OCCURRED", kind=kind, name=name, message=message, address=address
        )

    match event:
        case StateChanged():
            return _session(event, now)
        case SessionError():
            what = "malformed UPDATE" if event.survived else "NOTIFICATION received"
            if event.sent and not event.survived:
                what = "NOTIFICATION sent"
            name = f"{event.instance}/{event.peer}"
            return occurred(SESSION, name, f"{what}: {event.text}", address=event.address)
        case PrefixLimit():
            what = "the session ended" if event.ended else "a warning"
            text = f"{event.received} {event.family} prefixes of {event.limit}: {what}"
            return occurred(SESSION, f"{event.instance}/{event.peer}", text)
        case RouteLeftOut():
            text = f"not advertised to {', '.join(event.peers[:8])}: {event.reason}"
            return occurred("Route", event.prefix, text)
        case ListenChanged():
            name = f"{event.instance}/{event.address}:{event.port}"
            return occurred("Listener", name, event.error or "listening")
        case CollectorChanged():
            text = "connected" if event.connected else f"not connected: {event.reason}"
            return occurred("Collector", event.name, text)
        case ConnectionsRefused():
            return occurred(
                "Instance",
                event.instance,
                f"connection rejected: {event.reason}",
                address=event.address,
            )
        case Fault():
            name = event.instance if event.peer is None else f"{event.instance}/{event.peer}"
            return occurred(SESSION, name, f"internal error: {event.where}: {event.error}")
        case RecordingEnded():
            return occurred("Speaker", "recording", event.reason)


def _session(event: StateChanged, now: datetime) -> HistoryItem | None:
    """Return the entry of a session that came up or went down, or of a failed attempt."""
    name = f"{event.instance}/{event.peer}"
    if ESTABLISHED in (event.old, event.new):
        return HistoryItem(
            event_time=now,
            type="MODIFIED",
            kind=SESSION,
            name=name,
            address=event.address,
            changes=(FieldChangeItem(field="state", old=event.old, new=event.new),),
            message=event.reason or None,
        )
    if not event.reason:
        return None
    # Without the state: an attempt that fails as the last one did is one more of these.
    return HistoryItem(
        event_time=now,
        type="OCCURRED",
        kind=SESSION,
        name=name,
        address=event.address,
        message=f"not Established: {event.reason}",
    )
