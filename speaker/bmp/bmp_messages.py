"""BMP messages as frozen values. Encapsulated BGP messages are octets, header included."""

from __future__ import annotations

from typing import Final

import msgspec

from speaker.bmp.numbers import PeerDownReason, PeerKind, TerminationReason, TerminationTlv
from speaker.iana import Family


class Tlv(msgspec.Struct, frozen=True):
    """A type of two octets and a value; the meaning of a type depends on the message."""

    type: int
    value: bytes

    @property
    def text(self) -> str:
        """The value of a string TLV; invalid UTF-8 escaped."""
        return self.value.decode("utf-8", "backslashreplace")


class PeerHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The per-peer header: the peer or the Loc-RIB of a message (RFC 7854 section 4.2)."""

    kind: int = PeerKind.GLOBAL
    distinguisher: int = 0
    """64 bits: zero, a route distinguisher, or a number of this router's own."""
    address: bytes = b"\0\0\0\0"
    """4 or 16 octets; empty for a Loc-RIB."""
    asn: int
    router_id: int
    post_policy: bool = False
    """L: the routes are those after policy."""
    legacy_as_path: bool = False
    """A: AS_PATH has two octets per AS."""
    adj_rib_out: bool = False
    """O: the routes are those advertised to the peer (RFC 8671)."""
    filtered: bool = False
    """F: the Loc-RIB is filtered (RFC 9069)."""
    time: int = 0
    """The time of reception in microseconds since the epoch; 0 if unknown."""


class Initiation(msgspec.Struct, frozen=True):
    """The first message of a session (RFC 7854 section 4.3)."""

    information: tuple[Tlv, ...]


class Termination(msgspec.Struct, frozen=True):
    """The last message of a session (RFC 7854 section 4.5)."""

    information: tuple[Tlv, ...]

    @classmethod
    def because(cls, reason: TerminationReason) -> Termination:
        """Return a Termination with a reason."""
        return cls((Tlv(TerminationTlv.REASON, reason.to_bytes(2, "big")),))

    @property
    def reason(self) -> int | None:
        """The reason code, or None."""
        for tlv in self.information:
            if tlv.type == TerminationTlv.REASON:
                return int.from_bytes(tlv.value, "big")
        return None


class PeerUp(msgspec.Struct, frozen=True, kw_only=True):
    """A session is Established (RFC 7854 section 4.10), or a Loc-RIB exists (RFC 9069)."""

    peer: PeerHeader
    local_address: bytes = b""
    """4 or 16 octets; empty for a Loc-RIB."""
    local_port: int = 0
    remote_port: int = 0
    sent_open: bytes
    received_open: bytes
    information: tuple[Tlv, ...] = ()


class PeerDown(msgspec.Struct, frozen=True, kw_only=True):
    """A session or a Loc-RIB is no longer monitored (RFC 7854 section 4.9)."""

    peer: PeerHeader
    reason: int
    notification: bytes = b""
    """With `LOCAL_NOTIFICATION` and `REMOTE_NOTIFICATION`: the whole message."""
    event: int = 0
    """With `LOCAL_EVENT`."""
    information: tuple[Tlv, ...] = ()
    """With `LOCAL_TLV`."""
    data: bytes = b""
    """With an unknown reason."""


class RouteMonitoring(msgspec.Struct, frozen=True):
    """Routes as one UPDATE (RFC 7854 section 4.6)."""

    peer: PeerHeader
    update: bytes


class Statistic(msgspec.Struct, frozen=True):
    """One counter or gauge (RFC 7854 section 4.8); ``family`` for gauges of one family."""

    kind: int
    value: int
    family: Family | None = None


class StatisticsReport(msgspec.Struct, frozen=True):
    """Statistics of a peer or a Loc-RIB; decoding omits unknown kinds."""

    peer: PeerHeader
    statistics: tuple[Statistic, ...]


class RouteMirroring(msgspec.Struct, frozen=True):
    """Messages as received from a peer (RFC 7854 section 4.7); only decoded, never sent."""

    peer: PeerHeader
    items: tuple[Tlv, ...]


class UnknownMessage(msgspec.Struct, frozen=True):
    """A message of an unknown type, which a receiver ignores (RFC 7854 section 4.1)."""

    kind: int
    body: bytes


Message = (
    Initiation
    | Termination
    | PeerUp
    | PeerDown
    | RouteMonitoring
    | StatisticsReport
    | RouteMirroring
    | UnknownMessage
)

WITH_NOTIFICATION: Final = frozenset(
    {PeerDownReason.LOCAL_NOTIFICATION, PeerDownReason.REMOTE_NOTIFICATION}
)
