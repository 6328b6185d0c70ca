"""The reaction of a session to any octets; hostile inputs carry their catalogue numbers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speaker.api import Fault, SessionError
from speaker.capability import RouteRefreshCapability
from speaker.engine.inputs import TransportAccepted
from speaker.iana import IPV4_UNICAST, Family
from speaker.message import KEEPALIVE, RouteRefresh, frame_message
from tests.speaker.peer.session.states import STATES, at
from tests.speaker.raw import (
    ATTRIBUTES,
    FAMILIES,
    INSTANCE,
    LOCAL,
    NLRI,
    REMOTE,
    Raw,
    open_message,
    update,
)
from tests.support.examples import examples


@pytest.mark.parametrize("state", STATES)
def test_h05_a_marker_that_is_not_all_ones(state: str) -> None:
    raw = at(state)
    raw.send(b"\xff" * 15 + b"\x00" + KEEPALIVE[16:])
    assert raw.notification == (1, 1, b"")
    assert raw.is_closed


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(
    ("length", "kind"),
    [(0, 4), (18, 4), (20, 4), (28, 1), (22, 2), (4097, 2), (65535, 2)],
)
def test_h06_a_bad_length_is_returned_in_the_notification(
    state: str, length: int, kind: int
) -> None:
    raw = at(state)
    raw.send(b"\xff" * 16 + length.to_bytes(2, "big") + bytes((kind,)))
    assert raw.notification == (1, 2, length.to_bytes(2, "big"))
    assert raw.is_closed


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("kind", [0, 6, 7, 128, 255])
def test_h07_an_unknown_type_is_returned_in_the_notification(state: str, kind: int) -> None:
    raw = at(state)
    raw.send(frame_message(kind, b"hello"))
    assert raw.notification == (1, 3, bytes((kind,)))


def test_h08_a_keepalive_with_a_body() -> None:
    raw = at("established")
    raw.send(frame_message(4, b"x"))
    assert raw.notification == (1, 2, (20).to_bytes(2, "big"))


CONVERSATION = (
    open_message() + KEEPALIVE + update(ATTRIBUTES, NLRI) + KEEPALIVE + update(b"", b"", NLRI)
)


@pytest.mark.parametrize("cut", range(1, len(CONVERSATION)))
def test_h09_a_conversation_cut_anywhere_is_the_same_conversation(cut: int) -> None:
    raw = Raw()
    raw.connect()
    raw.send(CONVERSATION[:cut])
    raw.send(CONVERSATION[cut:])
    assert raw.state == "Established"
    assert raw.status.messages_received == 5
    assert raw.status.families[0].received == 0


def test_h09_octet_by_octet_and_all_at_once() -> None:
    single = Raw()
    single.connect()
    for octet in CONVERSATION:
        single.send(bytes((octet,)))
    assert single.status.messages_received == 5
    many = Raw()
    many.connect()
    many.send(open_message() + KEEPALIVE + update(ATTRIBUTES, NLRI) * 1000)
    assert many.status.updates_received == 1000
    assert many.status.families[0].received == 1


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("part", [b"", KEEPALIVE[:7]])
def test_h10_a_lost_connection_leaves_its_reason_and_no_routes(state: str, part: bytes) -> None:
    raw = at(state)
    raw.send(part)
    raw.drop("connection reset by peer")
    assert raw.state in ("Idle", "Active")
    assert "connection lost: connection reset by peer" in raw.status.reason
    raw.wait(5)
    raw.to_established()


HOSTILE_TEXT = b"\x1b[31m\x00\r\n\xff\xe2\x80\xae"


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(
    "body",
    [
        b"\x06\x02",
        b"\x06\x02\x05" + b"hello",
        b"\x06\x02\xff" + b"short",
        b"\x06\x02" + bytes((len(HOSTILE_TEXT),)) + HOSTILE_TEXT,
        b"\x06\x04\xff" + b"x" * 255,
        b"\x00\x00",
        b"\xff\xff" + HOSTILE_TEXT,
        b"\x02\x01\x00\x04",
    ],
)
def test_h12_a_notification_is_never_answered_and_its_text_is_harmless(
    state: str, body: bytes
) -> None:
    raw = at(state)
    raw.send(frame_message(3, body))
    assert raw.notification is None
    assert raw.is_closed
    assert raw.state in ("Idle", "Active")
    assert raw.status.last_error is not None
    assert raw.status.last_error.startswith("received: ")
    assert raw.status.last_error.isprintable()
    assert raw.status.reason.isprintable()


def test_h12_a_malformed_notification_is_not_answered_with_another() -> None:
    raw = at("established")
    raw.send(frame_message(3, b""))
    assert raw.is_closed
    assert raw.notification is None


@pytest.mark.parametrize(
    ("state", "message", "subcode"),
    [
        ("open_sent", update(ATTRIBUTES, NLRI), 1),
        ("open_sent", KEEPALIVE, 1),
        ("open_sent", RouteRefresh(IPV4_UNICAST).encode(), 1),
        ("open_confirm", open_message(), 2),
        ("open_confirm", update(ATTRIBUTES, NLRI), 2),
        ("established", open_message(), 3),
    ],
)
def test_h13_a_message_out_of_state_is_an_fsm_error(
    state: str, message: bytes, subcode: int
) -> None:
    raw = at(state)
    raw.send(message)
    assert raw.notification == (5, subcode, b"")
    assert raw.is_closed


def test_h13_a_flood_of_keepalives_keeps_the_session() -> None:
    raw = at("open_confirm")
    raw.send(KEEPALIVE * 10_000)
    assert raw.state == "Established"
    assert raw.status.messages_received == 10_001


def test_a_connection_while_established_is_rejected_with_a_cease() -> None:
    raw = at("established")
    actions = raw.give(TransportAccepted(-77, INSTANCE, (LOCAL, 179), (REMOTE, 40001)))
    assert -77 in raw.closed
    assert any(b"\x06\x07" in b"".join(getattr(action, "parts", ())) for action in actions)
    assert raw.state == "Established"


def test_a_route_refresh_of_any_family_leaves_the_session_established() -> None:
    raw = Raw(export="all")
    raw.to_established(open_message(capabilities=(*FAMILIES, RouteRefreshCapability())))
    raw.engine.instance(INSTANCE)
    raw.sent = b""
    raw.send(RouteRefresh(IPV4_UNICAST).encode())
    assert raw.state == "Established"
    raw.send(RouteRefresh(Family(25, 70)).encode())
    assert raw.state == "Established"


def test_f35_an_internal_error_in_one_message_ends_one_session_and_is_reported() -> None:
    class Broken:
        def receive(self, bodies: Sequence[bytes], start: int) -> int:
            del bodies, start
            raise ZeroDivisionError("an internal error")

    raw = at("established")
    updates = raw.engine.instance(INSTANCE).peer("p").connections.primary.updates
    assert updates.handler is not None
    updates.start(Broken(), updates.handler)
    raw.send(update(ATTRIBUTES, NLRI))
    assert raw.notification == (6, 8, b"")
    (fault,) = [event for event in raw.events if isinstance(event, Fault)]
    assert (fault.peer, fault.error) == ("p", "ZeroDivisionError: an internal error")
    raw.wait(5)
    raw.to_established()


def test_a_malformed_attribute_costs_the_route_and_not_the_session_rfc_7606() -> None:
    raw = at("established")
    raw.send(update(ATTRIBUTES, NLRI))
    assert raw.status.families[0].received == 1
    bad_origin = bytes.fromhex("40010107") + ATTRIBUTES[4:]
    for _ in range(1000):
        raw.send(update(bad_origin, NLRI))
    assert raw.state == "Established"
    assert raw.status.families[0].received == 0
    reports = [event for event in raw.events if isinstance(event, SessionError)]
    assert 1 <= len(reports) <= 10


def test_malformed_nlri_resets_the_session_rfc_4271_section_6_3() -> None:
    raw = at("established")
    raw.send(update(ATTRIBUTES, b"\x21\x0a\x00\x00\x00\x00"))
    assert raw.notification is not None
    assert raw.notification[:2] == (3, 10)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.binary(max_size=80), max_size=6), st.sampled_from(STATES))
def test_no_octets_make_the_core_raise(chunks: list[bytes], state: str) -> None:
    raw = at(state)
    for chunk in chunks:
        raw.send(chunk)
    raw.wait(300)


@settings(max_examples=examples(300), deadline=None)
@given(
    st.integers(0, len(CONVERSATION) - 1), st.integers(1, 255), st.integers(0, len(CONVERSATION))
)
def test_no_changed_octet_makes_the_core_raise(place: int, change: int, cut: int) -> None:
    octets = bytearray(CONVERSATION)
    octets[place] ^= change
    raw = Raw()
    raw.connect()
    raw.send(bytes(octets[:cut]))
    raw.send(bytes(octets[cut:]))
    assert not [event for event in raw.events if isinstance(event, Fault)]
    raw.wait(300)
