"""Octets to BMP messages, with the checks of RFC 7854, 8671 and 9069.

For tests and tools: the speaker never receives BMP. For any octets the only exception is `BmpError`,
and at most one message of the largest size is buffered.
"""

from __future__ import annotations

import struct
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
    PEER_HEADER_SIZE,
    VERSION,
    InitiationTlv,
    MessageKind,
    MirroringTlv,
    PeerDownReason,
    PeerFlag,
    PeerKind,
    PeerUpTlv,
    StatisticKind,
    TerminationTlv,
)
from speaker.errors import BgpError, NotificationError, Truncated
from speaker.iana import Family, MessageType
from speaker.message import HEADER_SIZE as BGP_HEADER_SIZE
from speaker.message import check_header
from speaker.negotiated import MAX_EXTENDED_MESSAGE
from speaker.wire import Reader

MAX_SIZE: Final = 1 << 20
"""The largest accepted message in octets; an encapsulated BGP message has at most 65,535."""
_PEER: Final = struct.Struct(">BBQ16sIIII")
_KNOWN: Final = frozenset(StatisticKind)


class BmpError(BgpError):
    """Octets that are no BMP message; the text is the violated rule."""


def _header(data: bytes) -> tuple[int, int]:
    """Return type and size of a message (RFC 7854 section 4.1)."""
    if data[0] != VERSION:
        raise BmpError(f"version {data[0]}, not {VERSION}")
    size = int.from_bytes(data[1:5], "big")
    if not HEADER_SIZE <= size <= MAX_SIZE:
        raise BmpError(f"a message of {size} octets")
    return data[5], size


def decode(data: bytes) -> Message:
    """Decode one whole message. Raises `BmpError`."""
    if len(data) < HEADER_SIZE:
        raise BmpError(f"{len(data)} octets where a header has {HEADER_SIZE}")
    kind, size = _header(data)
    if size != len(data):
        raise BmpError(f"{len(data)} octets in a message of {size}")
    reader = Reader(data[HEADER_SIZE:])
    try:
        return _message(kind, reader)
    except Truncated as error:
        raise BmpError(f"message of type {kind}: {error}") from None


def _message(kind: int, reader: Reader) -> Message:
    match kind:
        case MessageKind.INITIATION:
            return _initiation(reader)
        case MessageKind.TERMINATION:
            return _termination(reader)
        case MessageKind.ROUTE_MONITORING:
            peer = _peer(reader)
            return RouteMonitoring(peer, _bgp(reader, MessageType.UPDATE, whole=True))
        case MessageKind.STATISTICS_REPORT:
            return _statistics(reader)
        case MessageKind.PEER_DOWN:
            return _down(reader)
        case MessageKind.PEER_UP:
            return _up(reader)
        case MessageKind.ROUTE_MIRRORING:
            return _mirroring(reader)
        case _:
            return UnknownMessage(kind, reader.rest())


def _tlvs(reader: Reader) -> tuple[Tlv, ...]:
    tlvs = []
    while reader.remaining:
        kind = reader.u16()
        tlvs.append(Tlv(kind, reader.take(reader.u16())))
    return tuple(tlvs)


def _peer(reader: Reader) -> PeerHeader:
    """Decode a per-peer header (RFC 7854 section 4.2, RFC 8671 section 4, RFC 9069 section 4.2)."""
    kind, flags, distinguisher, address, asn, router_id, seconds, microseconds = _PEER.unpack(
        reader.take(PEER_HEADER_SIZE)
    )
    if kind not in PeerKind.__members__.values():
        raise BmpError(f"peer type {kind}")
    if microseconds >= 1_000_000:
        raise BmpError(f"{microseconds} microseconds in a timestamp")
    if kind == PeerKind.GLOBAL and distinguisher:
        raise BmpError("a global peer with a distinguisher")
    time = seconds * 1_000_000 + microseconds
    if kind == PeerKind.LOC_RIB:
        if any(address):
            raise BmpError("a Loc-RIB with an address")
        return PeerHeader(
            kind=kind,
            distinguisher=distinguisher,
            address=b"",
            asn=asn,
            router_id=router_id,
            filtered=bool(flags & FILTERED),
            time=time,
        )
    ipv6 = bool(flags & PeerFlag.IPV6)
    if not ipv6 and any(address[:12]):
        raise BmpError("an IPv4 address with more than four octets")
    return PeerHeader(
        kind=kind,
        distinguisher=distinguisher,
        address=address if ipv6 else address[12:],
        asn=asn,
        router_id=router_id,
        post_policy=bool(flags & PeerFlag.POST_POLICY),
        legacy_as_path=bool(flags & PeerFlag.LEGACY_AS_PATH),
        adj_rib_out=bool(flags & PeerFlag.ADJ_RIB_OUT),
        time=time,
    )


def _bgp(reader: Reader, kind: MessageType, *, whole: bool = False) -> bytes:
    """Decode a BGP message with its header; with ``whole`` nothing may follow it."""
    head = reader.take(BGP_HEADER_SIZE)
    try:
        message_type, size = check_header(head, maximum=MAX_EXTENDED_MESSAGE)
    except NotificationError as error:
        raise BmpError(str(error)) from None
    if message_type != kind:
        raise BmpError(f"a BGP message of type {message_type} in place of {kind.name}")
    message = head + reader.take(size - BGP_HEADER_SIZE)
    if whole and reader.remaining:
        raise BmpError(f"{reader.remaining} octets behind the {kind.name}")
    return message


def _initiation(reader: Reader) -> Initiation:
    tlvs = _tlvs(reader)
    kinds = {tlv.type for tlv in tlvs}
    for needed in (InitiationTlv.SYSTEM_DESCRIPTION, InitiationTlv.SYSTEM_NAME):
        if needed not in kinds:
            raise BmpError(f"an Initiation without {needed.name}")
    return Initiation(tlvs)


def _termination(reader: Reader) -> Termination:
    tlvs = _tlvs(reader)
    for tlv in tlvs:
        if tlv.type == TerminationTlv.REASON and len(tlv.value) != 2:
            raise BmpError(f"a reason of {len(tlv.value)} octets")
    return Termination(tlvs)


def _up(reader: Reader) -> PeerUp:
    peer = _peer(reader)
    address = reader.take(16)
    local_port, remote_port = reader.u16(), reader.u16()
    if peer.kind == PeerKind.LOC_RIB:
        # RFC 9069 section 4.4
        if any(address) or local_port or remote_port:
            raise BmpError("a Loc-RIB with an address or a port")
        address = b""
    elif len(peer.address) == 4:
        # The V flag applies to the session: both addresses are of one family.
        if any(address[:12]):
            raise BmpError("an IPv6 local address towards an IPv4 peer")
        address = address[12:]
    return PeerUp(
        peer=peer,
        local_address=address,
        local_port=local_port,
        remote_port=remote_port,
        sent_open=_bgp(reader, MessageType.OPEN),
        received_open=_bgp(reader, MessageType.OPEN),
        information=_named(peer, _tlvs(reader)),
    )


def _named(peer: PeerHeader, tlvs: tuple[Tlv, ...]) -> tuple[Tlv, ...]:
    """Check the name of a Loc-RIB's table (RFC 9069 section 4.4)."""
    if peer.kind == PeerKind.LOC_RIB:
        for tlv in tlvs:
            if tlv.type == PeerUpTlv.TABLE_NAME and not 1 <= len(tlv.value) <= 255:
                raise BmpError(f"a table name of {len(tlv.value)} octets")
    return tlvs


def _down(reader: Reader) -> PeerDown:
    peer = _peer(reader)
    reason = reader.u8()
    if reason in (0, 255):
        raise BmpError(f"reason {reason} is reserved")
    if reason in WITH_NOTIFICATION:
        notification = _bgp(reader, MessageType.NOTIFICATION, whole=True)
        return PeerDown(peer=peer, reason=reason, notification=notification)
    if reason == PeerDownReason.LOCAL_EVENT:
        message = PeerDown(peer=peer, reason=reason, event=reader.u16())
    elif reason == PeerDownReason.LOCAL_TLV:
        return PeerDown(peer=peer, reason=reason, information=_named(peer, _tlvs(reader)))
    elif reason in (PeerDownReason.REMOTE_CLOSED, PeerDownReason.DECONFIGURED):
        message = PeerDown(peer=peer, reason=reason)
    else:
        return PeerDown(peer=peer, reason=reason, data=reader.rest())
    if reader.remaining:
        raise BmpError(f"{reader.remaining} octets behind reason {reason}")
    return message


def _statistics(reader: Reader) -> StatisticsReport:
    peer = _peer(reader)
    count = reader.u32()
    statistics = []
    for _ in range(count):
        kind = reader.u16()
        value = reader.take(reader.u16())
        if kind not in _KNOWN:
            continue
        size = 11 if kind in FAMILY_GAUGES else 8 if kind in GAUGES else 4
        if len(value) != size:
            raise BmpError(f"statistic {kind} has {len(value)} octets, not {size}")
        family = None
        if kind in FAMILY_GAUGES:
            family, value = Family(int.from_bytes(value[:2], "big"), value[2]), value[3:]
        statistics.append(Statistic(kind, int.from_bytes(value, "big"), family))
    if reader.remaining:
        raise BmpError(f"{reader.remaining} octets behind {count} statistics")
    return StatisticsReport(peer, tuple(statistics))


def _mirroring(reader: Reader) -> RouteMirroring:
    peer = _peer(reader)
    items = _tlvs(reader)
    for item in items:
        if item.type == MirroringTlv.INFORMATION and len(item.value) != 2:
            raise BmpError(f"an information code of {len(item.value)} octets")
    return RouteMirroring(peer, items)
