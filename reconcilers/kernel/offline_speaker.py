"""The speaker's own decisions about routes of a file, without sessions: for ``waggle render``.

The core of the speaker is given the instances and peers of the intent, and then the octets that each
peer would send: OPEN, KEEPALIVE, an UPDATE for each route. So import policies, loop checks, imports
between instances and route selection are as in an agent.
"""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, final

from msgspec.structs import replace

from reconcilers.apply.to_speaker import instance_config, peer_config
from reconcilers.kernel.received_file import (
    InvalidReceivedFile,
    ReceivedRoute,
    ReceivedRoutes,
    community,
)
from reconcilers.model import Instance, Peer
from speaker.api import BestPathChange, Multipath, RouteView, SessionError
from speaker.attribute import AS_SEQUENCE, PathAttributes, Segment, encode_attributes
from speaker.attribute.encode import encode_attribute
from speaker.capability import Capability, ExtendedNextHop, FourOctetAs, Multiprotocol
from speaker.engine import Engine
from speaker.engine.inputs import (
    BestPathsTaken,
    BytesReceived,
    FollowBestPaths,
    Input,
    NeighborFound,
    SendUpdates,
    SetInstance,
    SetPeer,
    TransportAccepted,
    UnfollowBestPaths,
)
from speaker.iana import Afi, AttributeType, Origin
from speaker.message import KEEPALIVE, Open
from speaker.negotiated import MAX_MESSAGE
from speaker.nlri import IPV4_UNICAST
from speaker.peer.actions import Action, ReportEvent, SendBestPaths
from speaker.rib import pack

DEFAULT_LOCAL_PREFERENCE: Final = 100
_HOLD_TIME: Final = 90
_REMOTE_PORT: Final = 40000
_OTHER_AS: Final = 64496
"""Of a peer whose AS may be any: the first one for documentation (RFC 5398)."""
_ORIGINS: Final = {"igp": Origin.IGP, "egp": Origin.EGP, "incomplete": Origin.INCOMPLETE}
_NEIGHBOR: Final = "fe80::1"
_LOCAL_ADDRESSES: Final = {4: "0.0.0.0", 6: "::"}  # noqa: S104  nothing listens
"""The local end of a session whose address is unknown: no next hop has this address."""


class ReceivedPath(NamedTuple):
    """One route of the file, and what the speaker does with it."""

    instance: Instance
    peer: Peer
    route: ReceivedRoute
    view: RouteView | None
    """None where the speaker does not have it; ``error`` is why then."""
    error: str = ""
    family_carried: bool = True
    """False if the session has not the family of the prefix."""

    @property
    def next_hop(self) -> bytes:
        """The next hop of a path that an offline speaker received: 4 or 16 octets."""
        end = self.peer.address or _NEIGHBOR
        return _parsed((self.route.next_hop or end).partition("%")[0]).packed


@final
class OfflineSpeaker:
    """The core of a speaker with the instances and peers of one node, all sessions Established."""

    def __init__(self, instances: Sequence[Instance], peers: Sequence[Peer]) -> None:
        self.engine = Engine(random.Random(0))  # noqa: S311  nothing is random offline
        self._instances = {row.name: row for row in instances}
        self._peers = peers
        self._faults: list[str] = []
        self._now = 0.0
        self._connections = self._readers = 0
        self._received: list[tuple[Peer, ReceivedRoute, str, bool]] = []
        for row in instances:
            self._give(SetInstance(instance_config(row)))

    def receive(self, routes: ReceivedRoutes, unknown: set[str] | None = None) -> None:
        """Establish the offline sessions, and receive the routes. Raises `InvalidReceivedFile`.

        With ``unknown`` the names of no peer are added to it; they are no error then.
        """
        by_peer: dict[Peer, tuple[ReceivedRoute, ...]] = {}
        for name, received in routes.items():
            peer = self._peer_of(name)
            shown = name if isinstance(name, str) else "/".join(name)
            if peer is not None:
                if peer in by_peer:
                    raise InvalidReceivedFile("several names of one peer")
                by_peer[peer] = received
            elif unknown is None:
                raise InvalidReceivedFile(f"the node has no peer {shown}")
            else:
                unknown.add(shown)
        for number, peer in enumerate(self._peers, 1):
            self._establish(peer, number, by_peer.get(peer, ()))

    def _peer_of(self, name: str | tuple[str, str]) -> Peer | None:
        """Return the peer of a name; without a VRF that of the default VRF first."""
        if isinstance(name, tuple):
            return next((p for p in self._peers if (p.instance, p.name) == name), None)
        vrf, _, end = name.rpartition("/")
        named = [peer for peer in self._peers if _is_named(peer, end)]
        if vrf:
            wanted = None if vrf == "default" else vrf
            chosen = [peer for peer in named if self._vrf(peer) == wanted]
        else:
            chosen = [peer for peer in named if self._vrf(peer) is None] or named
        if len(chosen) > 1:
            raise InvalidReceivedFile(f"the node has several peers {name}: add the VRF")
        return chosen[0] if chosen else None

    def _vrf(self, peer: Peer) -> str | None:
        return self._instances[peer.instance].vrf

    def _establish(self, peer: Peer, number: int, routes: Sequence[ReceivedRoute]) -> None:
        instance = self._instances[peer.instance]
        local_asn = peer.local_asn or instance.local_asn
        # Sessions are taken to be up: neither a password nor another obstacle matters here.
        row = replace(peer, password=None, held_password=None, down_reason=None)
        config = replace(peer_config(row, local_asn, lambda _: None), passive=True)
        self._give(SetPeer(peer.instance, config))
        address = peer.address
        if address is None:
            address = f"{_NEIGHBOR}%{peer.interface}"
            self._give(NeighborFound(str(peer.interface), address))
        self._connections -= 1
        connection = self._connections
        version = ipaddress.ip_address(address.partition("%")[0]).version
        local = peer.local_address or _LOCAL_ADDRESSES[version]
        remote = (address, _REMOTE_PORT)
        self._give(TransportAccepted(connection, peer.instance, (local, peer.peer_port), remote))
        asn = _peer_asn(peer, local_asn, routes)
        opened = Open(
            asn=asn,
            hold_time=_HOLD_TIME,
            router_id=_router_id(address, number, instance),
            capabilities=_capabilities(peer, asn),
        )
        self._give(BytesReceived(connection, opened.encode()))
        self._give(BytesReceived(connection, KEEPALIVE))
        session = _Session(peer, connection, asn, local_asn, address.partition("%")[0])
        for route in routes:
            self._announce(session, route)

    def _announce(self, session: _Session, route: ReceivedRoute) -> None:
        carried = route.family in session.peer.families
        error = ""
        if carried:
            self._faults.clear()
            for message in _update(session, route):
                self._give(BytesReceived(session.connection, message))
            error = next(iter(self._faults), "")
        self._received.append((session.peer, route, error, carried))

    def _give(self, item: Input) -> list[Action]:
        actions: list[Action] = self.engine.handle(item, self._now)
        while self.engine.updates_pending:
            actions += self.engine.handle(SendUpdates(), self._now)
        for action in actions:
            if isinstance(action, ReportEvent) and isinstance(action.event, SessionError):
                self._faults.append(action.event.text)
        return actions

    def best_paths(self, instance: str, multipath: Multipath) -> Iterator[BestPathChange]:
        """Yield the Loc-RIB of an offline instance, grouped by its sets of best paths."""
        self._readers += 1
        reader = self._readers
        sent = self._streamed(FollowBestPaths(reader, instance, multipath))
        while sent:
            for action in sent:
                yield from (item for item in action.items if isinstance(item, BestPathChange))
            sent = self._streamed(BestPathsTaken(reader, len(sent)))
        self._give(UnfollowBestPaths(reader))

    def _streamed(self, item: Input) -> list[SendBestPaths]:
        return [given for given in self._give(item) if isinstance(given, SendBestPaths)]

    def received(self) -> Iterator[ReceivedPath]:
        """Yield the received routes of the file, each with what the offline speaker has of it."""
        last = {
            (peer, route.prefix): entry for entry in self._received for peer, route, *_ in [entry]
        }
        for peer, route, error, carried in last.values():
            instance = self._instances[peer.instance]
            views = self.engine.views.routes_received(
                peer.instance, peer.name, route.family, (route.nlri,)
            )
            yield ReceivedPath(instance, peer, route, next(iter(views), None), error, carried)


class _Session(NamedTuple):
    peer: Peer
    connection: int
    asn: int
    local_asn: int
    address: str


def _is_named(peer: Peer, text: str) -> bool:
    if text in (peer.name, peer.interface, peer.address):
        return True
    try:
        return peer.address is not None and _parsed(peer.address) == _parsed(text)
    except ValueError:
        return False


def _parsed(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    return ipaddress.ip_address(text)


def _peer_asn(peer: Peer, local_asn: int, routes: Sequence[ReceivedRoute]) -> int:
    """Return the AS of a peer; that of its routes where any is accepted."""
    if isinstance(peer.peer_asn, int) and peer.peer_asn:
        return peer.peer_asn
    if peer.peer_asn == "internal":
        return local_asn
    first = next((route.as_path[0] for route in routes if route.as_path), _OTHER_AS)
    return first if first != local_asn else _OTHER_AS


def _router_id(address: str, number: int, instance: Instance) -> int:
    """Return the BGP Identifier of a peer: its IPv4 address, or one of no other router."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if parsed.version == 4 and str(parsed) != instance.router_id:
        return int(parsed)
    return int(ipaddress.IPv4Address("198.18.0.0")) + number


def _capabilities(peer: Peer, asn: int) -> tuple[Capability, ...]:
    families = tuple(Multiprotocol(family) for family in peer.families)
    return (*families, ExtendedNextHop(((IPV4_UNICAST, Afi.IPV6),)), FourOctetAs(asn))


def _update(session: _Session, route: ReceivedRoute) -> list[bytes]:
    """Encode one route as the peer sends it."""
    internal = session.asn == session.local_asn
    asns = route.as_path
    if asns is None:
        asns = () if internal else (session.asn,)
    preference = route.local_preference
    if internal and preference is None:
        preference = DEFAULT_LOCAL_PREFERENCE
    hop = ipaddress.ip_address((route.next_hop or session.address).partition("%")[0]).packed
    attributes = PathAttributes(
        origin=_ORIGINS[route.origin],
        as_path=(Segment(AS_SEQUENCE, asns),) if asns else (),
        med=route.med,
        local_preference=preference,
        communities=tuple(map(community, route.communities)),
    )
    head, tail = encode_attributes(attributes, as4=True)
    if route.family == IPV4_UNICAST and len(hop) == 4:
        next_hop = encode_attribute(0x40, AttributeType.NEXT_HOP, hop)
        return pack.announce(head + next_hop + tail, (route.nlri,), MAX_MESSAGE)
    return pack.announce_mp(route.family, hop, head + tail, (route.nlri,), MAX_MESSAGE)
