"""Translation of the Events that an agent reports to items of the API."""

from __future__ import annotations

from datetime import UTC, datetime

from cells.api.model import EventItem, OriginItem
from reconcilers.report.events import Recorded


def event_item(node: str, recorded: Recorded) -> EventItem:
    """Translate one Event."""
    occurrence = recorded.occurrence
    ref = occurrence.regarding.ref
    return EventItem(
        node=node,
        type=occurrence.type,
        reason=occurrence.reason,
        object=OriginItem(kind=ref.kind, namespace=ref.namespace or None, name=ref.name),
        message=occurrence.note,
        count=recorded.times,
        first_time=datetime.fromtimestamp(int(recorded.first), UTC),
        last_time=datetime.fromtimestamp(int(recorded.last), UTC),
    )
