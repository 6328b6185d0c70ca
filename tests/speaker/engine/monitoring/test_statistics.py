"""Statistics Reports in BMP (RFC 7854 section 4.8)."""

from __future__ import annotations

from msgspec.structs import replace

from speaker.api import PrefixRule
from speaker.bmp import Statistic, StatisticKind, StatisticsReport
from speaker.iana import IPV4_UNICAST, IPV6_UNICAST
from tests.speaker.engine.monitoring.collector import EVERYTHING
from tests.speaker.engine.monitoring.watched import PRE, originate, settle, watched
from tests.speaker.raw import ATTRIBUTES, LOCAL_ASN, NLRI, REMOTE, Raw, open_message, update


def test_rfc7854_4_8_statistics_are_sent_at_the_interval() -> None:
    raw = Raw(
        hold_time=0, keepalive_time=0, export="all",
        import_=(PrefixRule("10.1.0.0/16", le=32),),
    )  # fmt: skip
    raw.to_established(open_message(hold_time=0))
    collector = watched(raw, replace(EVERYTHING, statistics_interval=60))
    originate(raw, "10.9.0.0/16")
    raw.send(update(ATTRIBUTES, NLRI + bytes.fromhex("180a0200")))
    # Our own AS in the path; then an ORIGIN that cannot be.
    own = LOCAL_ASN.to_bytes(4, "big").hex()
    loop = bytes.fromhex(f"40010100 40020a02020000fdea{own} 4003040a000002")
    raw.send(update(loop, bytes.fromhex("180a0103")))
    raw.send(update(bytes.fromhex("40010107") + ATTRIBUTES[4:], bytes.fromhex("180a0104180a0105")))
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


def test_an_interval_of_zero_sends_no_statistics() -> None:
    raw = Raw(hold_time=0, keepalive_time=0)
    raw.to_established(open_message(hold_time=0))
    collector = watched(raw, replace(PRE, statistics_interval=0))
    raw.wait(1000.0)
    settle(raw)
    assert not any(isinstance(m, StatisticsReport) for m in collector.station.messages)
