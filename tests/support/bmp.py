"""A monitoring station without checks of its own: RIBs rebuilt from a stream of BMP.

It knows nothing of the speaker but its BMP, and it is strict: what the RFCs do not allow fails the
test. Attributes are compared as values, so it does not matter how an UPDATE was put together.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec.structs import replace

from speaker.attribute import ErrorHandling, PathAttributes
from speaker.bmp import (
    Initiation,
    Message,
    PeerDown,
    PeerHeader,
    PeerKind,
    PeerUp,
    RouteMonitoring,
    StatisticsReport,
    Termination,
    decode,
)
from speaker.bmp.numbers import HEADER_SIZE as BMP_HEADER_SIZE
from speaker.message import HEADER_SIZE, UpdateDecoder, decode_open
from speaker.negotiated import Negotiated, negotiate
from speaker.nlri import Family

Table = dict[Family, dict[bytes, PathAttributes]]
"""Keys are as on the wire: with the path identifier in front, where there is one."""
Identity = tuple[int, int, bytes]


def identity(peer: PeerHeader) -> Identity:
    """Return the identity of a peer in per-peer headers (RFC 7854 section 4.2)."""
    return (int(peer.kind == PeerKind.LOC_RIB), peer.distinguisher, peer.address)


@dataclass
class View:
    """One peer's routes of one kind."""

    routes: Table = field(default_factory=dict)
    ended: set[Family] = field(default_factory=set)
    """Families whose End-of-RIB has come."""


@dataclass
class Monitored:
    """One peer, or one Loc-RIB."""

    up: PeerUp
    pre_policy: View = field(default_factory=View)
    post_policy: View = field(default_factory=View)
    adj_rib_out: View = field(default_factory=View)
    loc_rib: View = field(default_factory=View)
    statistics: StatisticsReport | None = None
    decoders: dict[tuple[bool, bool, bool], UpdateDecoder] = field(default_factory=dict)

    def view(self, peer: PeerHeader) -> View:
        """Return what a Route Monitoring message is about."""
        if peer.kind == PeerKind.LOC_RIB:
            return self.loc_rib
        if peer.adj_rib_out:
            assert peer.post_policy, "only post-policy routes are monitored"
            return self.adj_rib_out
        return self.post_policy if peer.post_policy else self.pre_policy

    def decoder(self, peer: PeerHeader) -> UpdateDecoder:
        """Return what reads an UPDATE about the peer, by the OPENs of its Peer Up."""
        key = (peer.adj_rib_out, peer.post_policy, peer.legacy_as_path)
        if key not in self.decoders:
            self.decoders[key] = UpdateDecoder(self._negotiated(*key))
        return self.decoders[key]

    def _negotiated(self, out: bool, changed: bool, legacy: bool) -> Negotiated:
        sent = decode_open(self.up.sent_open[HEADER_SIZE:])
        received = decode_open(self.up.received_open[HEADER_SIZE:])
        # Adj-RIB-Out messages are the messages that we send.
        ours, theirs = (received, sent) if out else (sent, received)
        agreed = negotiate(
            local_asn=ours.asn,
            peer_asn=theirs.asn,
            local_capabilities=ours.capabilities,
            peer_capabilities=theirs.capabilities,
            local_hold_time=ours.hold_time,
            peer_hold_time=theirs.hold_time,
            keepalive_time=0,
            local_router_id=ours.router_id,
            peer_router_id=theirs.router_id,
        )
        assert legacy == (not agreed.as4), "the A flag matches the OPENs"
        # An import policy may do to a route what its sender may not.
        return replace(agreed, ebgp=False, peer_asn=0) if changed and not out else agreed


class Framer:
    """Splits a byte stream, received in any pieces, into messages."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[Message]:
        """Add received octets; return the messages that are complete. Raises `BmpError`."""
        self._rest += data
        messages = []
        while len(self._rest) >= BMP_HEADER_SIZE:
            size = int.from_bytes(self._rest[1:5], "big")
            if len(self._rest) < size:
                break
            messages.append(decode(self._rest[:size]))
            self._rest = self._rest[size:]
        return messages


class Station:
    """Decodes octets, and keeps the RIBs."""

    def __init__(self) -> None:
        self._framer = Framer()
        self.messages: list[Message] = []
        self.monitored: dict[Identity, Monitored] = {}
        self.terminated = False
        self.announced = 0
        """Prefixes in all UPDATEs so far."""
        self.withdrawn = 0

    def feed(self, data: bytes) -> None:
        """Take octets, in whatever pieces."""
        for message in self._framer.feed(data):
            assert not self.terminated, "nothing follows a Termination"
            assert bool(self.messages) != isinstance(message, Initiation), "Initiation comes first"
            self.messages.append(message)
            self._take(message)

    def _take(self, message: Message) -> None:
        match message:
            case PeerUp(peer=peer):
                assert identity(peer) not in self.monitored, "up twice"
                self.monitored[identity(peer)] = Monitored(message)
            case PeerDown(peer=peer):
                del self.monitored[identity(peer)]
            case RouteMonitoring(peer, update):
                self._update(self.monitored[identity(peer)], peer, update)
            case StatisticsReport(peer):
                self.monitored[identity(peer)].statistics = message
            case Termination():
                self.terminated = True
            case _:
                pass

    def _update(self, monitored: Monitored, peer: PeerHeader, octets: bytes) -> None:
        update = monitored.decoder(peer).decode(octets[HEADER_SIZE:])
        assert not update.ignored
        if peer.kind != PeerKind.LOC_RIB:
            # A Loc-RIB has routes of the router itself, which have the next hop 0.0.0.0.
            assert update.outcome == ErrorHandling.NONE, update.faults
        view = monitored.view(peer)
        for gone in update.withdrawn:
            table = view.routes.setdefault(gone.family, {})
            self.withdrawn += len(gone.wire())
            for key in gone.wire():
                table.pop(key, None)
        for reach in update.announced:
            table = view.routes.setdefault(reach.family, {})
            self.announced += len(reach.wire())
            table.update(dict.fromkeys(reach.wire(), reach.attributes))
        if update.end_of_rib is not None:
            view.ended.add(update.end_of_rib)

    def of(self, address: str) -> Monitored:
        """Return the one peer with an IPv4 address."""
        octets = bytes(map(int, address.split(".")))
        found = [m for (loc, _, a), m in self.monitored.items() if not loc and a == octets]
        assert len(found) == 1
        return found[0]

    @property
    def loc_rib(self) -> Monitored:
        """Return the one Loc-RIB."""
        found = [m for (loc, _, _), m in self.monitored.items() if loc]
        assert len(found) == 1
        return found[0]
