"""The messages of BGP-4 (RFC 4271 section 4), decoded and encoded, with the checks of its section 6.

Pure functions and values. UPDATEs for update groups are encoded in `speaker.rib.pack`.
"""

from speaker.message.header import (
    HEADER_SIZE,
    KEEPALIVE,
    MARKER,
    check_header,
    frame_message,
)
from speaker.message.multiprotocol import reset_attribute
from speaker.message.notification import Notification
from speaker.message.open import Open, decode_open
from speaker.message.route_refresh import RefreshKind, RouteRefresh
from speaker.message.update import Reach, Unreach, Update, UpdateDecoder

__all__ = [
    "HEADER_SIZE",
    "KEEPALIVE",
    "MARKER",
    "Notification",
    "Open",
    "Reach",
    "RefreshKind",
    "RouteRefresh",
    "Unreach",
    "Update",
    "UpdateDecoder",
    "check_header",
    "decode_open",
    "frame_message",
    "reset_attribute",
]
