"""One engine with one peer, whose octets the test sends."""

from __future__ import annotations

from speaker.api import InstanceConfig, PeerConfig, PeerStatus
from speaker.capability import Capability, FourOctetAs, Multiprotocol
from speaker.engine.inputs import (
    BytesReceived,
    Input,
    SendUpdates,
    SetInstance,
    SetPeer,
    TransportAccepted,
    TransportClosed,
)
from speaker.message import HEADER_SIZE, KEEPALIVE, Open, frame_message
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST
from speaker.peer.actions import Action, Close, ReportEvent, Write
from tests.speaker.timed import Timed

INSTANCE = "i"
LOCAL, REMOTE = "10.0.0.1", "10.0.0.2"
LOCAL_ASN, REMOTE_ASN = 65001, 65002
REMOTE_ID = 0x0A000002

FAMILIES: tuple[Capability, ...] = (
    Multiprotocol(IPV4_UNICAST),
    Multiprotocol(IPV6_UNICAST),
    FourOctetAs(REMOTE_ASN),
)


def open_message(
    *,
    asn: int = REMOTE_ASN,
    hold_time: int = 90,
    router_id: int = REMOTE_ID,
    capabilities: tuple[Capability, ...] = FAMILIES,
) -> bytes:
    """Return the peer's OPEN."""
    return Open(
        asn=asn, hold_time=hold_time, router_id=router_id, capabilities=capabilities
    ).encode()


class Raw(Timed):
    """The engine, its peer, and one connection from it."""

    def __init__(self, **settings: object) -> None:
        super().__init__()
        self.sent = b""
        self.closed: list[int] = []
        self.connection = 0
        self.give(SetInstance(InstanceConfig(name=INSTANCE, local_asn=LOCAL_ASN, router_id=LOCAL)))
        options: dict[str, object] = {"passive": True, "import_": "all", **settings}
        self.give(
            SetPeer(
                INSTANCE,
                PeerConfig(name="p", address=REMOTE, peer_asn=REMOTE_ASN, **options),  # type: ignore[arg-type]
            )
        )

    def give(self, item: Input) -> list[Action]:
        """Pass an input to the engine and collect the actions."""
        actions = self.engine.handle(item, self.now)
        if self.engine.updates_pending:
            actions += self.engine.handle(SendUpdates(), self.now)
        for action in actions:
            match action:
                case Write(connection, parts) if connection == self.connection:
                    self.sent += b"".join(parts)
                case Close(connection):
                    self.closed.append(connection)
                case ReportEvent(event):
                    self.events.append(event)
                case _:
                    pass
        return actions

    def engine_only(self, item: Input) -> None:
        """Hand over an input without a flush after it."""
        self.engine.handle(item, self.now)

    def flush(self) -> None:
        """Let one turn of the loop end."""
        self.engine_only(SendUpdates())

    def connect(self) -> None:
        """Connect as the peer."""
        self.connection -= 1
        self.sent = b""
        self.give(TransportAccepted(self.connection, INSTANCE, (LOCAL, 179), (REMOTE, 40000)))

    def send(self, data: bytes) -> None:
        """Send octets as the peer."""
        self.give(BytesReceived(self.connection, data))

    def drop(self, reason: str = "connection reset by peer") -> None:
        """End the connection as the network would."""
        self.give(TransportClosed(self.connection, reason))

    def to_open_sent(self) -> Raw:
        """Connect; the engine has sent its OPEN."""
        self.connect()
        return self

    def to_open_confirm(self, message: bytes | None = None) -> Raw:
        """Connect and send an OPEN."""
        self.connect()
        self.send(open_message() if message is None else message)
        return self

    def to_established(self, message: bytes | None = None) -> Raw:
        """Bring the session up."""
        self.to_open_confirm(message)
        self.send(KEEPALIVE)
        assert self.status.established
        return self

    @property
    def status(self) -> PeerStatus:
        """The session."""
        (status,) = self.engine.views.peers(self.now)
        return status

    @property
    def state(self) -> str:
        """The session's state."""
        return self.status.state

    @property
    def is_closed(self) -> bool:
        """Whether the engine has closed the connection."""
        return self.connection in self.closed

    @property
    def messages(self) -> list[tuple[int, bytes]]:
        """Type and body of each message that the engine has sent on this connection."""
        found = []
        rest = self.sent
        while rest:
            length = int.from_bytes(rest[16:18], "big")
            found.append((rest[18], rest[HEADER_SIZE:length]))
            rest = rest[length:]
        return found

    @property
    def notification(self) -> tuple[int, int, bytes] | None:
        """Code, subcode and data of the NOTIFICATION that was sent, if one was."""
        bodies = [body for kind, body in self.messages if kind == 3]
        assert len(bodies) <= 1
        return (bodies[0][0], bodies[0][1], bodies[0][2:]) if bodies else None


def update(attributes: bytes, nlri: bytes = b"", withdrawn: bytes = b"") -> bytes:
    """Return an UPDATE."""
    return frame_message(
        2,
        len(withdrawn).to_bytes(2, "big")
        + withdrawn
        + len(attributes).to_bytes(2, "big")
        + attributes
        + nlri,
    )


ATTRIBUTES = bytes.fromhex("4001010040020602010000fdea4003040a000002")
"""ORIGIN IGP, AS_PATH 65002, NEXT_HOP 10.0.0.2."""
NLRI = bytes.fromhex("180a0100")
"""10.1.0.0/24"""
