"""NOTIFICATION (RFC 4271 section 4.5) with the Shutdown Communication of RFC 9003.

If both speakers have the N bit of graceful restart, routes are retained after a NOTIFICATION, except
after a Hard Reset, which encapsulates another NOTIFICATION (RFC 8538).

Decoding never fails: errors in a NOTIFICATION are not answered (RFC 4271 section 6.4).
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import msgspec

from speaker.iana import CeaseSubcode, ErrorCode, MessageType, OpenSubcode, describe_error
from speaker.message.header import frame_message

_WITH_TEXT = (CeaseSubcode.ADMINISTRATIVE_SHUTDOWN, CeaseSubcode.ADMINISTRATIVE_RESET)
MAX_COMMUNICATION = 255
_PREFIX_LIMIT = struct.Struct(">HBI")
"""AFI, SAFI and prefix upper bound (RFC 4486 section 4)."""
_HARD = (
    CeaseSubcode.MAXIMUM_PREFIXES,
    CeaseSubcode.ADMINISTRATIVE_SHUTDOWN,
    CeaseSubcode.PEER_DECONFIGURED,
    CeaseSubcode.ADMINISTRATIVE_RESET,
    CeaseSubcode.BFD_DOWN,
)
"""The Cease subcodes that are sent as Hard Reset: the routes must not be retained."""


class PrefixLimitReached(NamedTuple):
    """The data of Cease / Maximum Number of Prefixes Reached (RFC 4486 section 4)."""

    afi: int
    safi: int
    limit: int
    """The prefix upper bound."""


class Notification(msgspec.Struct, frozen=True):
    """One NOTIFICATION."""

    code: int
    subcode: int = 0
    data: bytes = b""

    @classmethod
    def cease(cls, subcode: CeaseSubcode, communication: str = "") -> Notification:
        """Return a Cease, with a Shutdown Communication if the subcode permits one (RFC 9003).

        The text is truncated to 255 octets of UTF-8.
        """
        if subcode not in _WITH_TEXT or not communication:
            return cls(ErrorCode.CEASE, subcode)
        text = communication.encode()[:MAX_COMMUNICATION].decode(errors="ignore").encode()
        return cls(ErrorCode.CEASE, subcode, bytes((len(text),)) + text)

    @classmethod
    def decode(cls, body: bytes) -> Notification:
        """Decode a body of any length."""
        padded = body[:2].ljust(2, b"\0")
        return cls(padded[0], padded[1], body[2:])

    def encode(self) -> bytes:
        """Return the whole message."""
        return frame_message(MessageType.NOTIFICATION, bytes((self.code, self.subcode)) + self.data)

    def for_graceful_restart(self) -> Notification:
        """Return it as sent if both speakers have the N bit (RFC 8538 section 3)."""
        if self.code != ErrorCode.CEASE or self.subcode not in _HARD:
            return self
        inner = bytes((self.code, self.subcode)) + self.data
        return Notification(ErrorCode.CEASE, CeaseSubcode.HARD_RESET, inner)

    @property
    def is_hard_reset(self) -> bool:
        """Whether it is a Hard Reset: routes are not retained (RFC 8538)."""
        return self.code == ErrorCode.CEASE and self.subcode == CeaseSubcode.HARD_RESET

    @property
    def reason(self) -> Notification:
        """The encapsulated NOTIFICATION of a Hard Reset, or this one."""
        if self.is_hard_reset and len(self.data) >= 2:
            return Notification.decode(self.data)
        return self

    @property
    def is_prefix_limit(self) -> bool:
        """Whether it is Cease / Maximum Number of Prefixes Reached, also within a Hard Reset."""
        reason = self.reason
        return reason.code == ErrorCode.CEASE and reason.subcode == CeaseSubcode.MAXIMUM_PREFIXES

    @property
    def prefix_limit(self) -> PrefixLimitReached | None:
        """The limit that the peer names; None without its data, which is optional (RFC 4486)."""
        data = self.reason.data
        if not self.is_prefix_limit or len(data) < _PREFIX_LIMIT.size:
            return None
        return PrefixLimitReached(*_PREFIX_LIMIT.unpack_from(data))

    @property
    def is_version_error(self) -> bool:
        """Whether it is a version error: event 24 of the state machine (RFC 4271 section 8.1.5)."""
        return (
            self.code == ErrorCode.OPEN_MESSAGE and self.subcode == OpenSubcode.UNSUPPORTED_VERSION
        )

    @property
    def communication(self) -> str | None:
        """The Shutdown Communication (RFC 9003), non-printable characters escaped, or None."""
        if self.code != ErrorCode.CEASE or self.subcode not in _WITH_TEXT or not self.data:
            return None
        length = self.data[0]
        if length > len(self.data) - 1:
            return None
        text = self.data[1 : 1 + length].decode("utf-8", "backslashreplace")
        return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)

    def __str__(self) -> str:
        """Format it: ``Cease / Administrative Reset: 'maintenance'``."""
        text = describe_error(self.code, self.subcode)
        communication = self.communication
        if communication is not None:
            return f"{text}: {communication!r}"
        if self.reason is not self and not self.reason.is_hard_reset:
            return f"{text} ({self.reason})"
        if self.code == ErrorCode.OPEN_MESSAGE and self.data:
            return f"{text} (data {self.data[:16].hex()})"
        return text
