"""The timers of a session: connect-retry, DelayOpen, hold, keepalive, send hold, idle hold."""

from __future__ import annotations

import random

from speaker.api import InstanceConfig, PeerConfig
from speaker.engine import Engine
from speaker.engine.inputs import QueueChanged, SetInstance, SetPeer, TimersDue
from speaker.message import KEEPALIVE
from tests.speaker.peer.session.states import at
from tests.speaker.raw import INSTANCE, LOCAL, REMOTE, Raw, open_message


def test_h03_a_connection_without_an_open_is_closed_in_time() -> None:
    raw = at("open_sent")
    raw.wait(59)
    assert not raw.is_closed
    raw.wait(2)
    assert raw.is_closed
    assert raw.notification == (4, 0, b"")


def test_h03_one_octet_a_minute_does_not_keep_a_connection_open() -> None:
    raw = at("open_sent")
    for octet in open_message()[:3]:
        raw.send(bytes((octet,)))
        raw.wait(30)
    assert raw.is_closed


def test_h04_a_hundred_connections_leave_at_most_two() -> None:
    raw = Raw()
    for _ in range(100):
        raw.connect()
        assert -raw.connection - len(set(raw.closed)) <= 2


def test_h11_the_send_hold_timer_ends_the_session_of_a_peer_that_does_not_read_rfc_9687() -> None:
    raw = at("established")
    raw.give(QueueChanged(raw.connection, 1000))
    for _ in range(30):
        raw.wait(20)
        raw.send(KEEPALIVE)
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
        raw.send(KEEPALIVE)
    assert raw.state == "Established"


def test_rfc4271_10_keepalives_are_sent_after_75_to_100_percent_of_their_time() -> None:
    raw = at("established", hold_time=90, keepalive_time=30)
    gaps = []
    for _ in range(30):
        before, sent = raw.now, len(raw.sent)
        while len(raw.sent) == sent:
            raw.wait(0.25)
        gaps.append(raw.now - before)
        raw.send(KEEPALIVE)
    assert 22.5 <= min(gaps) < 24
    assert 28.5 < max(gaps) <= 30.25
    assert len(set(gaps)) > 10


def test_rfc4271_10_connection_attempts_have_jitter() -> None:
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


def test_rfc9687_3_3_octets_queued_before_established_start_the_timer_in_established() -> None:
    raw = at("open_confirm")
    raw.give(QueueChanged(raw.connection, 1000))
    raw.send(KEEPALIVE)
    raw.wait(10)
    raw.give(QueueChanged(raw.connection, 2000))
    began = raw.now
    while not raw.is_closed:
        raw.wait(20)
        raw.send(KEEPALIVE)
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


def test_repeated_failures_lengthen_the_idle_hold_time() -> None:
    raw = Raw()
    pauses = []
    for _ in range(8):
        raw.to_open_sent()
        raw.send(open_message(asn=65003, capabilities=()))
        assert raw.state == "Idle"
        pauses.append(raw.status.retry_in or 0.0)
        raw.wait(pauses[-1])
        assert raw.state == "Active"
    assert pauses == sorted(pauses)
    assert pauses[0] <= 1.0
    assert pauses[-1] >= 45.0


def test_damping_has_no_pause_after_a_stable_session() -> None:
    raw = at("established")
    for _ in range(10):
        raw.wait(20)
        raw.send(KEEPALIVE)
    raw.drop()
    raw.wait(0)
    assert raw.state == "Active"
    assert raw.status.flaps == 1


def test_f22_a_late_hold_timer_waits_for_unread_octets() -> None:
    raw = at("established")
    raw.now = 1000.0
    raw.give(TimersDue())
    assert raw.state == "Established"
    raw.send(KEEPALIVE)
    raw.wait(60)
    assert raw.state == "Established"


def test_f22_a_peer_that_is_silent_after_a_late_hold_timer_loses_its_session() -> None:
    raw = at("established")
    raw.now = 1000.0
    raw.give(TimersDue())
    raw.wait(2)
    assert raw.state != "Established"
