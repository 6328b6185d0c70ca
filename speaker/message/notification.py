"""NOTIFICATION (RFC 4271 section 4.5) with the shutdown communication of RFC 9003.

Where both ends have the N bit of graceful restart, a NOTIFICATION leaves the routes in place unless
it comes as a hard reset (RFC 8538), which holds the real one inside.

Reading never fails: a NOTIFICATION is not answered, whatever is in it (RFC 4271 section 6.4).
"""

from __future__ import annotations

import msgspec

from speaker.iana import CeaseSubcode, ErrorCode, MessageType, OpenSubcode, describe_error
from speaker.message.header import frame_message

_WITH_TEXT = (CeaseSubcode.ADMINISTRATIVE_SHUTDOWN, CeaseSubcode.ADMINISTRATIVE_RESET)
MAX_COMMUNICATION = 255
_HARD = (
    CeaseSubcode.MAXIMUM_PREFIXES,
    CeaseSubcode.ADMINISTRATIVE_SHUTDOWN,
    CeaseSubcode.PEER_DECONFIGURED,
    CeaseSubcode.ADMINISTRATIVE_RESET,
    CeaseSubcode.BFD_DOWN,
)
"""Ends of a session that are meant to let go of the routes as well."""


class Notification(msgspec.Struct, frozen=True):
    """One NOTIFICATION."""

    code: int
    subcode: int = 0
    data: bytes = b""

    @classmethod
    def cease(cls, subcode: CeaseSubcode, communication: str = "") -> Notification:
        """Make a Cease, with text for the other side's people where the subcode has room for it."""
        if subcode not in _WITH_TEXT or not communication:
            return cls(ErrorCode.CEASE, subcode)
        text = communication.encode()[:MAX_COMMUNICATION].decode(errors="ignore").encode()
        return cls(ErrorCode.CEASE, subcode, bytes((len(text),)) + text)

    @classmethod
    def decode(cls, body: bytes) -> Notification:
        """Read a body, however short it is."""
        padded = body[:2].ljust(2, b"\0")
        return cls(padded[0], padded[1], body[2:])

    def encode(self) -> bytes:
        """Write the whole message."""
        return frame_message(MessageType.NOTIFICATION, bytes((self.code, self.subcode)) + self.data)

    def for_graceful_restart(self) -> Notification:
        """Return it as it is sent where both ends have the N bit (RFC 8538 section 3)."""
        if self.code != ErrorCode.CEASE or self.subcode not in _HARD:
            return self
        inner = bytes((self.code, self.subcode)) + self.data
        return Notification(ErrorCode.CEASE, CeaseSubcode.HARD_RESET, inner)

    @property
    def is_hard_reset(self) -> bool:
        """Whether it lets go of the routes in any case."""
        return self.code == ErrorCode.CEASE and self.subcode == CeaseSubcode.HARD_RESET

    @property
    def reason(self) -> Notification:
        """The NOTIFICATION inside of a hard reset, or this one."""
        if self.is_hard_reset and len(self.data) >= 2:
            return Notification.decode(self.data)
        return self

    @property
    def is_version_error(self) -> bool:
        """Whether it is the one that RFC 4271 has an event of its own for (event 24)."""
        return (
            self.code == ErrorCode.OPEN_MESSAGE and self.subcode == OpenSubcode.UNSUPPORTED_VERSION
        )

    @property
    def communication(self) -> str | None:
        """The shutdown communication (RFC 9003), escaped for people, or None."""
        if self.code != ErrorCode.CEASE or self.subcode not in _WITH_TEXT or not self.data:
            return None
        length = self.data[0]
        if length > len(self.data) - 1:
            return None
        text = self.data[1 : 1 + length].decode("utf-8", "backslashreplace")
        return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)

    def __str__(self) -> str:
        """Spell it for people: ``Cease / Administrative Reset: 'maintenance'``."""
        text = describe_error(self.code, self.subcode)
        said = self.communication
        if said is not None:
            return f"{text}: {said!r}"
        if self.reason is not self and not self.reason.is_hard_reset:
            return f"{text} ({self.reason})"
        if self.code == ErrorCode.OPEN_MESSAGE and self.data:
            return f"{text} (data {self.data[:16].hex()})"
        return text
