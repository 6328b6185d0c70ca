"""Sessions and monitoring stations as items of the API: fields by name, without unknown values."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest
from msgspec.structs import replace

from cells.api.model import FamilyCount, PeerCountItem
from cells.serve.items import INTERNAL, collector_item, peer_count_items, peer_item
from speaker.api import CollectorStatus, FamilyStatus, MessageCounts, PeerCounts, PeerStatus
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST

FAMILY = FamilyStatus(family=IPV4_UNICAST, negotiated=True, received=5, accepted=3, advertised=7)
UP = PeerStatus(
    instance="i",
    name="tor-1",
    address="192.0.2.1",
    interface=None,
    port=179,
    local_address="192.0.2.10",
    local_asn=65000,
    peer_asn=65001,
    state="Established",
    since=1000.7,
    families=(FAMILY,),
    peer_router_id="192.0.2.1",
    hold_time=90,
    keepalive_time=30,
    retry_in=None,
    last_error=None,
    flaps=0,
    messages_received=10,
    sent_by_type=MessageCounts(open=1, update=2, keepalive=8),
    messages_sent=11,
    updates_received=1,
    updates_sent=2,
    queued_octets=4,
    authentication=None,
    graceful_restart_time=120,
    route_set="a",
)


def test_a_session_is_its_fields_by_the_names_of_the_api() -> None:
    assert peer_item("worker-1", UP) == {
        "node": "worker-1",
        "instance": "i",
        "name": "tor-1",
        "address": "192.0.2.1",
        "localASN": 65000,
        "peerASN": 65001,
        "state": "Established",
        "sinceTime": datetime.fromtimestamp(1000, UTC),
        "families": ["ipv4-unicast"],
        "received": [FamilyCount(family="ipv4-unicast", routes=5, accepted=3)],
        "advertised": [FamilyCount(family="ipv4-unicast", routes=7)],
        "peerRouterID": "192.0.2.1",
        "holdSeconds": 90,
        "keepaliveSeconds": 30,
        "messagesReceived": 10,
        "messagesSent": 11,
        "updatesReceived": 1,
        "updatesSent": 2,
        "sentByType": MessageCounts(open=1, update=2, keepalive=8),
        "flaps": 0,
        "queuedOctets": 4,
        "gracefulRestartSeconds": 120,
    }


def test_a_session_that_is_down_has_a_reason_and_no_counts_but_stale_ones() -> None:
    stale = replace(FAMILY, negotiated=False, stale=4, note="4 stale routes are kept for 9s: stale")
    down = replace(
        UP, state="Active", reason="connection refused", retry_in=3.26, families=(stale,)
    )
    item = peer_item("worker-1", down)
    assert item.keys().isdisjoint(("received", "advertised"))
    assert (item["reason"], item["retrySeconds"]) == ("connection refused", 3.3)
    assert item["stale"] == [FamilyCount(family="ipv4-unicast", routes=4, reason=stale.note)]


def test_routes_of_a_family_that_the_session_does_not_carry_are_counted_as_left_out() -> None:
    note = "the peer has not negotiated it"
    other = FamilyStatus(
        family=IPV6_UNICAST,
        negotiated=False,
        received=0,
        accepted=0,
        advertised=0,
        left_out=2,
        note=note,
    )
    item = peer_item("worker-1", replace(UP, families=(FAMILY, other)))
    assert [count.family for count in item["received"]] == ["ipv4-unicast"]
    left_out = FamilyCount(family="ipv6-unicast", routes=0, left_out=2, reason=note)
    assert item["advertised"][1] == left_out


def test_a_new_field_of_the_status_is_a_member_without_another_line() -> None:
    class Later(PeerStatus, frozen=True, kw_only=True, rename="camel"):
        idle_time: float | None = msgspec.field(name="idleSeconds", default=None)
        dead_peers: int = 0

    status = Later(**{name: getattr(UP, name) for name in UP.__struct_fields__}, idle_time=1.26)
    assert peer_item("n", status) == {**peer_item("n", UP), "idleSeconds": 1.3}
    assert peer_item("n", replace(status, dead_peers=1))["deadPeers"] == 1


def test_hidden_fields_are_fields_of_a_session() -> None:
    assert set(UP.__struct_fields__) >= INTERNAL


def test_a_monitoring_station() -> None:
    status = CollectorStatus(
        name="spare",
        address="192.0.2.50",
        port=11019,
        connected=False,
        reason="connection refused",
        since=1000.0,
        synchronized=False,
        retry_in=2.04,
        octets_sent=0,
        queued_octets=0,
        connections=0,
    )
    assert collector_item("192.0.2.9", status) == {
        "node": "192.0.2.9",
        "name": "spare",
        "address": "192.0.2.50",
        "port": 11019,
        "connected": False,
        "reason": "connection refused",
        "sinceTime": datetime.fromtimestamp(1000, UTC),
        "synchronized": False,
        "retrySeconds": 2.0,
        "octetsSent": 0,
        "queuedOctets": 0,
        "connections": 0,
    }


def test_the_fields_of_sessions_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    peer_item("worker-1", UP)
    monkeypatch.setattr(msgspec.structs, "fields", None)
    assert peer_item("worker-1", UP)["name"] == "tor-1"


def test_a_session_that_is_not_established_has_no_counts() -> None:
    counts = PeerCounts(
        instance="i", name="tor-1", received=0, advertised=7, updates_received=0, updates_sent=2
    )
    members = {"node": "n", "instance": "i", "name": "tor-1"}
    members |= {"updatesReceived": 0, "updatesSent": 2}  # type: ignore[dict-item]
    without = replace(counts, received=None, advertised=None)
    up, down = peer_count_items("n", [counts, without])
    assert msgspec.to_builtins(up) == members | {"routesReceived": 0, "routesAdvertised": 7}
    assert msgspec.to_builtins(down) == members
    assert isinstance(up, PeerCountItem)
