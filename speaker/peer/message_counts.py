"""Numbers of the messages that were exchanged with a peer, by type and direction."""

from __future__ import annotations

from typing import final

from speaker.api import MessageCounts
from speaker.iana import MessageType

LENGTH = 1 + max(MessageType)
TYPE_POSITION = 18
"""Of the type in a message: behind marker and length (RFC 4271 section 4.1)."""


@final
class MessageCounters:
    """The messages of all connections of a peer since it was configured.

    UPDATEs of update groups, and received UPDATEs of Established sessions, are counted apart from the
    types: there is one for each peer and change of a route.
    """

    __slots__ = ("received", "sent", "updates_received", "updates_sent")

    def __init__(self) -> None:
        self.received = [0] * LENGTH
        """By type (RFC 4271 section 4.1, RFC 2918)."""
        self.sent = [0] * LENGTH
        self.updates_received = 0
        self.updates_sent = 0


def message_counts(by_type: list[int], more_updates: int) -> MessageCounts:
    """Return the counts of one direction as a value."""
    _, opens, updates, notifications, keepalives, refreshes = by_type
    return MessageCounts(opens, updates + more_updates, notifications, keepalives, refreshes)
