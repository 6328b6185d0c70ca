"""ROUTE-REFRESH (RFC 2918) with the BoRR and EoRR subtypes of enhanced route refresh (RFC 7313)."""

from __future__ import annotations

from enum import IntEnum

import msgspec

from speaker.errors import refresh_error
from speaker.iana import Family, MessageType, RefreshSubcode
from speaker.message.header import frame_message


class RefreshKind(IntEnum):
    """The message subtype (RFC 7313 section 3.2); a receiver ignores other numbers."""

    REQUEST = 0
    BEGIN = 1
    END = 2


class RouteRefresh(msgspec.Struct, frozen=True):
    """One ROUTE-REFRESH; ``orf`` are the undecoded outbound route filters (RFC 5291)."""

    family: Family
    subtype: int = RefreshKind.REQUEST
    orf: bytes = b""

    @classmethod
    def decode(cls, body: bytes) -> RouteRefresh:
        """Decode a body. Raises `NotificationError` 7/1 with the whole message as data."""
        if len(body) < 4 or (len(body) > 4 and body[2] in (RefreshKind.BEGIN, RefreshKind.END)):
            raise refresh_error(
                RefreshSubcode.INVALID_MESSAGE_LENGTH,
                frame_message(MessageType.ROUTE_REFRESH, body),
                f"{len(body)} octets",
            )
        return cls(Family(int.from_bytes(body[:2], "big"), body[3]), body[2], body[4:])

    def encode(self) -> bytes:
        """Return the whole message."""
        return frame_message(
            MessageType.ROUTE_REFRESH,
            self.family.afi.to_bytes(2, "big") + bytes((self.subtype, self.family.safi)) + self.orf,
        )
