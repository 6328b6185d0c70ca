"""Actions: what the core requests of the shell, and the events that it reports.

Frozen values, and the only output of the core. A connection is a number: positive for attempts of
the core, negative for connections that the shell accepted. The core never sees a socket.
"""

from __future__ import annotations

import msgspec

from speaker.api import BestPathItem, Event, Secret


class Connect(msgspec.Struct, frozen=True, kw_only=True):
    """Open a TCP connection; answered by TransportConnected or TransportFailed.

    ``ttl`` 0 keeps the system's default; packets with a TTL below ``min_ttl`` are dropped (RFC
    5082). With a password the connection is protected by TCP MD5 (RFC 2385) or not made at all.
    """

    connection: int
    instance: str | None
    """None for a monitoring station; ``peer`` is the station's name then."""
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
    """Set the TTLs of an accepted connection, as in `Connect`."""

    connection: int
    ttl: int
    min_ttl: int


class Write(msgspec.Struct, frozen=True):
    """Send octets, in order; the parts may be shared with other connections."""

    connection: int
    parts: tuple[bytes, ...]
    prefixes: int = 0
    """Number of prefixes that the octets announce or withdraw."""


class Close(msgspec.Struct, frozen=True):
    """Close a connection, after all octets written before, unless it is aborted."""

    connection: int
    abort: bool = False


class ReportEvent(msgspec.Struct, frozen=True):
    """Report an event to the speaker's owner: logs, metrics, status."""

    event: Event


class SendBestPaths(msgspec.Struct, frozen=True):
    """Give a reader of best paths a batch of items, in order; answered by BestPathsTaken."""

    reader: int
    items: tuple[BestPathItem, ...]


class EndBestPaths(msgspec.Struct, frozen=True):
    """End the stream of a reader of best paths, after an internal error that was reported."""

    reader: int


Action = Connect | SetTtl | Write | Close | ReportEvent | SendBestPaths | EndBestPaths
