"""BMP values to octets (RFC 7854 section 4). Pure: only the sizes of fields are checked.

`encode` writes one message of any kind. For many Route Monitoring messages of one peer,
`encode_peer_header` runs once and `encode_route_monitoring` once for all of its UPDATEs.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from speaker.bmp.bmp_messages import (
    WITH_NOTIFICATION,
    Initiation,
    Message,
    PeerDown,
    PeerHeader,
    PeerUp,
    RouteMirroring,
    RouteMonitoring,
    Statistic,
    StatisticsReport,
    Termination,
    Tlv,
    UnknownMessage,
)
from speaker.bmp.numbers import (
    FAMILY_GAUGES,
    FILTERED,
    GAUGES,
    HEADER_SIZE,
    VERSION,
    MessageKind,
    PeerDownReason,
    PeerFlag,
    PeerKind,
)
from speaker.errors import EncodingError

_PEER: Final = struct.Struct(">BBQ16sIIII")
_HEADER: Final = struct.Struct(">BIB")
_MONITORING: Final = _HEADER.pack(VERSION, 0, MessageKind.ROUTE_MONITORING)[-1:]
_VERSION: Final = bytes((VERSION,))


def frame(kind: int, *parts: bytes) -> bytes:
    """Return a message: the common header (RFC 7854 section 4.1), then the parts."""
    size = HEADER_SIZE + sum(map(len, parts))
    return b"".join((_HEADER.pack(VERSION, size, kind), *parts))


def _address(octets: bytes) -> bytes:
    """Return an address field of 16 octets; an IPv4 address is in the last four."""
    if len(octets) not in (0, 4, 16):
        raise EncodingError(f"an address of {len(octets)} octets")
    return octets.rjust(16, b"\0")


def encode_peer_header(peer: PeerHeader) -> bytes:
    """Return the 42 octets of a per-peer header (RFC 7854 section 4.2)."""
    if peer.kind == PeerKind.LOC_RIB:
        flags = FILTERED if peer.filtered else 0
    else:
        flags = (
            (PeerFlag.IPV6 if len(peer.address) == 16 else 0)
            | (PeerFlag.POST_POLICY if peer.post_policy else 0)
            | (PeerFlag.LEGACY_AS_PATH if peer.legacy_as_path else 0)
            | (PeerFlag.ADJ_RIB_OUT if peer.adj_rib_out else 0)
        )
    seconds, microseconds = divmod(peer.time, 1_000_000)
    return _PEER.pack(
        peer.kind,
        flags,
        peer.distinguisher,
        _address(peer.address),
        peer.asn,
        peer.router_id,
        seconds & 0xFFFFFFFF,
        microseconds,
    )


def encode_route_monitoring(peer: bytes, updates: Iterable[bytes]) -> bytes:
    """Return Route Monitoring messages with an encoded per-peer header, one for each UPDATE."""
    parts: list[bytes] = []
    for update in updates:
        size = HEADER_SIZE + len(peer) + len(update)
        parts += (_VERSION, size.to_bytes(4, "big"), _MONITORING, peer, update)
    return b"".join(parts)


def _tlvs(tlvs: Iterable[Tlv]) -> bytes:
    parts: list[bytes] = []
    for tlv in tlvs:
        if len(tlv.value) > 0xFFFF:
            raise EncodingError(f"a TLV of {len(tlv.value)} octets")
        parts += (tlv.type.to_bytes(2, "big"), len(tlv.value).to_bytes(2, "big"), tlv.value)
    return b"".join(parts)


def _statistic(statistic: Statistic) -> bytes:
    kind = statistic.kind
    if kind in FAMILY_GAUGES:
        family = statistic.family
        if family is None:
            raise EncodingError(f"statistic {kind} without a family")
        value = family.afi.to_bytes(2, "big") + bytes((family.safi,))
        value += statistic.value.to_bytes(8, "big")
    elif kind in GAUGES:
        value = statistic.value.to_bytes(8, "big")
    else:
        # A counter of 32 bits wraps around.
        value = (statistic.value & 0xFFFFFFFF).to_bytes(4, "big")
    return kind.to_bytes(2, "big") + len(value).to_bytes(2, "big") + value


def _down(message: PeerDown) -> bytes:
    reason = message.reason
    if reason in WITH_NOTIFICATION:
        data = message.notification
    elif reason == PeerDownReason.LOCAL_EVENT:
        data = message.event.to_bytes(2, "big")
    elif reason == PeerDownReason.LOCAL_TLV:
        data = _tlvs(message.information)
    else:
        data = message.data
    return bytes((reason,)) + data


def encode(message: Message) -> bytes:
    """Return a whole message. Raises `EncodingError`."""
    match message:
        case RouteMonitoring(peer, update):
            return encode_route_monitoring(encode_peer_header(peer), (update,))
        case StatisticsReport(peer, statistics):
            return frame(
                MessageKind.STATISTICS_REPORT,
                encode_peer_header(peer),
                len(statistics).to_bytes(4, "big"),
                *map(_statistic, statistics),
            )
        case PeerDown(peer=peer):
            return frame(MessageKind.PEER_DOWN, encode_peer_header(peer), _down(message))
        case PeerUp(peer=peer):
            return frame(
                MessageKind.PEER_UP,
                encode_peer_header(peer),
                _address(message.local_address),
                message.local_port.to_bytes(2, "big"),
                message.remote_port.to_bytes(2, "big"),
                message.sent_open,
                message.received_open,
                _tlvs(message.information),
            )
        case Initiation(information):
            return frame(MessageKind.INITIATION, _tlvs(information))
        case Termination(information):
            return frame(MessageKind.TERMINATION, _tlvs(information))
        case RouteMirroring(peer, items):
            return frame(MessageKind.ROUTE_MIRRORING, encode_peer_header(peer), _tlvs(items))
        case UnknownMessage(kind, body):
            return frame(kind, body)
