"""RFC 8654: messages of more than 4,096 octets, in both directions, only where negotiated."""

from __future__ import annotations

import pytest

from speaker.api import RouteAttributes
from speaker.capability import Capability, ExtendedMessage, RouteRefreshCapability, Unknown
from speaker.engine.inputs import UpdateRoutes
from speaker.iana import IPV4_UNICAST
from speaker.message import Open, decode_open, frame_message
from tests.speaker.hostile import BASIC, Arena
from tests.speaker.raw import (
    ATTRIBUTES,
    FAMILIES,
    INSTANCE,
    NLRI,
    REMOTE_ASN,
    REMOTE_ID,
    Raw,
    open_message,
    update,
)

EXTENDED: tuple[Capability, ...] = (*FAMILIES, ExtendedMessage(), RouteRefreshCapability())
ROUTES = {
    b"\x18\x0a" + n.to_bytes(2, "big"): RouteAttributes(communities=(n // 5000,))
    for n in range(10_000)
}


def established(capabilities: tuple[Capability, ...], **settings: object) -> Raw:
    return Raw(**settings).to_established(open_message(capabilities=capabilities))


def of_size(size: int) -> bytes:
    """Return an UPDATE of so many octets, 10.1.0.0/24 and something unknown."""
    value = bytes(size - len(update(ATTRIBUTES + b"\xd0\x63\0\0", NLRI)))
    extended = b"\xd0\x63" + len(value).to_bytes(2, "big") + value
    message = update(ATTRIBUTES + extended, NLRI)
    assert len(message) == size
    return message


def sizes(raw: Raw) -> set[int]:
    return {19 + len(body) for _, body in raw.messages}


def test_rfc8654_3_the_capability_is_offered() -> None:
    raw = Raw().to_open_sent()
    assert ExtendedMessage() in decode_open(raw.messages[0][1]).capabilities


@pytest.mark.parametrize("size", [4097, 65535])
def test_rfc8654_4_a_long_message_is_accepted_from_a_peer_with_the_capability(
    size: int,
) -> None:
    raw = established(EXTENDED)
    raw.send(of_size(size))
    assert raw.status.established
    assert raw.status.families[0].received == 1


def test_rfc8654_5_a_long_message_of_another_peer_has_a_bad_length() -> None:
    raw = established(FAMILIES)
    raw.send(of_size(4096))
    assert raw.status.families[0].received == 1
    raw.send(of_size(4097))
    assert raw.notification == (1, 2, b"\x10\x01")


@pytest.mark.parametrize("state", ["before", "after"])
def test_rfc8654_4_open_and_keepalive_are_never_extended(state: str) -> None:
    raw = Raw().to_open_sent() if state == "before" else established(EXTENDED)
    many = tuple(Unknown(200, bytes(250)) for _ in range(17))
    long = Open(
        asn=REMOTE_ASN, hold_time=90, router_id=REMOTE_ID, capabilities=(*EXTENDED, *many)
    ).encode()
    assert len(long) > 4096
    raw.send(long)
    assert raw.notification == (1, 2, len(long).to_bytes(2, "big"))


def test_rfc8654_4_a_long_keepalive_has_a_bad_length() -> None:
    raw = established(EXTENDED)
    raw.send(frame_message(4, bytes(5000)))
    assert raw.notification == (1, 2, (5019).to_bytes(2, "big"))


@pytest.mark.parametrize("extended", [True, False])
def test_rfc8654_4_sent_messages_are_as_long_as_negotiated(*, extended: bool) -> None:
    raw = established(EXTENDED if extended else FAMILIES, export="all")
    raw.sent = b""
    raw.give(UpdateRoutes(INSTANCE, None, {IPV4_UNICAST: ROUTES}))
    if extended:
        # 5,000 prefixes of four octets fit into one message.
        assert len(raw.messages) == 2
        assert 20_000 < max(sizes(raw)) <= 65535
    else:
        assert 4000 < max(sizes(raw)) <= 4096


def test_rfc8654_4_a_long_attribute_is_not_sent_without_the_capability() -> None:
    """It is not sent in part; the route that it replaces is withdrawn."""
    arena = Arena().reach("Established", (*BASIC, ExtendedMessage()))
    arena.send(update(ATTRIBUTES, NLRI))
    sent = arena.messages(arena.quiet)
    assert sent[-1][1].endswith(NLRI)
    arena.send(of_size(6000))
    assert arena.status().established
    assert arena.messages(arena.quiet)[len(sent) :] == [(2, update(b"", b"", NLRI)[19:])]
    arena.check()
