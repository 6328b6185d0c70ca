"""Peer Up and Peer Down in BMP (RFC 7854 sections 4.9 and 4.10)."""

from __future__ import annotations

from msgspec.structs import replace

from speaker.bmp import PeerDown, PeerDownReason, PeerKind, PeerUp, PeerUpTlv
from speaker.engine.inputs import ResetPeer, SetPeer, WallClock
from speaker.message import HEADER_SIZE, KEEPALIVE, Notification, frame_message
from tests.speaker.engine.monitoring.collector import Collector
from tests.speaker.engine.monitoring.watched import last, watched
from tests.speaker.raw import INSTANCE, REMOTE_ASN, REMOTE_ID, Raw, open_message


def test_rfc7854_4_10_peer_up_has_both_opens_as_on_the_wire() -> None:
    raw = Raw()
    collector = watched(raw)
    raw.now = 12.5
    theirs = open_message(hold_time=77)
    raw.to_established(theirs)
    up = last(collector)
    assert isinstance(up, PeerUp)
    assert up.received_open == theirs
    assert up.sent_open == frame_message(*raw.messages[0])
    assert up.local_address == bytes((10, 0, 0, 1))
    assert (up.local_port, up.remote_port) == (179, 40000)
    assert up.peer.kind == PeerKind.GLOBAL
    assert up.peer.distinguisher == 0
    assert up.peer.address == bytes((10, 0, 0, 2))
    assert (up.peer.asn, up.peer.router_id) == (REMOTE_ASN, REMOTE_ID)
    assert up.peer.time == 1_700_000_012_500_000
    assert {tlv.type: tlv.text for tlv in up.information} == {PeerUpTlv.ADMIN_LABEL: "p"}


def test_a_station_that_connects_late_gets_peer_up_for_all_peers() -> None:
    raw = Raw().to_established()
    collector = watched(raw)
    assert isinstance(collector.station.messages[1], PeerUp)


def down(collector: Collector) -> PeerDown:
    message = last(collector)
    assert isinstance(message, PeerDown)
    return message


def test_rfc7854_4_9_reason_1_has_the_sent_notification() -> None:
    raw = Raw().to_established()
    collector = watched(raw)
    raw.give(ResetPeer(INSTANCE, "p", "new cable"))
    message = down(collector)
    assert message.reason == PeerDownReason.LOCAL_NOTIFICATION
    body = message.notification[HEADER_SIZE:]
    assert str(Notification.decode(body)) == "Cease / Administrative Reset: 'new cable'"


def test_rfc7854_4_9_reason_2_has_the_fsm_event() -> None:
    raw = Raw(graceful_restart=None).to_established()
    collector = watched(raw)
    raw.engine.instance(INSTANCE).peer("p").stop(None)
    raw.give(WallClock(0.0))
    message = down(collector)
    assert (message.reason, message.event) == (PeerDownReason.LOCAL_EVENT, 2)


def test_rfc7854_4_9_reason_3_has_the_received_notification() -> None:
    raw = Raw().to_established()
    collector = watched(raw)
    notification = Notification(6, 4, b"\x02hi")
    raw.send(notification.encode())
    message = down(collector)
    assert message.reason == PeerDownReason.REMOTE_NOTIFICATION
    assert message.notification == notification.encode()


def test_rfc7854_4_9_reason_4_is_a_close_without_a_notification() -> None:
    raw = Raw().to_established()
    collector = watched(raw)
    raw.drop()
    assert down(collector).reason == PeerDownReason.REMOTE_CLOSED


def test_peer_down_never_has_a_notification_of_an_earlier_session() -> None:
    raw = Raw(idle_hold_time=0).to_established()
    collector = watched(raw)
    raw.send(Notification(6, 4).encode())
    raw.wait(5.0)
    raw.to_established()
    raw.drop()
    assert down(collector).reason == PeerDownReason.REMOTE_CLOSED


def test_peers_with_equal_bmp_identities_get_distinguishers() -> None:
    raw = Raw().to_established()
    config = raw.engine.instance(INSTANCE).peer("p").config
    raw.give(SetPeer(INSTANCE, replace(config, name="q", port=1790)))
    raw.connect()
    raw.send(open_message())
    raw.send(KEEPALIVE)
    collector = watched(raw)
    peers = [m.peer for m in collector.station.messages if isinstance(m, PeerUp)]
    assert [peer.kind for peer in peers] == [PeerKind.GLOBAL, PeerKind.LOCAL]
    assert [peer.address for peer in peers] == [bytes((10, 0, 0, 2))] * 2
    assert peers[1].distinguisher
