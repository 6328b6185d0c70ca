"""An engine between an attacking peer and a well-behaved one, with a referee.

`Arena` has two peers: the attacker, in whatever state a test brings it, and a bystander with an
Established session and routes. `check` asserts what must hold whatever the attacker did. `SEEDS` are
the messages from which hostile ones are made. No test lives here.
"""

from __future__ import annotations

from speaker.api import (
    Confederation,
    Fault,
    GracefulRestart,
    InstanceConfig,
    MaximumPrefixes,
    PeerConfig,
    PeerStatus,
    RouteAttributes,
    RouteView,
)
from speaker.attribute import encode_attribute
from speaker.capability import (
    AddPath,
    Capability,
    EnhancedRouteRefresh,
    ExtendedMessage,
    FourOctetAs,
    Fqdn,
    GracefulRestartCapability,
    LongLivedGracefulRestart,
    Multiprotocol,
    RoleCapability,
    RouteRefreshCapability,
    SoftwareVersion,
    Unknown,
)
from speaker.engine.inputs import (
    BytesReceived,
    Input,
    QueueChanged,
    SendUpdates,
    SetInstance,
    SetPeer,
    TransportAccepted,
    TransportClosed,
    TransportConnected,
    TransportFailed,
    UpdateRoutes,
)
from speaker.iana import IPV4_UNICAST, IPV6_UNICAST, CeaseSubcode, Family, Role
from speaker.message import (
    HEADER_SIZE,
    KEEPALIVE,
    MARKER,
    Notification,
    Open,
    RefreshKind,
    RouteRefresh,
    frame_message,
)
from speaker.nlri import prefix_to_wire
from speaker.peer.actions import Action, Close, Connect, ReportEvent, Write
from speaker.rib import pack
from tests.speaker.timed import Timed

INSTANCE = "i"
LOCAL, ATTACKER, BYSTANDER = "10.0.0.1", "10.0.0.2", "10.0.0.3"
LOCAL_ASN, ATTACKER_ASN, BYSTANDER_ASN = 65001, 65002, 65003

BASIC: tuple[Capability, ...] = (
    Multiprotocol(IPV4_UNICAST),
    Multiprotocol(IPV6_UNICAST),
    FourOctetAs(ATTACKER_ASN),
    RouteRefreshCapability(),
    EnhancedRouteRefresh(),
)
RICH: tuple[Capability, ...] = (
    *BASIC,
    ExtendedMessage(),
    RoleCapability(Role.CUSTOMER),
    GracefulRestartCapability(
        120, notification=True, families=((IPV4_UNICAST, True), (IPV6_UNICAST, True))
    ),
    LongLivedGracefulRestart(((IPV4_UNICAST, True, 3600),)),
    AddPath(((IPV4_UNICAST, 3),)),
    Fqdn("", "", b"\x03tor\x07example"),
    SoftwareVersion("", b"\x04r 42"),
    Unknown(200, b"x"),
)


def open_of(capabilities: tuple[Capability, ...] = BASIC, asn: int = ATTACKER_ASN) -> bytes:
    """Return a peer's OPEN."""
    return Open(asn=asn, hold_time=90, router_id=asn, capabilities=capabilities).encode()


def update(attributes: bytes = b"", nlri: bytes = b"", withdrawn: bytes = b"") -> bytes:
    """Return an UPDATE."""
    sizes = [len(field).to_bytes(2, "big") for field in (withdrawn, attributes)]
    return frame_message(2, sizes[0] + withdrawn + sizes[1] + attributes + nlri)


ORIGIN = encode_attribute(0x40, 1, b"\0")
AS_PATH = encode_attribute(0x40, 2, b"\2\2" + ATTACKER_ASN.to_bytes(4, "big") + b"\0\0\xfc\0")
NEXT_HOP = encode_attribute(0x40, 3, b"\x0a\0\0\2")
MANDATORY = ORIGIN + AS_PATH + NEXT_HOP
PREFIX = b"\x18\x0a\x01\x00"
OURS = b"\x10\x0a\xc8"
PREFIX_6 = b"\x20\xfd\x00\x00\x01"
HOP_6 = bytes.fromhex("20010db8" + "00" * 11 + "02")
REACH = encode_attribute(0x80, 14, b"\0\2\1\x10" + HOP_6 + b"\0" + PREFIX_6)
UNREACH = encode_attribute(0x80, 15, b"\0\2\1" + b"\x20\xfd\x00\x00\x02")
OPTIONAL = (
    encode_attribute(0x80, 4, b"\0\0\0\7"),
    encode_attribute(0x40, 6, b""),
    encode_attribute(0xC0, 7, b"\0\0\xfd\xea\x0a\0\0\2"),
    encode_attribute(0xC0, 8, b"\xfd\xea\0\1"),
    encode_attribute(0xC0, 16, b"\0\2\xfd\xea\0\0\0\1"),
    encode_attribute(0xC0, 32, b"\0\0\xfd\xea\0\0\0\1\0\0\0\2"),
    encode_attribute(0xC0, 35, b"\0\0\xfd\xea"),
    encode_attribute(0xC0, 99, b"?"),
)
UNUSUAL = (
    encode_attribute(0x40, 5, b"\0\0\0\x64"),
    encode_attribute(0x80, 9, b"\x0a\0\0\7"),
    encode_attribute(0x80, 10, b"\x0a\0\0\7\x0a\0\0\x08"),
    encode_attribute(0xC0, 17, b"\2\2" + ATTACKER_ASN.to_bytes(4, "big") + b"\0\6\x1a\x80"),
    encode_attribute(0xC0, 18, b"\0\6\x1a\x80\x0a\0\0\2"),
    encode_attribute(0xC0, 22, b"\0\6\0\0\1\x0a\0\0\2"),
    encode_attribute(0xC0, 23, b"\0\x08\0\6\4\4\0\0\0\1"),
    encode_attribute(0xC0, 25, b"\0\2" + bytes(16) + b"\0\1"),
    encode_attribute(0x80, 26, b"\1\0\x0b" + bytes(8)),
    encode_attribute(0x80, 29, b"\4\2\0\2\0\1"),
    encode_attribute(0xC0, 40, b"\1\0\7" + bytes(7)),
)
ATTRIBUTES = (ORIGIN, AS_PATH, NEXT_HOP, REACH, UNREACH, *OPTIONAL, *UNUSUAL)
"""One of each kind that is looked into, and another kind."""

SEEDS: dict[str, bytes] = {
    "open": open_of(),
    "open-rich": open_of(RICH),
    "keepalive": KEEPALIVE,
    "update": update(MANDATORY, PREFIX),
    "update-rich": update(
        REACH + MANDATORY + b"".join(OPTIONAL) + UNREACH, PREFIX, b"\x10\x0a\x02"
    ),
    "update-path-ids": update(MANDATORY, b"\0\0\0\1" + PREFIX + b"\0\0\0\2" + PREFIX),
    "update-withdraw": update(b"", b"", PREFIX),
    "end-of-rib": pack.end_of_rib(IPV4_UNICAST),
    "end-of-rib-ipv6": pack.end_of_rib(IPV6_UNICAST),
    "notification": Notification.cease(CeaseSubcode.ADMINISTRATIVE_SHUTDOWN, "bye").encode(),
    "hard-reset": Notification(6, 9, b"\x06\x02\x03bye").encode(),
    "refresh": RouteRefresh(IPV4_UNICAST).encode(),
    "refresh-begin": RouteRefresh(IPV4_UNICAST, RefreshKind.BEGIN).encode(),
    "refresh-end": RouteRefresh(IPV4_UNICAST, RefreshKind.END).encode(),
}

PROFILES: dict[str, dict[str, object]] = {
    "plain": {"import_": "all", "export": "all"},
    "rich": {
        "import_": "all",
        "export": "all",
        "add_path": "both",
        "graceful_restart": GracefulRestart(60, long_lived_time=600),
        "role": Role.PROVIDER,
        "maximum_prefixes": (MaximumPrefixes(50, restart_after=20),),
    },
    "delayed": {"import_": "none", "delay_open_time": 20},
    "internal": {
        "import_": "all",
        "export": "all",
        "local_asn": ATTACKER_ASN,
        "graceful_restart": GracefulRestart(60),
    },
}
"""How the attacker is configured."""

STATES = ("Idle", "Connect", "Active", "OpenSent", "OpenConfirm", "Established")


class Arena(Timed):
    """Two peers and a referee."""

    def __init__(
        self,
        profile: str = "plain",
        *,
        passive: bool = True,
        confederation: Confederation | None = None,
        **settings: object,
    ) -> None:
        """Begin; ``settings`` are the attacker's, beyond its profile's."""
        super().__init__()
        self.written: dict[int, bytes] = {}
        self.closed: set[int] = set()
        self.connection = 0
        self.connections: list[int] = []
        """All that the attacker has had."""
        self.attempt: int | None = None
        self._accepted = 0
        self.give(
            SetInstance(
                InstanceConfig(
                    name=INSTANCE,
                    local_asn=LOCAL_ASN,
                    router_id=LOCAL,
                    confederation=confederation,
                )
            )
        )
        self.give(
            SetPeer(
                INSTANCE,
                PeerConfig(
                    name="bystander",
                    address=BYSTANDER,
                    peer_asn=BYSTANDER_ASN,
                    passive=True,
                    hold_time=0,
                    import_="all",
                    export="all",
                ),
            )
        )
        self.quiet = self.accept(BYSTANDER)
        offered = (*BASIC[:2], FourOctetAs(BYSTANDER_ASN))
        self.send(open_of(offered, BYSTANDER_ASN) + KEEPALIVE, self.quiet)
        path = encode_attribute(0x40, 2, b"\2\1" + BYSTANDER_ASN.to_bytes(4, "big"))
        self.send(
            update(ORIGIN + path + encode_attribute(0x40, 3, b"\x0a\0\0\3"), b"\x10\x0a\x63"),
            self.quiet,
        )
        self.give(UpdateRoutes(INSTANCE, None, {IPV4_UNICAST: {OURS: RouteAttributes()}}))
        self.give(
            SetPeer(
                INSTANCE,
                PeerConfig(
                    name="attacker",
                    address=ATTACKER,
                    peer_asn=ATTACKER_ASN,
                    passive=passive,
                    **{**PROFILES[profile], **settings},  # type: ignore[arg-type]
                ),
            )
        )

    # ------------------------------------------------------------------ inputs

    def give(self, item: Input) -> None:
        """Hand over an input; what the engine does is noted and, where it must not be, refused."""
        self._note(self.engine.handle(item, self.now))
        while self.engine.updates_pending:
            self._note(self.engine.handle(SendUpdates(), self.now))

    def _note(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case Write(connection, parts):
                    assert connection not in self.closed, "octets behind the end of a connection"
                    self.written[connection] = self.written.get(connection, b"") + b"".join(parts)
                case Close(connection):
                    self.closed.add(connection)
                    if connection == self.attempt:
                        self.attempt = None
                case Connect():
                    self.attempt = action.connection
                case ReportEvent(event):
                    self.events.append(event)
                case _:
                    pass

    def accept(self, address: str = ATTACKER) -> int:
        """Connect as a peer."""
        self._accepted -= 1
        if address == ATTACKER:
            self.connection = self._accepted
            self.connections.append(self.connection)
        self.give(TransportAccepted(self._accepted, INSTANCE, (LOCAL, 179), (address, 40000)))
        return self._accepted

    def answer(self, *, refused: bool = False) -> None:
        """Let the engine's own attempt to connect succeed, or not."""
        attempt, self.attempt = self.attempt, None
        if attempt is None:
            return
        if refused:
            self.give(TransportFailed(attempt, "connection refused"))
            return
        self.connection = attempt
        self.connections.append(attempt)
        self.give(TransportConnected(attempt, (LOCAL, 40001), (ATTACKER, 179)))

    def turn_to(self, number: int) -> None:
        """Go on with another of the attacker's connections."""
        if self.connections:
            self.connection = self.connections[number % len(self.connections)]

    def send(self, data: bytes, connection: int | None = None) -> None:
        """Send octets as the attacker; a closed connection carries none."""
        to = self.connection if connection is None else connection
        if to not in self.closed:
            self.give(BytesReceived(to, data))

    def drop(self) -> None:
        """End the attacker's connection as the network would."""
        if self.connection not in self.closed:
            self.closed.add(self.connection)
            self.give(TransportClosed(self.connection, "connection reset by peer"))

    def queue(self, octets: int) -> None:
        """Let octets wait for the attacker."""
        if self.connection not in self.closed:
            self.give(QueueChanged(self.connection, octets))

    def reach(self, state: str, capabilities: tuple[Capability, ...] = BASIC) -> Arena:
        """Bring the attacker's session into a state, from the very beginning."""
        if state == "Idle":
            self.accept()
            self.send(b"\0" * HEADER_SIZE)
        elif state in ("OpenSent", "OpenConfirm", "Established"):
            self.accept()
        if state in ("OpenConfirm", "Established"):
            self.send(open_of(capabilities))
        if state == "Established":
            self.send(KEEPALIVE)
        return self

    # ------------------------------------------------------------------ results

    def status(self, name: str = "attacker") -> PeerStatus:
        """Return a session."""
        return next(s for s in self.engine.views.peers(self.now) if s.name == name)

    def messages(self, connection: int | None = None) -> list[tuple[int, bytes]]:
        """Return type and body of what was sent on a connection."""
        rest = self.written.get(self.connection if connection is None else connection, b"")
        found = []
        while rest:
            length = int.from_bytes(rest[16:18], "big")
            assert rest.startswith(MARKER)
            assert HEADER_SIZE <= length <= len(rest)
            found.append((rest[18], rest[HEADER_SIZE:length]))
            rest = rest[length:]
        return found

    @property
    def notification(self) -> tuple[int, int, bytes] | None:
        """Code, subcode and data of the NOTIFICATION that the attacker was sent."""
        bodies = [body for kind, body in self.messages() if kind == 3]
        return (bodies[0][0], bodies[0][1], bodies[0][2:]) if bodies else None

    def received(self, family: Family = IPV4_UNICAST) -> dict[str, RouteView]:
        """Return the held routes of the attacker."""
        routes = self.engine.views.routes_received(INSTANCE, "attacker", family)
        return {route.prefix: route for route in routes}

    def used(self, family: Family = IPV4_UNICAST) -> set[str]:
        """Return the attacker's prefixes that are in the Loc-RIB."""
        routes = self.engine.views.routes_available(INSTANCE, family)
        return {route.prefix for route in routes if route.peer == "attacker"}

    def check(self) -> None:
        """Assert what must hold whatever the attacker did."""
        faults = [event for event in self.events if isinstance(event, Fault)]
        assert not faults, faults
        for connection in self.written:
            self._check_answers(connection)
        other = self.status("bystander")
        assert other.established
        assert other.flaps == 0
        assert other.families[0].received == 1
        assert self.quiet not in self.closed
        self._check_views()

    def _check_answers(self, connection: int) -> None:
        """No message but in the order that RFC 4271 section 8 has, and nothing behind the last."""
        kinds = [kind for kind, _ in self.messages(connection)]
        if 3 in kinds:
            assert kinds.index(3) == len(kinds) - 1, "something behind a NOTIFICATION"
            assert connection in self.closed, "a NOTIFICATION on a connection that goes on"
            kinds.pop()
        if not kinds:
            return
        assert kinds[0] == 1, "a message before the OPEN"
        assert kinds.count(1) == 1, "a second OPEN"
        if len(kinds) > 1:
            assert kinds[1] == 4, "a message before the session was confirmed"
        assert set(kinds) <= {1, 2, 4, 5}

    def _check_views(self) -> None:
        for status in self.engine.views.peers(self.now):
            assert status.reason.isprintable()
            assert (status.last_error or "").isprintable()
            assert all(text.isprintable() for text in status.capabilities)
            assert status.established == (status.reason == "")
        for family in (IPV4_UNICAST, IPV6_UNICAST):
            for route in self.engine.views.routes_available(INSTANCE, family):
                assert prefix_to_wire(route.prefix)[0] == family
            list(self.engine.views.routes_received(INSTANCE, None, family))
            list(self.engine.views.routes_advertised(INSTANCE, None, family))
