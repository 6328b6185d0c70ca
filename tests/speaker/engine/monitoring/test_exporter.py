"""What is told to a monitoring station, message by message, with octets said to the engine by hand."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from speaker.api import (
    BmpCollector,
    CollectorChanged,
    Fault,
    GracefulRestart,
    InstanceConfig,
    InvalidConfig,
    PrefixRule,
    RouteAttributes,
)
from speaker.bmp import (
    Initiation,
    InitiationTlv,
    Message,
    PeerDown,
    PeerDownReason,
    PeerKind,
    PeerUp,
    PeerUpTlv,
    RouteMonitoring,
    Statistic,
    StatisticKind,
    StatisticsReport,
    Termination,
    TerminationReason,
)
from speaker.capability import FourOctetAs, GracefulRestartCapability, Multiprotocol
from speaker.engine.inputs import (
    RemoveInstance,
    ResetPeer,
    SetInstance,
    SetPeer,
    Shutdown,
    UpdateRoutes,
    WallClock,
)
from speaker.iana import IPV4_UNICAST, IPV6_UNICAST, CeaseSubcode, Role
from speaker.message import HEADER_SIZE, KEEPALIVE, Notification, decode_open, frame_message
from speaker.nlri import prefix_to_wire
from speaker.rib.pack import end_of_rib
from tests.speaker.engine.monitoring.collector import (
    ADDRESS,
    EVERYTHING,
    Collector,
    assert_same,
)
from tests.speaker.raw import (
    ATTRIBUTES,
    FAMILIES,
    INSTANCE,
    LOCAL,
    LOCAL_ASN,
    NLRI,
    REMOTE,
    REMOTE_ASN,
    REMOTE_ID,
    Raw,
    open_message,
    update,
)

PRE = BmpCollector(name="c", address=ADDRESS)
UPDATE = update(ATTRIBUTES, NLRI)


def watched(raw: Raw, config: BmpCollector = PRE) -> Collector:
    """Give the engine a station that is connected."""
    collector = Collector(raw.engine, raw.give, config)
    collector.configure()
    collector.accept()
    return collector


def settle(raw: Raw) -> None:
    """Let the engine do all that waits for turns of the loop."""
    while raw.engine.needs_flush:
        raw.give(WallClock(1_700_000_000.0))


def monitored(collector: Collector) -> list[RouteMonitoring]:
    return [m for m in collector.station.messages if isinstance(m, RouteMonitoring)]


def last(collector: Collector) -> Message:
    return collector.station.messages[-1]


# --------------------------------------------------------------- the life of a connection


def test_rfc7854_4_3_the_first_message_says_who_we_are() -> None:
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


def test_a_connection_that_lasted_makes_the_next_pause_short_again() -> None:
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


def test_what_happens_to_a_connection_is_an_event() -> None:
    raw = Raw()
    collector = watched(raw)
    collector.lose()
    events = [event for event in raw.events if isinstance(event, CollectorChanged)]
    assert [(e.name, e.connected, e.reason) for e in events] == [
        ("c", True, ""),
        ("c", False, "connection reset by peer"),
    ]


def test_rfc7854_4_5_a_stopped_speaker_says_so_and_connects_no_more() -> None:
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


def test_rfc7854_4_5_a_station_that_is_configured_no_more_is_told_so() -> None:
    raw = Raw()
    collector = watched(raw)
    collector.configure(replace(PRE, name="other", address="10.99.0.2"))
    end = last(collector)
    assert isinstance(end, Termination)
    assert end.reason == TerminationReason.PERMANENTLY_CLOSED
    assert [status.name for status in raw.engine.collectors(raw.now)] == ["other"]


def test_a_station_that_stays_as_it_was_stays_connected() -> None:
    raw = Raw()
    collector = watched(raw)
    collector.configure()
    assert not collector.closed
    assert len(collector.attempts) == 1


def test_what_a_station_says_is_thrown_away_and_too_much_ends_the_connection() -> None:
    raw = Raw().to_established()
    collector = watched(raw)
    collector.talk(60_000)
    assert not collector.aborted
    collector.talk(60_000)
    assert collector.aborted == [collector.number]
    assert raw.status.established


def test_without_stations_nobody_looks_on() -> None:
    raw = Raw().to_established()
    instance = raw.engine.instance(INSTANCE)
    assert instance.observer is None
    collector = watched(raw)
    assert instance.observer is not None
    collector.configure(replace(PRE, name="other", address="10.99.0.2"))
    raw.give(SetInstance(InstanceConfig(name="j", local_asn=1, router_id="10.0.0.9")))
    assert raw.engine.instance("j").observer is not None


# ------------------------------------------------------------------ stations that are slow


def test_a_station_that_does_not_read_is_disconnected_and_told_everything_anew() -> None:
    raw = Raw().to_established()
    collector = watched(raw, replace(EVERYTHING, queue_limit=100_000))
    raw.say(UPDATE)
    collector.wait_queue(100_001)
    assert collector.aborted == [collector.number]
    (status,) = raw.engine.collectors(raw.now)
    assert status.reason == "the station does not read: 100001 octets were waiting"
    assert raw.status.established
    sent = collector.octets
    raw.say(update(ATTRIBUTES, bytes.fromhex("180a0200")))
    assert collector.octets == sent
    raw.wait(31.0)
    raw.say(KEEPALIVE)
    collector.accept()
    settle(raw)
    assert_same(collector.station, raw.engine.instance(INSTANCE))
    assert len(collector.station.of(REMOTE).pre_policy.routes[IPV4_UNICAST]) == 2
    (status,) = raw.engine.collectors(raw.now)
    assert status.connections == 2
    assert status.synchronized


def test_a_station_that_stands_still_is_disconnected() -> None:
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


def test_tables_are_told_in_slices_and_wait_for_a_station_to_read() -> None:
    raw = Raw().to_established()
    for n in range(40):
        nlri = b"".join(bytes((24, 10, n, i)) for i in range(200))
        raw.say(update(ATTRIBUTES, nlri))
    collector = Collector(raw.engine, raw.engine_only, PRE)
    collector.configure()
    collector.accept()
    before = collector.octets
    collector.wait_queue(300_000)
    assert not raw.engine.needs_flush
    assert collector.octets == before
    collector.wait_queue(0)
    slices = 0
    while raw.engine.needs_flush:
        raw.flush()
        slices += 1
    assert slices >= 8
    assert len(collector.station.of(REMOTE).pre_policy.routes[IPV4_UNICAST]) == 8000


def test_an_error_of_ours_costs_connections_to_stations_and_no_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raw = Raw().to_established()
    collector = watched(raw)

    def broken(*_: object) -> bytes:
        raise ZeroDivisionError("a mistake")

    with monkeypatch.context() as patch:
        patch.setattr("speaker.engine.monitoring.subjects.Session.monitored", broken)
        raw.say(UPDATE)
    (fault,) = [event for event in raw.events if isinstance(event, Fault)]
    assert fault.error == "ZeroDivisionError: a mistake"
    assert "usual_received" in fault.where
    assert collector.aborted == [collector.number]
    assert raw.status.established
    raw.wait(31.0)
    collector.accept()
    settle(raw)
    assert collector.station.of(REMOTE).pre_policy.routes[IPV4_UNICAST]


# ------------------------------------------------------------------------ peers up and down


def test_rfc7854_4_10_peer_up_has_both_opens_as_they_went_over_the_wire() -> None:
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


def test_a_station_that_comes_late_is_told_who_is_up() -> None:
    raw = Raw().to_established()
    collector = watched(raw)
    assert isinstance(collector.station.messages[1], PeerUp)


def down(collector: Collector) -> PeerDown:
    message = last(collector)
    assert isinstance(message, PeerDown)
    return message


def test_rfc7854_4_9_reason_1_our_notification_follows() -> None:
    raw = Raw().to_established()
    collector = watched(raw)
    raw.give(ResetPeer(INSTANCE, "p", "new cable"))
    message = down(collector)
    assert message.reason == PeerDownReason.LOCAL_NOTIFICATION
    body = message.notification[HEADER_SIZE:]
    assert str(Notification.decode(body)) == "Cease / Administrative Reset: 'new cable'"


def test_rfc7854_4_9_reason_2_we_closed_without_a_word() -> None:
    raw = Raw(graceful_restart=None).to_established()
    collector = watched(raw)
    raw.engine.instance(INSTANCE).peer("p").stop(
        Notification.cease(CeaseSubcode.ADMINISTRATIVE_SHUTDOWN), silent=True
    )
    raw.give(WallClock(0.0))
    message = down(collector)
    assert (message.reason, message.event) == (PeerDownReason.LOCAL_EVENT, 2)


def test_rfc7854_4_9_reason_3_their_notification_follows() -> None:
    raw = Raw().to_established()
    collector = watched(raw)
    notification = Notification(6, 4, b"\x02hi")
    raw.say(notification.encode())
    message = down(collector)
    assert message.reason == PeerDownReason.REMOTE_NOTIFICATION
    assert message.notification == notification.encode()


def test_rfc7854_4_9_reason_4_they_closed_without_a_word() -> None:
    raw = Raw().to_established()
    collector = watched(raw)
    raw.drop()
    assert down(collector).reason == PeerDownReason.REMOTE_CLOSED


def test_a_notification_of_an_earlier_session_is_not_told_again() -> None:
    raw = Raw(idle_hold_time=0).to_established()
    collector = watched(raw)
    raw.say(Notification(6, 4).encode())
    raw.wait(5.0)
    raw.to_established()
    raw.drop()
    assert down(collector).reason == PeerDownReason.REMOTE_CLOSED


def test_peers_that_bmp_cannot_tell_apart_get_distinguishers() -> None:
    raw = Raw().to_established()
    config = raw.engine.instance(INSTANCE).peer("p").config
    raw.give(SetPeer(INSTANCE, replace(config, name="q", port=1790)))
    raw.connect()
    raw.say(open_message())
    raw.say(KEEPALIVE)
    collector = watched(raw)
    peers = [m.peer for m in collector.station.messages if isinstance(m, PeerUp)]
    assert [peer.kind for peer in peers] == [PeerKind.GLOBAL, PeerKind.LOCAL]
    assert [peer.address for peer in peers] == [bytes((10, 0, 0, 2))] * 2
    assert peers[1].distinguisher


# ----------------------------------------------------------------------------------- routes


def test_rfc7854_5_an_update_is_passed_on_with_its_octets() -> None:
    raw = Raw().to_established()
    collector = watched(raw)
    settle(raw)
    raw.now = 3.25
    # Long attribute lengths where short ones would do: nobody would write it like that again.
    odd = update(bytes.fromhex("500100010040020602010000fdea4003040a000002"), NLRI)
    raw.say(odd)
    message = last(collector)
    assert isinstance(message, RouteMonitoring)
    assert message.update == odd
    assert message.peer.time == 1_700_000_003_250_000


def test_rfc7854_5_a_table_ends_with_end_of_rib_for_each_family() -> None:
    raw = Raw().to_established()
    raw.say(UPDATE)
    collector = watched(raw)
    settle(raw)
    (route, *ends) = monitored(collector)
    assert route.update == UPDATE
    assert route.peer.time == 0
    assert [end.update for end in ends] == [end_of_rib(IPV4_UNICAST), end_of_rib(IPV6_UNICAST)]


def test_rfc7854_4_2_the_l_flag_is_for_what_policy_leaves() -> None:
    raw = Raw(import_=(PrefixRule("10.2.0.0/16", le=32),)).to_established()
    collector = watched(raw, replace(PRE, monitor=("pre-policy", "post-policy")))
    settle(raw)
    raw.say(update(ATTRIBUTES, NLRI + bytes.fromhex("180a0200")))
    told = collector.station.of(REMOTE)
    assert set(told.pre_policy.routes[IPV4_UNICAST]) == {NLRI, bytes.fromhex("180a0200")}
    assert set(told.post_policy.routes[IPV4_UNICAST]) == {bytes.fromhex("180a0200")}


def test_another_import_policy_is_told_as_differences() -> None:
    raw = Raw(import_="none").to_established()
    raw.say(UPDATE)
    collector = watched(raw, replace(PRE, monitor=("post-policy",)))
    settle(raw)
    told = collector.station.of(REMOTE).post_policy.routes
    assert not told.get(IPV4_UNICAST)
    config = raw.engine.instance(INSTANCE).peer("p").config
    raw.give(SetPeer(INSTANCE, replace(config, import_="all")))
    settle(raw)
    assert set(told[IPV4_UNICAST]) == {NLRI}
    raw.give(SetPeer(INSTANCE, replace(config, import_="none")))
    settle(raw)
    assert not told[IPV4_UNICAST]


def test_rfc7854_4_2_the_a_flag_is_for_two_octets_per_as() -> None:
    raw = Raw()
    collector = watched(raw, replace(PRE, monitor=("pre-policy", "post-policy")))
    raw.to_established(open_message(capabilities=FAMILIES[:2]))
    # AS_PATH 65002 23456, AS4_PATH 65002 70000.
    two = bytes.fromhex("400101004002060202fdea5ba04003040a000002c0110a02020000fdea00011170")
    raw.say(update(two, NLRI))
    assert all(message.peer.legacy_as_path for message in monitored(collector))
    assert monitored(collector)[0].update == update(two, NLRI)
    # The same when it is told as a table.
    collector.lose()
    raw.wait(31.0)
    raw.say(KEEPALIVE)
    collector.accept()
    settle(raw)
    told = collector.station.of(REMOTE)
    (path,) = raw.engine.instance(INSTANCE).telling.loc.tables[IPV4_UNICAST].paths(NLRI)
    assert told.pre_policy.routes[IPV4_UNICAST][NLRI] == path.attributes
    assert path.attributes.as_path[0][1] == (65002, 70000)


def test_rfc7606_what_is_taken_for_a_withdrawal_is_told_as_one() -> None:
    raw = Raw().to_established()
    collector = watched(raw)
    raw.say(UPDATE)
    bad = bytes.fromhex("40010107") + ATTRIBUTES[4:]
    raw.say(update(bad, NLRI))
    told = collector.station.of(REMOTE).pre_policy.routes
    assert not told[IPV4_UNICAST]
    message = last(collector)
    assert isinstance(message, RouteMonitoring)
    assert message.update == update(b"", withdrawn=NLRI)


def test_routes_of_a_family_that_is_not_spoken_are_not_told() -> None:
    raw = Raw(families=(IPV4_UNICAST,)).to_established()
    collector = watched(raw)
    settle(raw)
    mp = bytes.fromhex("900e001a0002011020010db8000000000000000000000001002020010db8")
    raw.say(update(ATTRIBUTES + mp, NLRI))
    assert set(collector.station.of(REMOTE).pre_policy.routes) == {IPV4_UNICAST}


def test_rfc4724_4_2_routes_kept_over_a_restart_are_told_and_taken_back() -> None:
    families = tuple((family, True) for family in (IPV4_UNICAST, IPV6_UNICAST))
    restart = GracefulRestartCapability(120, restarting=True, notification=True, families=families)
    opened = open_message(capabilities=(*FAMILIES, restart))
    other = bytes.fromhex("180a0200")
    raw = Raw(graceful_restart=GracefulRestart()).to_established(opened)
    collector = watched(raw)
    settle(raw)
    raw.say(update(ATTRIBUTES, NLRI + other))
    raw.drop()
    assert not collector.station.monitored
    raw.wait(1.0)
    raw.to_established(opened)
    settle(raw)
    told = collector.station.of(REMOTE).pre_policy
    assert set(told.routes[IPV4_UNICAST]) == {NLRI, other}
    assert not told.ended
    raw.say(UPDATE)
    raw.say(end_of_rib(IPV4_UNICAST))
    assert set(told.routes[IPV4_UNICAST]) == {NLRI}
    assert told.ended == {IPV4_UNICAST}


def test_rfc9234_5_with_a_role_routes_are_told_as_they_are_held() -> None:
    raw = Raw(role=Role.CUSTOMER).to_established()
    collector = watched(raw)
    raw.say(UPDATE)
    held = collector.station.of(REMOTE).pre_policy.routes[IPV4_UNICAST][NLRI]
    assert held.otc == REMOTE_ASN


# ---------------------------------------------------------------------------------- Loc-RIB


def originate(raw: Raw, *prefixes: str) -> None:
    raw.give(
        UpdateRoutes(
            INSTANCE,
            None,
            {IPV4_UNICAST: {prefix_to_wire(prefix)[1]: RouteAttributes() for prefix in prefixes}},
        )
    )


def test_rfc9069_5_the_loc_rib_is_a_peer_with_a_name_and_no_address() -> None:
    raw = Raw()
    collector = watched(raw, replace(PRE, monitor=("loc-rib",)))
    up = collector.station.messages[1]
    assert isinstance(up, PeerUp)
    assert up.peer.kind == PeerKind.LOC_RIB
    assert (up.peer.asn, up.peer.distinguisher, up.peer.filtered) == (LOCAL_ASN, 0, False)
    assert {tlv.type: tlv.text for tlv in up.information} == {PeerUpTlv.TABLE_NAME: "global"}
    opened = decode_open(up.sent_open[HEADER_SIZE:])
    assert up.received_open == up.sent_open
    assert FourOctetAs(LOCAL_ASN) in opened.capabilities
    assert Multiprotocol(IPV6_UNICAST) in opened.capabilities


def test_rfc9069_a_route_of_our_own_has_the_unspecified_next_hop() -> None:
    raw = Raw()
    collector = watched(raw, replace(PRE, monitor=("loc-rib",)))
    settle(raw)
    originate(raw, "10.1.0.0/24")
    message = last(collector)
    assert isinstance(message, RouteMonitoring)
    assert message.update == update(bytes.fromhex("4001010040020040030400000000"), NLRI)


def test_rfc9069_5_3_a_loc_rib_that_is_gone_is_told_with_its_name() -> None:
    raw = Raw().to_established()
    collector = watched(raw, EVERYTHING)
    raw.give(RemoveInstance(INSTANCE))
    *_, peer, loc_rib = collector.station.messages
    assert isinstance(peer, PeerDown)
    assert isinstance(loc_rib, PeerDown)
    assert loc_rib.reason == PeerDownReason.LOCAL_TLV
    assert [tlv.text for tlv in loc_rib.information] == ["global"]
    assert not collector.station.monitored


def test_another_identity_of_an_instance_is_another_loc_rib() -> None:
    raw = Raw().to_established()
    collector = watched(raw, EVERYTHING)
    originate(raw, "10.9.0.0/16")
    raw.give(SetInstance(InstanceConfig(name=INSTANCE, local_asn=65099, router_id=LOCAL)))
    settle(raw)
    assert collector.station.loc_rib.up.peer.asn == 65099
    assert_same(collector.station, raw.engine.instance(INSTANCE))


def test_a_vrf_has_a_distinguisher_and_its_name() -> None:
    raw = Raw()
    raw.give(SetInstance(InstanceConfig(name="v", local_asn=1, router_id="10.0.0.9", vrf="red")))
    raw.give(SetInstance(InstanceConfig(name="w", local_asn=1, router_id="10.0.0.8")))
    collector = watched(raw, replace(PRE, monitor=("loc-rib",)))
    ups = [m for m in collector.station.messages if isinstance(m, PeerUp)]
    assert [up.information[0].text for up in ups] == ["global", "red", "w"]
    numbers = [up.peer.distinguisher for up in ups]
    assert numbers[0] == 0
    assert len(set(numbers)) == 3


# ------------------------------------------------------------------------------- statistics


def test_rfc7854_4_8_statistics_come_at_the_interval() -> None:
    raw = Raw(
        hold_time=0, keepalive_time=0, export="all",
        import_=(PrefixRule("10.1.0.0/16", le=32),),
    )  # fmt: skip
    raw.to_established(open_message(hold_time=0))
    collector = watched(raw, replace(EVERYTHING, statistics_interval=60))
    originate(raw, "10.9.0.0/16")
    raw.say(update(ATTRIBUTES, NLRI + bytes.fromhex("180a0200")))
    # Our own AS in the path; then an ORIGIN that cannot be.
    own = LOCAL_ASN.to_bytes(4, "big").hex()
    loop = bytes.fromhex(f"40010100 40020a02020000fdea{own} 4003040a000002")
    raw.say(update(loop, bytes.fromhex("180a0103")))
    raw.say(update(bytes.fromhex("40010107") + ATTRIBUTES[4:], bytes.fromhex("180a0104180a0105")))
    settle(raw)
    assert collector.station.of(REMOTE).statistics is None
    raw.wait(60.0)
    settle(raw)
    report = collector.station.of(REMOTE).statistics
    assert report is not None
    assert set(report.statistics) == {
        Statistic(StatisticKind.REJECTED_BY_POLICY, 1),
        Statistic(StatisticKind.AS_PATH_LOOPS, 1),
        Statistic(StatisticKind.ORIGINATOR_ID_LOOPS, 0),
        Statistic(StatisticKind.TREATED_AS_WITHDRAW, 1),
        Statistic(StatisticKind.PREFIXES_TREATED_AS_WITHDRAW, 2),
        Statistic(StatisticKind.ADJ_RIB_IN, 3),
        Statistic(StatisticKind.ADJ_RIB_IN_FAMILY, 3, IPV4_UNICAST),
        Statistic(StatisticKind.ADJ_RIB_IN_FAMILY, 0, IPV6_UNICAST),
        Statistic(StatisticKind.ADJ_RIB_OUT_POST_POLICY, 1),
        Statistic(StatisticKind.ADJ_RIB_OUT_POST_POLICY_FAMILY, 1, IPV4_UNICAST),
        Statistic(StatisticKind.ADJ_RIB_OUT_POST_POLICY_FAMILY, 0, IPV6_UNICAST),
    }
    loc_rib = collector.station.loc_rib.statistics
    assert loc_rib is not None
    assert Statistic(StatisticKind.LOC_RIB, 2) in loc_rib.statistics
    assert Statistic(StatisticKind.LOC_RIB_FAMILY, 2, IPV4_UNICAST) in loc_rib.statistics
    reports = [m for m in collector.station.messages if isinstance(m, StatisticsReport)]
    assert len(reports) == 2
    raw.wait(60.0)
    settle(raw)
    reports = [m for m in collector.station.messages if isinstance(m, StatisticsReport)]
    assert len(reports) == 4


def test_no_statistics_with_an_interval_of_zero() -> None:
    raw = Raw(hold_time=0, keepalive_time=0)
    raw.to_established(open_message(hold_time=0))
    collector = watched(raw, replace(PRE, statistics_interval=0))
    raw.wait(1000.0)
    settle(raw)
    assert not any(isinstance(m, StatisticsReport) for m in collector.station.messages)


# ---------------------------------------------------------------------------- configuration


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
def test_settings_that_cannot_be_are_refused(field: str, value: object) -> None:
    with pytest.raises(InvalidConfig, match=f"collector 'c': {field}: "):
        BmpCollector(**{"name": "c", "address": ADDRESS, field: value})  # type: ignore[arg-type]
