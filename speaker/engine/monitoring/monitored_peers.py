"""The peers of BMP: sessions (RFC 7854) and Loc-RIBs (RFC 9069), with Peer Up and Peer Down.

The constant part of a per-peer header is encoded once. Nothing is sent from here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Final, final

from msgspec.structs import replace

from speaker.api import Monitor
from speaker.bmp import (
    PeerDown,
    PeerDownReason,
    PeerHeader,
    PeerKind,
    PeerUp,
    PeerUpTlv,
    Tlv,
    encode,
    encode_peer_header,
    encode_route_monitoring,
)
from speaker.capability import (
    Capability,
    ExtendedMessage,
    ExtendedNextHop,
    FourOctetAs,
    Multiprotocol,
)
from speaker.engine.established_peer import EstablishedPeer
from speaker.engine.instance import Instance
from speaker.fsm import Event
from speaker.iana import IPV4_UNICAST, Afi, Family, MessageType, Safi
from speaker.message import Open, frame_message
from speaker.peer.addresses import address_octets

_TIME: Final = 34
"""The offset of the timestamp in a per-peer header (RFC 7854 section 4.2)."""
LOC_RIB_FAMILIES: Final = tuple(
    Family(afi, safi) for afi in (Afi.IPV4, Afi.IPV6) for safi in (Safi.UNICAST, Safi.MULTICAST)
)
"""The families that a Loc-RIB can hold."""


def distinguisher_of(*names: str) -> int:
    """Return a distinguisher of 64 bits for a name: the same in every run, never 0."""
    digest = hashlib.blake2b("\0".join(names).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") or 1


class MonitoredPeer:
    """A session or a Loc-RIB."""

    __slots__ = ("_headers", "header", "present", "views")

    def __init__(self, header: PeerHeader, views: dict[Monitor, PeerHeader]) -> None:
        self.header = header
        self.present = True
        """False after its removal."""
        self.views = views
        """The per-peer header of each kind of routes."""
        self._headers = {
            monitor: encode_peer_header(view)[:_TIME] for monitor, view in views.items()
        }

    def monitored(self, monitor: Monitor, updates: Iterable[bytes], time: bytes) -> bytes:
        """Return Route Monitoring messages; ``time`` are the eight octets of their timestamp."""
        return encode_route_monitoring(self._headers[monitor] + time, updates)

    def at(self, time: int) -> PeerHeader:
        """Return the header of a message without routes; ``time`` in microseconds of Unix time."""
        return replace(self.header, time=time)

    @property
    def identity(self) -> tuple[int, bytes]:
        """The peer's key among all monitored peers (RFC 7854 section 4.2)."""
        return (self.header.distinguisher, self.header.address)


@final
class MonitoredSession(MonitoredPeer):
    """A session that is Established."""

    __slots__ = ("established",)

    def __init__(self, number: int, established: EstablishedPeer) -> None:
        """``number`` is the distinguisher, 0 for the default table."""
        self.established = established
        negotiated = established.negotiated
        header = PeerHeader(
            kind=PeerKind.LOCAL if number else PeerKind.GLOBAL,
            distinguisher=number,
            address=address_octets(established.session.remote[0]),
            asn=negotiated.peer_asn,
            router_id=negotiated.peer_router_id,
            legacy_as_path=not negotiated.as4,
        )
        super().__init__(
            header,
            {
                "pre-policy": header,
                "post-policy": replace(header, post_policy=True),
                "adj-rib-out": replace(header, adj_rib_out=True, post_policy=True),
            },
        )

    def up(self, time: int) -> bytes:
        """Return Peer Up, with both OPENs as on the wire (RFC 7854 section 4.10)."""
        session = self.established.session
        name = self.established.peer.name
        return encode(
            PeerUp(
                peer=self.at(time),
                local_address=address_octets(session.local[0]),
                local_port=session.local[1],
                remote_port=session.remote[1],
                sent_open=session.open_sent,
                received_open=frame_message(MessageType.OPEN, session.open_received),
                information=(Tlv(PeerUpTlv.ADMIN_LABEL, name.encode()),),
            )
        )

    def down(self, time: int) -> bytes:
        """Return Peer Down with its reason (RFC 7854 section 4.9)."""
        session = self.established.session
        peer = self.at(time)
        if session.notified is not None:
            notification, sent = session.notified
            reason = (
                PeerDownReason.LOCAL_NOTIFICATION if sent else PeerDownReason.REMOTE_NOTIFICATION
            )
            return encode(PeerDown(peer=peer, reason=reason, notification=notification.encode()))
        if session.left_by is Event.TCP_CONNECTION_FAILS:
            return encode(PeerDown(peer=peer, reason=PeerDownReason.REMOTE_CLOSED))
        return encode(
            PeerDown(peer=peer, reason=PeerDownReason.LOCAL_EVENT, event=int(session.left_by))
        )


@final
class MonitoredLocRib(MonitoredPeer):
    """The Loc-RIB of one instance (RFC 9069)."""

    __slots__ = ("_information", "_open", "instance")

    def __init__(self, number: int, instance: Instance) -> None:
        self.instance = instance
        header = PeerHeader(
            kind=PeerKind.LOC_RIB,
            distinguisher=number,
            address=b"",
            asn=instance.local_asn,
            router_id=instance.router_id,
        )
        super().__init__(header, {"loc-rib": header})
        # RFC 9069 section 4.4: the default table is named "global".
        name = (instance.vrf or instance.name) if number else "global"
        octets = name.encode()[:255].decode(errors="ignore").encode()
        self._information = (Tlv(PeerUpTlv.TABLE_NAME, octets),)
        self._open = Open(
            asn=instance.local_asn,
            hold_time=0,
            router_id=instance.router_id,
            capabilities=(*_LOC_RIB_CAPABILITIES, FourOctetAs(instance.local_asn)),
        ).encode()

    def up(self, time: int) -> bytes:
        """Return Peer Up, with OPENs made up for their capabilities (RFC 9069 section 5.2)."""
        return encode(
            PeerUp(
                peer=self.at(time),
                sent_open=self._open,
                received_open=self._open,
                information=self._information,
            )
        )

    def down(self, time: int) -> bytes:
        """Return Peer Down (RFC 9069 section 5.3)."""
        return encode(
            PeerDown(
                peer=self.at(time),
                reason=PeerDownReason.LOCAL_TLV,
                information=self._information,
            )
        )


_LOC_RIB_CAPABILITIES: Final[tuple[Capability, ...]] = (
    *(Multiprotocol(family) for family in LOC_RIB_FAMILIES),
    ExtendedNextHop(((IPV4_UNICAST, Afi.IPV6),)),
    ExtendedMessage(),
)


def views_of(peer: MonitoredPeer, wanted: Sequence[Monitor]) -> tuple[Monitor, ...]:
    """Return the kinds of routes that a station wants and a monitored peer has."""
    return tuple(monitor for monitor in peer.views if monitor in wanted)
