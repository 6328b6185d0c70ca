"""The Loc-RIB in BMP (RFC 9069)."""

from __future__ import annotations

from msgspec.structs import replace

from speaker.api import InstanceConfig
from speaker.bmp import PeerDown, PeerDownReason, PeerKind, PeerUp, PeerUpTlv, RouteMonitoring
from speaker.capability import FourOctetAs, Multiprotocol
from speaker.engine.inputs import RemoveInstance, SetInstance
from speaker.iana import IPV6_UNICAST
from speaker.message import HEADER_SIZE, decode_open
from tests.speaker.engine.monitoring.collector import EVERYTHING, assert_same
from tests.speaker.engine.monitoring.watched import PRE, last, originate, settle, watched
from tests.speaker.raw import INSTANCE, LOCAL, LOCAL_ASN, NLRI, Raw, update


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


def test_rfc9069_a_local_route_has_the_unspecified_next_hop() -> None:
    raw = Raw()
    collector = watched(raw, replace(PRE, monitor=("loc-rib",)))
    settle(raw)
    originate(raw, "10.1.0.0/24")
    message = last(collector)
    assert isinstance(message, RouteMonitoring)
    assert message.update == update(bytes.fromhex("4001010040020040030400000000"), NLRI)


def test_rfc9069_5_3_a_removed_loc_rib_is_reported_with_its_name() -> None:
    raw = Raw().to_established()
    collector = watched(raw, EVERYTHING)
    raw.give(RemoveInstance(INSTANCE))
    *_, peer, loc_rib = collector.station.messages
    assert isinstance(peer, PeerDown)
    assert isinstance(loc_rib, PeerDown)
    assert loc_rib.reason == PeerDownReason.LOCAL_TLV
    assert [tlv.text for tlv in loc_rib.information] == ["global"]
    assert not collector.station.monitored


def test_a_recreated_instance_has_another_loc_rib() -> None:
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
