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

    UPDATEs are counted apart from the types: there is one for each peer and change of a route.
    """

    __slots__ = ("_received", "_sent", "updates_received", "updates_sent")

    def __init__(self) -> None:
        self._received = [0] * LENGTH
        """By type (RFC 4271 section 4.1, RFC 2918)."""
        self._sent = [0] * LENGTH
        self.updates_received = 0
        self.updates_sent = 0

    def count_received(self, kind: int) -> None:
        """Count a message that is no UPDATE of an Established session."""
        self._received[kind] += 1

    def count_sent(self, message: bytes) -> None:
        """Count a message that was not encoded for an update group."""
        self._sent[message[TYPE_POSITION]] += 1

    def by_type(self) -> tuple[MessageCounts, MessageCounts]:
        """Return the received messages, and the sent ones."""
        # One call for both: of each peer whenever statuses are read.
        _, opens, updates, *others = self._received
        received = MessageCounts(opens, updates + self.updates_received, *others)
        _, opens, updates, *others = self._sent
        return received, MessageCounts(opens, updates + self.updates_sent, *others)
