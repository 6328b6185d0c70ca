"""The OPEN that a session sends, and its reaction to the OPEN of the peer."""

from __future__ import annotations

import pytest

from speaker.api import GracefulRestart
from speaker.capability import (
    FourOctetAs,
    GracefulRestartCapability,
    Multiprotocol,
    RouteRefreshCapability,
)
from speaker.iana import IPV4_UNICAST, IPV6_UNICAST
from speaker.message import Notification, decode_open, frame_message
from tests.speaker.peer.session.states import at
from tests.speaker.raw import FAMILIES, REMOTE_ID, Raw, open_message


def test_the_open_has_identity_and_capabilities() -> None:
    raw = at("open_sent", hold_time=9, keepalive_time=3)
    ((kind, body),) = raw.messages
    opened = decode_open(body)
    assert (kind, opened.asn, opened.hold_time, opened.router_id) == (1, 65001, 9, 0x0A000001)
    assert Multiprotocol(IPV4_UNICAST) in opened.capabilities
    assert Multiprotocol(IPV6_UNICAST) in opened.capabilities
    assert FourOctetAs(65001) in opened.capabilities
    assert RouteRefreshCapability() in opened.capabilities


def test_graceful_restart_is_offered_where_it_is_configured() -> None:
    raw = at("open_sent", graceful_restart=GracefulRestart(77))
    opened = decode_open(raw.messages[0][1])
    (offered,) = [c for c in opened.capabilities if isinstance(c, GracefulRestartCapability)]
    assert (offered.restart_time, offered.restarting) == (77, False)
    assert [family for family, _ in offered.families] == [IPV4_UNICAST, IPV6_UNICAST]


@pytest.mark.parametrize("version", [0, 3, 5, 255])
def test_h20_another_version_is_answered_with_the_supported_one(version: int) -> None:
    raw = at("open_sent")
    message = bytearray(open_message())
    message[19] = version
    raw.send(bytes(message))
    assert raw.notification == (2, 1, b"\x00\x04")


@pytest.mark.parametrize(
    ("asn", "four", "detail"),
    [
        (65003, 65003, "peer AS 65003, expected 65002"),
        (65003, None, "peer AS 65003, expected 65002"),
        (23456, None, "peer AS 23456, expected 65002"),
        (65002, 65003, "peer AS 65003, expected 65002"),
        (0, None, "AS 0"),
        (65002, 0, "AS 0"),
        (0, 65002, "AS 0"),
    ],
)
def test_h21_a_wrong_as_is_rejected_and_named(asn: int, four: int | None, detail: str) -> None:
    raw = at("open_sent")
    capabilities = FAMILIES[:2] if four is None else (*FAMILIES[:2], FourOctetAs(four))
    message = bytearray(open_message(asn=65002, capabilities=capabilities))
    message[20:22] = asn.to_bytes(2, "big")
    raw.send(bytes(message))
    assert raw.notification is not None
    assert raw.notification[:2] == (2, 2)
    assert detail in raw.status.reason


def test_h21_as_trans_with_the_capability_is_accepted() -> None:
    raw = Raw()
    raw.connect()
    message = bytearray(open_message())
    message[20:22] = (23456).to_bytes(2, "big")
    raw.send(bytes(message))
    assert raw.state == "OpenConfirm"


def test_h22_an_identifier_of_zero_is_rejected() -> None:
    raw = at("open_sent")
    raw.send(open_message(router_id=0))
    assert raw.notification is not None
    assert raw.notification[:2] == (2, 3)


def test_h22_the_local_identifier_is_rejected_within_the_as_rfc_6286() -> None:
    raw = Raw(local_asn=65002)
    raw.to_open_sent()
    raw.send(open_message(router_id=0x0A000001))
    assert raw.notification is not None
    assert raw.notification[:2] == (2, 3)
    external = at("open_sent")
    external.send(open_message(router_id=0x0A000001))
    assert external.state == "OpenConfirm"


@pytest.mark.parametrize("hold_time", [1, 2])
def test_h23_a_hold_time_below_three_is_rejected(hold_time: int) -> None:
    raw = at("open_sent")
    raw.send(open_message(hold_time=hold_time))
    assert raw.notification is not None
    assert raw.notification[:2] == (2, 6)


@pytest.mark.parametrize(
    ("hold_time", "negotiated"), [(0, (0, 0)), (3, (3, 1)), (90, (90, 30)), (65535, (90, 30))]
)
def test_h23_the_smaller_hold_time_is_used(hold_time: int, negotiated: tuple[int, int]) -> None:
    raw = Raw()
    raw.to_established(open_message(hold_time=hold_time))
    assert (raw.status.hold_time, raw.status.keepalive_time) == negotiated


def _with_parameters(parameters: bytes) -> bytes:
    head = open_message(capabilities=())[19:28]
    return frame_message(1, head + parameters)


@pytest.mark.parametrize(
    ("parameters", "subcode"),
    [
        (b"\x05\x02\x06", 0),  # the length is past the end
        (b"\x02\x02", 0),  # ends within the parameters
        (b"\x02\x02\x06", 0),  # a capability that is cut
        (b"\x03\x01\x01\x00", 4),  # authentication, of old
        (b"\x02\x63\x00", 4),  # unknown
        (b"\xff", 0),  # neither the plain form nor the extended one
        (b"\xff\xff", 0),
        (b"\xff\xff\x00\x05\x02\x00", 0),
    ],
)
def test_h24_malformed_optional_parameters_are_rejected(parameters: bytes, subcode: int) -> None:
    raw = at("open_sent")
    raw.send(_with_parameters(parameters))
    assert raw.notification is not None
    assert raw.notification[:2] == (2, subcode)
    assert raw.is_closed


def test_h24_no_optional_parameters_mean_ipv4_unicast() -> None:
    raw = Raw()
    raw.to_established(_with_parameters(b"\x00"))
    assert [f.negotiated for f in raw.status.families] == [True, False]


def test_h24_the_extended_form_is_decoded_rfc_9072() -> None:
    capability = b"\x01\x04\x00\x01\x00\x01"
    body = b"\x02" + len(capability).to_bytes(2, "big") + capability
    raw = Raw()
    raw.to_established(_with_parameters(b"\xff\xff" + len(body).to_bytes(2, "big") + body))
    assert [f.negotiated for f in raw.status.families] == [True, False]


def test_a_peer_without_a_common_family_gets_them_in_the_notification_rfc_5492() -> None:
    raw = Raw(families=(IPV6_UNICAST,))
    raw.to_open_sent()
    raw.send(open_message(capabilities=(Multiprotocol(IPV4_UNICAST), FourOctetAs(65002))))
    assert raw.notification == (2, 7, bytes.fromhex("010400020001"))


def test_h26_after_an_unsupported_capability_the_next_open_is_plain() -> None:
    raw = at("open_sent")
    raw.send(Notification(2, 7).encode())
    raw.wait(5)
    raw.to_open_sent()
    opened = decode_open(raw.messages[0][1])
    assert RouteRefreshCapability() not in opened.capabilities
    assert "Unsupported Capability" in raw.status.reason


def test_the_peers_identifier_is_in_the_status() -> None:
    raw = at("established")
    assert raw.status.peer_router_id == "10.0.0.2"
    assert REMOTE_ID == 0x0A000002
