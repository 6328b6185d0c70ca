"""What a session answers to every kind of octets; hostile inputs carry their catalogue numbers."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speaker.api import Fault, GracefulRestart, InstanceConfig, PeerConfig, SessionError
from speaker.capability import (
    FourOctetAs,
    GracefulRestartCapability,
    Multiprotocol,
    RouteRefreshCapability,
)
from speaker.engine import Engine
from speaker.engine.inputs import (
    QueueChanged,
    SetInstance,
    SetPeer,
    TimersDue,
    TransportAccepted,
)
from speaker.iana import IPV4_UNICAST, IPV6_UNICAST, Family
from speaker.message import KEEPALIVE, Notification, RouteRefresh, decode_open, frame_message
from speaker.peer.peer import Peer
from tests.speaker.raw import (
    ATTRIBUTES,
    FAMILIES,
    INSTANCE,
    LOCAL,
    NLRI,
    REMOTE,
    REMOTE_ID,
    Raw,
    open_message,
    update,
)
from tests.support.examples import examples

STATES = ("open_sent", "open_confirm", "established")


def at(state: str, **options: object) -> Raw:
    """Return a session in a state."""
    raw = Raw(**options)
    getattr(raw, f"to_{state}")()
    assert (
        raw.state
        == {
            "open_sent": "OpenSent",
            "open_confirm": "OpenConfirm",
            "established": "Established",
        }[state]
    )
    return raw


def test_our_open_says_who_we_are_and_what_we_can() -> None:
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


def test_h03_a_connection_that_says_nothing_is_closed_in_time() -> None:
    raw = at("open_sent")
    raw.wait(59)
    assert not raw.is_closed
    raw.wait(2)
    assert raw.is_closed
    assert raw.notification == (4, 0, b"")


def test_h03_one_octet_a_minute_does_not_keep_a_connection_open() -> None:
    raw = at("open_sent")
    for octet in open_message()[:3]:
        raw.say(bytes((octet,)))
        raw.wait(30)
    assert raw.is_closed


def test_h04_a_hundred_connections_leave_at_most_two() -> None:
    raw = Raw()
    for _ in range(100):
        raw.connect()
        assert -raw.connection - len(set(raw.closed)) <= 2


@pytest.mark.parametrize("state", STATES)
def test_h05_a_marker_that_is_not_all_ones(state: str) -> None:
    raw = at(state)
    raw.say(b"\xff" * 15 + b"\x00" + KEEPALIVE[16:])
    assert raw.notification == (1, 1, b"")
    assert raw.is_closed


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(
    ("length", "kind"),
    [(0, 4), (18, 4), (20, 4), (28, 1), (22, 2), (4097, 2), (65535, 2)],
)
def test_h06_a_length_that_cannot_be_is_answered_with_itself(
    state: str, length: int, kind: int
) -> None:
    raw = at(state)
    raw.say(b"\xff" * 16 + length.to_bytes(2, "big") + bytes((kind,)))
    assert raw.notification == (1, 2, length.to_bytes(2, "big"))
    assert raw.is_closed


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("kind", [0, 6, 7, 128, 255])
def test_h07_an_unknown_type_is_answered_with_itself(state: str, kind: int) -> None:
    raw = at(state)
    raw.say(frame_message(kind, b"hello"))
    assert raw.notification == (1, 3, bytes((kind,)))


def test_h08_a_keepalive_with_a_body() -> None:
    raw = at("established")
    raw.say(frame_message(4, b"x"))
    assert raw.notification == (1, 2, (20).to_bytes(2, "big"))


CONVERSATION = (
    open_message() + KEEPALIVE + update(ATTRIBUTES, NLRI) + KEEPALIVE + update(b"", b"", NLRI)
)


@pytest.mark.parametrize("cut", range(1, len(CONVERSATION)))
def test_h09_a_conversation_cut_anywhere_is_the_same_conversation(cut: int) -> None:
    raw = Raw()
    raw.connect()
    raw.say(CONVERSATION[:cut])
    raw.say(CONVERSATION[cut:])
    assert raw.state == "Established"
    assert raw.status.messages_received == 5
    assert raw.status.families[0].received == 0


def test_h09_octet_by_octet_and_all_at_once() -> None:
    single = Raw()
    single.connect()
    for octet in CONVERSATION:
        single.say(bytes((octet,)))
    assert single.status.messages_received == 5
    many = Raw()
    many.connect()
    many.say(open_message() + KEEPALIVE + update(ATTRIBUTES, NLRI) * 1000)
    assert many.status.updates_received == 1000
    assert many.status.families[0].received == 1


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("part", [b"", KEEPALIVE[:7]])
def test_h10_a_connection_that_breaks_leaves_its_reason_and_nothing_else(
    state: str, part: bytes
) -> None:
    raw = at(state)
    raw.say(part)
    raw.drop("connection reset by peer")
    assert raw.state in ("Idle", "Active")
    assert "connection lost: connection reset by peer" in raw.status.reason
    raw.wait(5)
    raw.to_established()


def test_h11_a_peer_that_takes_nothing_is_given_up_by_the_send_hold_timer_rfc_9687() -> None:
    raw = at("established")
    raw.give(QueueChanged(raw.connection, 1000))
    for _ in range(30):
        raw.wait(20)
        raw.say(KEEPALIVE)
        if raw.is_closed:
            break
    assert 480 <= raw.now <= 500
    assert raw.notification is not None
    assert raw.notification[:2] == (8, 0)


def test_h11_a_peer_that_reads_slowly_keeps_its_session() -> None:
    raw = at("established")
    for octets in range(1000, 900, -1):
        raw.give(QueueChanged(raw.connection, octets))
        raw.wait(20)
        raw.say(KEEPALIVE)
    assert raw.state == "Established"


def test_rfc4271_10_keepalives_come_after_75_to_100_percent_of_their_time() -> None:
    raw = at("established", hold_time=90, keepalive_time=30)
    gaps = []
    for _ in range(30):
        before, sent = raw.now, len(raw.sent)
        while len(raw.sent) == sent:
            raw.wait(0.25)
        gaps.append(raw.now - before)
        raw.say(KEEPALIVE)
    assert 22.5 <= min(gaps) < 24
    assert 28.5 < max(gaps) <= 30.25
    assert len(set(gaps)) > 10


def test_rfc4271_10_attempts_to_connect_are_not_made_in_step() -> None:
    pauses = set()
    for seed in range(20):
        engine = Engine(random.Random(seed))  # noqa: S311  a seed, no secret
        engine.handle(
            SetInstance(InstanceConfig(name=INSTANCE, local_asn=65001, router_id=LOCAL)), 0.0
        )
        peer = PeerConfig(name="p", address=REMOTE, peer_asn=65002, connect_retry_time=120)
        engine.handle(SetPeer(INSTANCE, peer), 0.0)
        due = engine.next_deadline()
        assert due is not None
        assert 90 <= due <= 120
        pauses.add(due)
    assert len(pauses) == 20


def test_rfc9687_3_3_what_waits_from_before_the_session_counts_once_it_is_up() -> None:
    raw = at("open_confirm")
    raw.give(QueueChanged(raw.connection, 1000))
    raw.say(KEEPALIVE)
    raw.wait(10)
    raw.give(QueueChanged(raw.connection, 2000))
    began = raw.now
    while not raw.is_closed:
        raw.wait(20)
        raw.say(KEEPALIVE)
    assert 480 <= raw.now - began <= 500
    assert raw.notification == (8, 0, b"")


def test_rfc9687_3_1_without_a_hold_time_there_is_no_send_hold_time() -> None:
    raw = Raw().to_established(open_message(hold_time=0))
    raw.give(QueueChanged(raw.connection, 1000))
    raw.wait(10_000)
    assert raw.state == "Established"


def test_a_queue_over_the_limit_ends_the_session_with_a_cease() -> None:
    raw = at("established")
    raw.give(QueueChanged(raw.connection, 1_000_001))
    assert raw.notification == (6, 8, b"")
    assert "the peer does not read" in raw.status.reason


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
    raw.say(frame_message(3, body))
    assert raw.notification is None
    assert raw.is_closed
    assert raw.state in ("Idle", "Active")
    assert raw.status.last_error is not None
    assert raw.status.last_error.startswith("received: ")
    assert raw.status.last_error.isprintable()
    assert raw.status.reason.isprintable()


def test_h12_a_malformed_notification_is_not_answered_with_another() -> None:
    raw = at("established")
    raw.say(frame_message(3, b""))
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
    raw.say(message)
    assert raw.notification == (5, subcode, b"")
    assert raw.is_closed


def test_h13_a_flood_of_keepalives_is_just_keepalives() -> None:
    raw = at("open_confirm")
    raw.say(KEEPALIVE * 10_000)
    assert raw.state == "Established"
    assert raw.status.messages_received == 10_001


@pytest.mark.parametrize("version", [0, 3, 5, 255])
def test_h20_another_version_is_answered_with_ours(version: int) -> None:
    raw = at("open_sent")
    message = bytearray(open_message())
    message[19] = version
    raw.say(bytes(message))
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
    ],
)
def test_h21_a_wrong_as_is_refused_and_named(asn: int, four: int | None, detail: str) -> None:
    raw = at("open_sent")
    capabilities = FAMILIES[:2] if four is None else (*FAMILIES[:2], FourOctetAs(four))
    message = bytearray(open_message(asn=65002, capabilities=capabilities))
    message[20:22] = asn.to_bytes(2, "big")
    raw.say(bytes(message))
    assert raw.notification is not None
    assert raw.notification[:2] == (2, 2)
    assert detail in raw.status.reason


def test_h21_as_trans_with_the_capability_is_right() -> None:
    raw = Raw()
    raw.connect()
    message = bytearray(open_message())
    message[20:22] = (23456).to_bytes(2, "big")
    raw.say(bytes(message))
    assert raw.state == "OpenConfirm"


def test_h22_an_identifier_of_zero_is_refused() -> None:
    raw = at("open_sent")
    raw.say(open_message(router_id=0))
    assert raw.notification is not None
    assert raw.notification[:2] == (2, 3)


def test_h22_our_own_identifier_is_refused_within_the_as_rfc_6286() -> None:
    raw = Raw(local_asn=65002)
    raw.to_open_sent()
    raw.say(open_message(router_id=0x0A000001))
    assert raw.notification is not None
    assert raw.notification[:2] == (2, 3)
    external = at("open_sent")
    external.say(open_message(router_id=0x0A000001))
    assert external.state == "OpenConfirm"


@pytest.mark.parametrize("hold_time", [1, 2])
def test_h23_a_hold_time_below_three_is_refused(hold_time: int) -> None:
    raw = at("open_sent")
    raw.say(open_message(hold_time=hold_time))
    assert raw.notification is not None
    assert raw.notification[:2] == (2, 6)


@pytest.mark.parametrize(
    ("hold_time", "negotiated"), [(0, (0, 0)), (3, (3, 1)), (90, (90, 30)), (65535, (90, 30))]
)
def test_h23_the_smaller_hold_time_counts(hold_time: int, negotiated: tuple[int, int]) -> None:
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
def test_h24_optional_parameters_that_cannot_be(parameters: bytes, subcode: int) -> None:
    raw = at("open_sent")
    raw.say(_with_parameters(parameters))
    assert raw.notification is not None
    assert raw.notification[:2] == (2, subcode)
    assert raw.is_closed


def test_h24_no_optional_parameters_are_a_speaker_of_ipv4_unicast() -> None:
    raw = Raw()
    raw.to_established(_with_parameters(b"\x00"))
    assert [f.negotiated for f in raw.status.families] == [True, False]


def test_h24_the_extended_form_is_read_rfc_9072() -> None:
    capability = b"\x01\x04\x00\x01\x00\x01"
    body = b"\x02" + len(capability).to_bytes(2, "big") + capability
    raw = Raw()
    raw.to_established(_with_parameters(b"\xff\xff" + len(body).to_bytes(2, "big") + body))
    assert [f.negotiated for f in raw.status.families] == [True, False]


def test_a_peer_without_any_of_our_families_is_told_which_rfc_5492() -> None:
    raw = Raw(families=(IPV6_UNICAST,))
    raw.to_open_sent()
    raw.say(open_message(capabilities=(Multiprotocol(IPV4_UNICAST), FourOctetAs(65002))))
    assert raw.notification == (2, 7, bytes.fromhex("010400020001"))


def test_h26_after_an_unsupported_capability_the_next_open_is_plain() -> None:
    raw = at("open_sent")
    raw.say(Notification(2, 7).encode())
    raw.wait(5)
    raw.to_open_sent()
    opened = decode_open(raw.messages[0][1])
    assert RouteRefreshCapability() not in opened.capabilities
    assert "Unsupported Capability" in raw.status.reason


def test_a_session_that_was_lost_is_idle_for_longer_each_time_that_it_fails() -> None:
    raw = Raw()
    pauses = []
    for _ in range(8):
        raw.to_open_sent()
        raw.say(open_message(asn=65003, capabilities=()))
        assert raw.state == "Idle"
        pauses.append(raw.status.retry_in or 0.0)
        raw.wait(pauses[-1])
        assert raw.state == "Active"
    assert pauses == sorted(pauses)
    assert pauses[0] <= 1.0
    assert pauses[-1] >= 45.0


def test_a_stable_session_that_is_lost_may_come_back_at_once() -> None:
    raw = at("established")
    for _ in range(10):
        raw.wait(20)
        raw.say(KEEPALIVE)
    raw.drop()
    raw.wait(0)
    assert raw.state == "Active"
    assert raw.status.flaps == 1


def test_f22_a_hold_timer_that_fires_late_waits_for_what_is_unread() -> None:
    raw = at("established")
    raw.now = 1000.0
    raw.give(TimersDue())
    assert raw.state == "Established"
    raw.say(KEEPALIVE)
    raw.wait(60)
    assert raw.state == "Established"


def test_f22_a_peer_that_is_silent_after_a_pause_of_ours_is_given_up_too() -> None:
    raw = at("established")
    raw.now = 1000.0
    raw.give(TimersDue())
    raw.wait(2)
    assert raw.state != "Established"


def test_a_connection_while_established_is_refused_with_a_cease() -> None:
    raw = at("established")
    actions = raw.give(TransportAccepted(-77, INSTANCE, (LOCAL, 179), (REMOTE, 40001)))
    assert -77 in raw.closed
    assert any(b"\x06\x07" in b"".join(getattr(action, "parts", ())) for action in actions)
    assert raw.state == "Established"


def test_route_refresh_sends_the_table_again_rfc_2918() -> None:
    raw = Raw(export="all")
    raw.to_established(open_message(capabilities=(*FAMILIES, RouteRefreshCapability())))
    raw.engine.instance(INSTANCE)
    raw.sent = b""
    raw.say(RouteRefresh(IPV4_UNICAST).encode())
    assert raw.state == "Established"
    raw.say(RouteRefresh(Family(25, 70)).encode())
    assert raw.state == "Established"


def test_f35_an_error_of_ours_in_one_message_costs_one_session_and_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raw = at("established")

    def broken(*_: object) -> None:
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr(Peer, "usual_updates", broken)
    raw.say(update(ATTRIBUTES, NLRI))
    assert raw.notification == (6, 8, b"")
    (fault,) = [event for event in raw.events if isinstance(event, Fault)]
    assert (fault.peer, fault.error) == ("p", "ZeroDivisionError: a fault of ours")
    monkeypatch.undo()
    raw.wait(5)
    raw.to_established()


def test_a_malformed_attribute_costs_the_route_and_not_the_session_rfc_7606() -> None:
    raw = at("established")
    raw.say(update(ATTRIBUTES, NLRI))
    assert raw.status.families[0].received == 1
    bad_origin = bytes.fromhex("40010107") + ATTRIBUTES[4:]
    for _ in range(1000):
        raw.say(update(bad_origin, NLRI))
    assert raw.state == "Established"
    assert raw.status.families[0].received == 0
    reports = [event for event in raw.events if isinstance(event, SessionError)]
    assert 1 <= len(reports) <= 10


def test_nlri_that_cannot_be_resets_the_session_rfc_4271_section_6_3() -> None:
    raw = at("established")
    raw.say(update(ATTRIBUTES, b"\x21\x0a\x00\x00\x00\x00"))
    assert raw.notification is not None
    assert raw.notification[:2] == (3, 10)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.binary(max_size=80), max_size=6), st.sampled_from(STATES))
def test_no_octets_make_the_core_raise(chunks: list[bytes], state: str) -> None:
    raw = at(state)
    for chunk in chunks:
        raw.say(chunk)
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
    raw.say(bytes(octets[:cut]))
    raw.say(bytes(octets[cut:]))
    assert not [event for event in raw.events if isinstance(event, Fault)]
    raw.wait(300)


def test_the_peers_identifier_is_known() -> None:
    raw = at("established")
    assert raw.status.peer_router_id == "10.0.0.2"
    assert REMOTE_ID == 0x0A000002
