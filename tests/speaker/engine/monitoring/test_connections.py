"""The connection to a monitoring station: opened, retried, closed where it is slow, and ended."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from speaker.api import BmpCollector, CollectorChanged, Fault, InstanceConfig, InvalidConfig
from speaker.bmp import Initiation, InitiationTlv, PeerDown, Termination, TerminationReason
from speaker.engine.inputs import SetInstance, Shutdown
from speaker.iana import IPV4_UNICAST
from speaker.message import KEEPALIVE
from tests.speaker.engine.monitoring.collector import ADDRESS, EVERYTHING, Collector, assert_same
from tests.speaker.engine.monitoring.watched import PRE, UPDATE, last, settle, watched
from tests.speaker.raw import ATTRIBUTES, INSTANCE, REMOTE, Raw, open_message, update


def test_rfc7854_4_3_the_first_message_is_initiation() -> None:
    config = replace(PRE, system_name="r1", system_description="a router")
    collector = watched(Raw(), config)
    (first, *_) = collector.station.messages
    assert isinstance(first, Initiation)
    assert {tlv.type: tlv.text for tlv in first.information} == {
        InitiationTlv.SYSTEM_NAME: "r1",
        InitiationTlv.SYSTEM_DESCRIPTION: "a router",
    }


@pytest.mark.parametrize(
    ("failures", "least", "most"), [(1, 22.5, 30), (2, 45, 60), (5, 360, 480), (9, 540, 720)]
)
def test_rfc7854_3_2_the_pause_doubles_from_30_to_720_seconds(
    failures: int, least: float, most: float
) -> None:
    raw = Raw()
    collector = Collector(raw.engine, raw.give, PRE)
    collector.configure()
    for _ in range(failures - 1):
        collector.refuse()
        raw.wait(720.0)
    collector.refuse()
    before = raw.now
    (status,) = raw.engine.collectors(raw.now)
    assert status.retry_in is not None
    assert least <= status.retry_in <= most
    raw.wait(status.retry_in + 0.001)
    assert before + least <= collector.attempts[-1][0] <= before + most


def test_a_stable_connection_resets_the_retry_backoff() -> None:
    raw = Raw()
    collector = Collector(raw.engine, raw.give, PRE)
    collector.configure()
    for _ in range(5):
        collector.refuse()
        raw.wait(720.0)
    collector.accept()
    collector.lose()
    (status,) = raw.engine.collectors(raw.now)
    assert status.retry_in is not None
    assert status.retry_in > 400
    raw.wait(720.0)
    collector.accept()
    raw.wait(61.0)
    collector.lose()
    (status,) = raw.engine.collectors(raw.now)
    assert status.retry_in is not None
    assert status.retry_in <= 30
    assert status.reason == "connection reset by peer"
    assert not status.connected


def test_a_change_of_a_stations_connection_is_an_event() -> None:
    raw = Raw()
    collector = watched(raw)
    collector.lose()
    events = [event for event in raw.events if isinstance(event, CollectorChanged)]
    assert [(e.name, e.connected, e.reason) for e in events] == [
        ("c", True, ""),
        ("c", False, "connection reset by peer"),
    ]


def test_rfc7854_4_5_a_stopped_speaker_sends_termination_and_does_not_reconnect() -> None:
    raw = Raw().to_established()
    collector = watched(raw)
    raw.give(Shutdown())
    *_, down, end = collector.station.messages
    assert isinstance(down, PeerDown)
    assert isinstance(end, Termination)
    assert end.reason == TerminationReason.ADMINISTRATIVELY_CLOSED
    assert collector.closed == [collector.number]
    raw.wait(1000.0)
    assert len(collector.attempts) == 1


def test_rfc7854_4_5_a_removed_station_gets_termination() -> None:
    raw = Raw()
    collector = watched(raw)
    collector.configure(replace(PRE, name="other", address="10.99.0.2"))
    end = last(collector)
    assert isinstance(end, Termination)
    assert end.reason == TerminationReason.PERMANENTLY_CLOSED
    assert [status.name for status in raw.engine.collectors(raw.now)] == ["other"]


def test_an_unchanged_station_stays_connected() -> None:
    raw = Raw()
    collector = watched(raw)
    collector.configure()
    assert not collector.closed
    assert len(collector.attempts) == 1


def test_octets_of_a_station_are_discarded_and_too_many_end_the_connection() -> None:
    raw = Raw().to_established()
    collector = watched(raw)
    collector.talk(60_000)
    assert not collector.aborted
    collector.talk(60_000)
    assert collector.aborted == [collector.number]
    assert raw.status.established


def test_without_stations_there_is_no_observer() -> None:
    raw = Raw().to_established()
    slot = raw.engine._slot
    assert slot.observer is None
    collector = watched(raw)
    assert slot.observer is not None
    collector.configure(replace(PRE, name="other", address="10.99.0.2"))
    raw.give(SetInstance(InstanceConfig(name="j", local_asn=1, router_id="10.0.0.9")))
    assert raw.engine.instance("j")._slot.observer is not None


def test_a_station_that_does_not_read_is_disconnected_and_gets_all_tables_again() -> None:
    raw = Raw().to_established()
    collector = watched(raw, replace(EVERYTHING, queue_limit=100_000))
    raw.send(UPDATE)
    collector.wait_queue(100_001)
    assert collector.aborted == [collector.number]
    (status,) = raw.engine.collectors(raw.now)
    assert status.reason == "the station does not read: 100001 octets were waiting"
    assert raw.status.established
    sent = collector.octets
    raw.send(update(ATTRIBUTES, bytes.fromhex("180a0200")))
    assert collector.octets == sent
    raw.wait(31.0)
    raw.send(KEEPALIVE)
    collector.accept()
    settle(raw)
    assert_same(collector.station, raw.engine.instance(INSTANCE))
    assert len(collector.station.of(REMOTE).pre_policy.routes[IPV4_UNICAST]) == 2
    (status,) = raw.engine.collectors(raw.now)
    assert status.connections == 2
    assert status.synchronized


def test_a_station_that_reads_nothing_is_disconnected() -> None:
    raw = Raw(hold_time=0, keepalive_time=0)
    raw.to_established(open_message(hold_time=0))
    collector = watched(raw)
    collector.wait_queue(500)
    raw.wait(100.0)
    collector.wait_queue(400)
    raw.wait(100.0)
    assert not collector.aborted
    collector.wait_queue(400)
    raw.wait(21.0)
    assert collector.aborted == [collector.number]
    assert raw.status.established


def test_tables_are_exported_in_slices_while_the_station_reads() -> None:
    raw = Raw().to_established()
    for n in range(40):
        nlri = b"".join(bytes((24, 10, n, i)) for i in range(200))
        raw.send(update(ATTRIBUTES, nlri))
    collector = Collector(raw.engine, raw.engine_only, PRE)
    collector.configure()
    collector.accept()
    before = collector.octets
    collector.wait_queue(300_000)
    assert not raw.engine.updates_pending
    assert collector.octets == before
    collector.wait_queue(0)
    slices = 0
    while raw.engine.updates_pending:
        raw.flush()
        slices += 1
    assert slices >= 8
    assert len(collector.station.of(REMOTE).pre_policy.routes[IPV4_UNICAST]) == 8000


def test_an_internal_error_ends_connections_to_stations_and_no_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raw = Raw().to_established()
    collector = watched(raw)

    def broken(*_: object) -> bytes:
        raise ZeroDivisionError("a mistake")

    with monkeypatch.context() as patch:
        patch.setattr(
            "speaker.engine.monitoring.monitored_peers.MonitoredSession.monitored", broken
        )
        raw.send(UPDATE)
    (fault,) = [event for event in raw.events if isinstance(event, Fault)]
    assert fault.error == "ZeroDivisionError: a mistake"
    assert "plain_update_received" in fault.where
    assert collector.aborted == [collector.number]
    assert raw.status.established
    raw.wait(31.0)
    collector.accept()
    settle(raw)
    assert collector.station.of(REMOTE).pre_policy.routes[IPV4_UNICAST]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("address", "collector.example"),
        ("local_address", "nowhere"),
        ("port", 0),
        ("monitor", ("everything",)),
        ("retry_time", 0),
        ("statistics_interval", -1),
        ("queue_limit", 5),
    ],
)
def test_invalid_settings_are_rejected(field: str, value: object) -> None:
    with pytest.raises(InvalidConfig, match=f"collector 'c': {field}: "):
        BmpCollector(**{"name": "c", "address": ADDRESS, field: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("local", [None, "10.99.0.9"])
def test_a_connection_is_opened_from_the_local_address_of_the_station(local: str | None) -> None:
    raw = Raw()
    collector = Collector(raw.engine, raw.give, replace(PRE, local_address=local))
    collector.configure()
    ((_, attempt),) = collector.attempts
    assert (attempt.address, attempt.local_address) == (PRE.address, local)
