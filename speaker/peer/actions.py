"""What the core asks of its shell, and what it tells it: the only way out of the pure part.

Frozen values. A connection is a number that the core chose (an attempt of its own) or that the
shell gave (an accepted one); the core never sees a socket.
"""

from __future__ import annotations

import msgspec

from speaker.api import Event, Secret


class Connect(msgspec.Struct, frozen=True, kw_only=True):
    """Open a TCP connection; answered by TransportConnected or TransportFailed.

    ``ttl`` 0 leaves the system's; packets with less than ``min_ttl`` are dropped (RFC
    5082). With a password the connection is protected by it or is not
    made at all.
    """

    connection: int
    instance: str | None
    """None for a monitoring station, which then is ``peer``."""
    peer: str
    address: str
    port: int
    interface: str | None
    local_address: str | None
    local_port: int | None
    ttl: int
    min_ttl: int
    password: Secret | None


class SetTtl(msgspec.Struct, frozen=True):
    """Give an accepted connection the TTLs of its peer, as in `Connect`."""

    connection: int
    ttl: int
    min_ttl: int


class Write(msgspec.Struct, frozen=True):
    """Send octets, in order; the parts may be shared with other connections."""

    connection: int
    parts: tuple[bytes, ...]
    prefixes: int = 0
    """How many prefixes they announce or withdraw."""


class Close(msgspec.Struct, frozen=True):
    """Close a connection, after what was written unless it is aborted."""

    connection: int
    abort: bool = False


class ReportEvent(msgspec.Struct, frozen=True):
    """Something happened that people may want to know."""

    event: Event


Action = Connect | SetTtl | Write | Close | ReportEvent
