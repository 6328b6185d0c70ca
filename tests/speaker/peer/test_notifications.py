"""Every NOTIFICATION that this speaker sends: code, subcode, data, and the section that requires it.

One row a subcode. That none is missing is a test, too: what is never sent is in `NEVER`, with the
reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from speaker.api import DynamicPeerConfig, GracefulRestart, MaximumPrefixes, PathDown, PeerConfig
from speaker.attribute import encode_attribute
from speaker.capability import (
    EnhancedRouteRefresh,
    GracefulRestartCapability,
    Multiprotocol,
    RoleCapability,
)
from speaker.engine.inputs import (
    PathsDown,
    QueueChanged,
    RemovePeer,
    ResetPeer,
    SetPeer,
    ShutDownPeer,
    TransportAccepted,
)
from speaker.iana import (
    CeaseSubcode,
    ErrorCode,
    Family,
    FsmSubcode,
    HeaderSubcode,
    OpenSubcode,
    RefreshSubcode,
    Role,
    UpdateSubcode,
)
from speaker.message import KEEPALIVE, Notification, frame_message
from speaker.peer.actions import Write
from tests.speaker.raw import (
    ATTRIBUTES,
    FAMILIES,
    INSTANCE,
    LOCAL,
    NLRI,
    REMOTE,
    REMOTE_ASN,
    Raw,
    open_message,
    update,
)

ORIGIN, PATH, HOP = ATTRIBUTES[:4], ATTRIBUTES[4:13], ATTRIBUTES[13:]
RESTARTING = (*FAMILIES, GracefulRestartCapability(60, notification=True))


def settings(**changes: object) -> PeerConfig:
    values: dict[str, object] = {"passive": True, "import_": "all", **changes}
    return PeerConfig(name="p", address=REMOTE, peer_asn=REMOTE_ASN, **values)  # type: ignore[arg-type]


def connected(**options: object) -> Raw:
    return Raw(**options).to_open_sent()


def established(**options: object) -> Raw:
    return Raw(**options).to_established()


def after(message: bytes, raw: Raw) -> Raw:
    raw.send(message)
    return raw


def with_open(message: bytes, **options: object) -> Raw:
    return after(message, connected(**options))


def while_up(octets: bytes) -> Raw:
    return after(octets, established())


def with_body(place: int, value: bytes) -> bytes:
    """Return an OPEN with other octets in its body."""
    message = bytearray(open_message())
    message[19 + place : 19 + place + len(value)] = value
    return bytes(message)


def waited(raw: Raw, seconds: float) -> Raw:
    raw.wait(seconds)
    return raw


def commanded(command: object, raw: Raw) -> Raw:
    raw.give(command)  # type: ignore[arg-type]
    return raw


def turned_away(raw: Raw, address: str) -> Raw:
    """Connect from an address, and take what is answered there as what is answered here."""
    raw.connection, raw.sent = -100, b""
    for action in raw.give(TransportAccepted(-100, INSTANCE, (LOCAL, 179), (address, 40001))):
        if isinstance(action, Write):
            assert action.connection == -100
    return raw


def one_too_many() -> Raw:
    raw = Raw()
    raw.give(SetPeer(INSTANCE, DynamicPeerConfig(name="d", prefix="10.9.0.0/24", limit=1)))
    return turned_away(turned_away(raw, "10.9.0.1"), "10.9.0.2")


class Row(NamedTuple):
    code: int
    subcode: int
    data: bytes
    section: str
    do: Callable[[], Raw]


H, O, U, F, C = HeaderSubcode, OpenSubcode, UpdateSubcode, FsmSubcode, CeaseSubcode  # noqa: E741

ROWS = [
    Row(
        1,
        H.CONNECTION_NOT_SYNCHRONIZED,
        b"",
        "4271 6.1",
        lambda: while_up(b"\0" + KEEPALIVE[1:]),
    ),
    Row(
        1,
        H.BAD_MESSAGE_LENGTH,
        b"\0\x14",
        "4271 6.1",
        lambda: while_up(frame_message(4, b"?")),
    ),
    Row(1, H.BAD_MESSAGE_TYPE, b"\x06", "4271 6.1", lambda: while_up(frame_message(6, b""))),
    Row(2, O.UNSPECIFIC, b"", "4271 6.2", lambda: with_open(with_body(9, b"\xfe"))),
    Row(2, O.UNSUPPORTED_VERSION, b"\0\4", "4271 6.2", lambda: with_open(with_body(0, b"\5"))),
    Row(
        2,
        O.BAD_PEER_AS,
        b"",
        "4271 6.2",
        lambda: with_open(open_message(asn=65009, capabilities=())),
    ),
    Row(2, O.BAD_BGP_IDENTIFIER, b"", "6286 2.2", lambda: with_open(open_message(router_id=0))),
    Row(
        2,
        O.UNSUPPORTED_OPTIONAL_PARAMETER,
        b"",
        "4271 6.2",
        lambda: with_open(with_body(10, b"\1")),
    ),
    Row(2, O.UNACCEPTABLE_HOLD_TIME, b"", "4271 6.2", lambda: with_open(open_message(hold_time=2))),
    Row(
        2,
        O.UNSUPPORTED_CAPABILITY,
        b"\1\4\0\1\0\1\1\4\0\2\0\1",
        "5492 5",
        lambda: with_open(open_message(capabilities=(Multiprotocol(Family(1, 2)), FAMILIES[2]))),
    ),
    Row(
        2,
        O.ROLE_MISMATCH,
        b"",
        "9234 4.2",
        lambda: with_open(
            open_message(capabilities=(*FAMILIES, RoleCapability(Role.PEER))), role=Role.PROVIDER
        ),
    ),
    Row(
        3,
        U.MALFORMED_ATTRIBUTE_LIST,
        b"",
        "4271 6.3",
        lambda: while_up(frame_message(2, b"\0\0\0\xff")),
    ),
    Row(
        3,
        U.UNRECOGNIZED_WELL_KNOWN_ATTRIBUTE,
        b"\x40\x63\1?",
        "4271 6.3",
        lambda: while_up(update(ATTRIBUTES + b"\x40\x63\1?", NLRI)),
    ),
    Row(
        3,
        U.ATTRIBUTE_FLAGS,
        b"\x80\1\1\0",
        "7606 5.2",
        lambda: while_up(update(b"\x80\1\1\0" + PATH + HOP)),
    ),
    Row(
        3,
        U.ATTRIBUTE_LENGTH,
        b"\x40\1\0",
        "7606 5.2",
        lambda: while_up(update(b"\x40\1\0" + PATH + HOP)),
    ),
    Row(
        3,
        U.INVALID_ORIGIN,
        b"\x40\1\1\3",
        "7606 5.2",
        lambda: while_up(update(b"\x40\1\1\3" + PATH)),
    ),
    Row(
        3,
        U.INVALID_NEXT_HOP,
        b"\x40\3\4" + bytes(4),
        "7606 5.2",
        lambda: while_up(update(ORIGIN + PATH + b"\x40\3\4" + bytes(4))),
    ),
    Row(
        3,
        U.OPTIONAL_ATTRIBUTE,
        encode_attribute(0x80, 14, b"\0\2\1\3abc\0"),
        "7606 7.11",
        lambda: while_up(update(encode_attribute(0x80, 14, b"\0\2\1\3abc\0") + ORIGIN + PATH)),
    ),
    Row(
        3,
        U.INVALID_NETWORK_FIELD,
        b"",
        "4271 6.3",
        lambda: while_up(update(ATTRIBUTES, b"\x21")),
    ),
    Row(
        3,
        U.MALFORMED_AS_PATH,
        b"\x40\2\1\2",
        "7606 5.2",
        lambda: while_up(update(ORIGIN + b"\x40\2\1\2")),
    ),
    Row(4, 0, b"", "4271 6.5", lambda: waited(established(), 100)),
    Row(5, F.UNEXPECTED_IN_OPEN_SENT, b"", "6608 3", lambda: after(KEEPALIVE, connected())),
    Row(
        5,
        F.UNEXPECTED_IN_OPEN_CONFIRM,
        b"",
        "6608 3",
        lambda: after(update(ATTRIBUTES, NLRI), Raw().to_open_confirm()),
    ),
    Row(5, F.UNEXPECTED_IN_ESTABLISHED, b"", "6608 3", lambda: while_up(open_message())),
    Row(
        6,
        C.MAXIMUM_PREFIXES,
        b"\0\1\1\0\0\0\1",
        "4486 4",
        lambda: after(
            update(ATTRIBUTES, NLRI + b"\x08\x0b"),
            established(maximum_prefixes=(MaximumPrefixes(1),)),
        ),
    ),
    Row(
        6,
        C.ADMINISTRATIVE_SHUTDOWN,
        b"\x03bye",
        "9003 2",
        lambda: commanded(ShutDownPeer(INSTANCE, "p", "bye"), established()),
    ),
    Row(
        6,
        C.PEER_DECONFIGURED,
        b"",
        "4486 4",
        lambda: commanded(RemovePeer(INSTANCE, "p"), established()),
    ),
    Row(
        6,
        C.ADMINISTRATIVE_RESET,
        b"\x05again",
        "9003 2",
        lambda: commanded(ResetPeer(INSTANCE, "p", "again"), established()),
    ),
    Row(6, C.CONNECTION_REJECTED, b"", "4486 4", one_too_many),
    Row(
        6,
        C.OTHER_CONFIGURATION_CHANGE,
        b"",
        "4486 4",
        lambda: commanded(SetPeer(INSTANCE, settings(hold_time=30)), established()),
    ),
    Row(
        6,
        C.CONNECTION_COLLISION_RESOLUTION,
        b"",
        "4271 6.8",
        lambda: turned_away(established(), REMOTE),
    ),
    Row(
        6,
        C.OUT_OF_RESOURCES,
        b"",
        "4486 4",
        lambda: commanded(QueueChanged(-1, 1_000_001), established()),
    ),
    Row(
        6,
        C.HARD_RESET,
        b"\6\3",
        "8538 3",
        lambda: commanded(
            RemovePeer(INSTANCE, "p"),
            Raw(graceful_restart=GracefulRestart(60)).to_established(
                open_message(capabilities=RESTARTING)
            ),
        ),
    ),
    Row(
        6,
        C.BFD_DOWN,
        b"",
        "9384 3",
        lambda: commanded(PathsDown((PathDown(INSTANCE, "p"),)), established()),
    ),
    Row(
        7,
        RefreshSubcode.INVALID_MESSAGE_LENGTH,
        frame_message(5, b"\0\1\1\1?"),
        "7313 5",
        lambda: after(
            frame_message(5, b"\0\1\1\1?"),
            Raw().to_established(open_message(capabilities=(*FAMILIES, EnhancedRouteRefresh()))),
        ),
    ),
    Row(8, 0, b"", "9687 3.3", lambda: _unread(established())),
]

NEVER = {
    (3, int(U.MISSING_WELL_KNOWN_ATTRIBUTE)): "RFC 7606 section 3(d): the routes are withdrawn",
    (5, int(F.UNSPECIFIED)): "there is a subcode for each state in which a connection is up",
}


def _unread(raw: Raw) -> Raw:
    raw.give(QueueChanged(raw.connection, 1))
    while not raw.is_closed:
        raw.wait(20)
        raw.send(KEEPALIVE)
    return raw


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.code}-{row.subcode} RFC {row.section}")
def test_notification(row: Row) -> None:
    raw = row.do()
    assert raw.notification == (row.code, row.subcode, row.data)
    assert raw.messages[-1][0] == 3, "no message follows it"
    assert raw.is_closed


def test_every_code_and_subcode_is_sent_or_has_a_reason() -> None:
    known = {
        (code, int(subcode))
        for code, kinds in {1: H, 2: O, 3: U, 5: F, 6: C, 7: RefreshSubcode}.items()
        for subcode in kinds
    }
    known |= {(4, 0), (8, 0)}
    sent = {(row.code, int(row.subcode)) for row in ROWS}
    assert {code for code, _ in known} == {int(code) for code in ErrorCode}
    assert sent | NEVER.keys() == known
    assert not sent & NEVER.keys()


def test_rfc9003_2_a_text_is_for_shutdown_and_reset_only() -> None:
    for subcode in CeaseSubcode:
        has = subcode in (C.ADMINISTRATIVE_SHUTDOWN, C.ADMINISTRATIVE_RESET)
        assert bool(Notification.cease(subcode, "text").data) == has
