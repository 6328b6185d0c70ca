"""The exceptions of decoding and encoding.

::

    BgpError
    ├── NotificationError      the session is reset with this NOTIFICATION (RFC 4271 section 6)
    │   └── (built by header_error, open_error, update_error, refresh_error)
    ├── Truncated              a field needs more octets than there are; the caller adds the code
    └── EncodingError          a value that does not fit its field; an error of this side

Errors that do not reset the session are values: `speaker.attribute.AttributeFault` (RFC 7606).
"""

from __future__ import annotations

from speaker.iana import (
    ErrorCode,
    HeaderSubcode,
    OpenSubcode,
    RefreshSubcode,
    UpdateSubcode,
    describe_error,
)


class BgpError(Exception):
    """Base class of the package's exceptions."""


class NotificationError(BgpError):
    """The session is reset; code, subcode and data are the NOTIFICATION's."""

    def __init__(self, code: int, subcode: int = 0, data: bytes = b"", detail: str = "") -> None:
        text = describe_error(code, subcode)
        super().__init__(f"{text}: {detail}" if detail else text)
        self.code = int(code)
        self.subcode = int(subcode)
        self.data = data
        self.detail = detail


class Truncated(BgpError):  # noqa: N818  named after the event
    """Fewer octets than a field needs."""


class EncodingError(BgpError):
    """A value does not fit its field."""


def header_error(subcode: HeaderSubcode, data: bytes = b"", detail: str = "") -> NotificationError:
    """Return a Message Header Error (RFC 4271 section 6.1)."""
    return NotificationError(ErrorCode.MESSAGE_HEADER, subcode, data, detail)


def open_error(
    subcode: OpenSubcode | int, data: bytes = b"", detail: str = ""
) -> NotificationError:
    """Return an OPEN Message Error (RFC 4271 section 6.2)."""
    return NotificationError(ErrorCode.OPEN_MESSAGE, subcode, data, detail)


def update_error(subcode: UpdateSubcode, data: bytes = b"", detail: str = "") -> NotificationError:
    """Return an UPDATE Message Error (RFC 4271 section 6.3)."""
    return NotificationError(ErrorCode.UPDATE_MESSAGE, subcode, data, detail)


def refresh_error(
    subcode: RefreshSubcode, data: bytes = b"", detail: str = ""
) -> NotificationError:
    """Return a ROUTE-REFRESH Message Error (RFC 7313 section 5)."""
    return NotificationError(ErrorCode.ROUTE_REFRESH, subcode, data, detail)
