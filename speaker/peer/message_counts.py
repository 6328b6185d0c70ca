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
    """The messages of all connections of a peer since it was configured."""

    __slots__ = ("received", "sent")

    def __init__(self) -> None:
        self.received = [0] * LENGTH
        """By type (RFC 4271 section 4.1, RFC 2918)."""
        self.sent = [0] * LENGTH


def message_counts(by_type: list[int]) -> MessageCounts:
    """Return the counts of one direction as a value."""
    _, opens, updates, notifications, keepalives, refreshes = by_type
    return MessageCounts(opens, updates, notifications, keepalives, refreshes)
