"""Adj-RIB-In in BMP, before and after policy (RFC 7854 section 5)."""

from __future__ import annotations

from msgspec.structs import replace

from speaker.api import GracefulRestart, Match, Policy, PrefixRule, Term
from speaker.bmp import RouteMonitoring
from speaker.capability import GracefulRestartCapability
from speaker.engine.inputs import SetPeer
from speaker.iana import IPV4_UNICAST, IPV6_UNICAST, Role
from speaker.message import KEEPALIVE
from speaker.rib.pack import end_of_rib
from tests.speaker.engine.monitoring.watched import PRE, UPDATE, last, monitored, settle, watched
from tests.speaker.raw import (
    ATTRIBUTES,
    FAMILIES,
    INSTANCE,
    NLRI,
    REMOTE,
    REMOTE_ASN,
    Raw,
    open_message,
    update,
)


def test_rfc7854_5_an_update_is_exported_with_its_octets() -> None:
    raw = Raw().to_established()
    collector = watched(raw)
    settle(raw)
    raw.now = 3.25
    # Extended lengths where short ones suffice: no encoder would produce them again.
    odd = update(bytes.fromhex("500100010040020602010000fdea4003040a000002"), NLRI)
    raw.send(odd)
    message = last(collector)
    assert isinstance(message, RouteMonitoring)
    assert message.update == odd
    assert message.peer.time == 1_700_000_003_250_000


def test_rfc7854_5_a_table_ends_with_end_of_rib_for_each_family() -> None:
    raw = Raw().to_established()
    raw.send(UPDATE)
    collector = watched(raw)
    settle(raw)
    (route, *ends) = monitored(collector)
    assert route.update == UPDATE
    assert route.peer.time == 0
    assert [end.update for end in ends] == [end_of_rib(IPV4_UNICAST), end_of_rib(IPV6_UNICAST)]


def test_rfc7854_4_2_the_l_flag_is_for_routes_after_policy() -> None:
    raw = Raw(import_=(PrefixRule("10.2.0.0/16", le=32),)).to_established()
    collector = watched(raw, replace(PRE, monitor=("pre-policy", "post-policy")))
    settle(raw)
    raw.send(update(ATTRIBUTES, NLRI + bytes.fromhex("180a0200")))
    peer = collector.station.of(REMOTE)
    assert set(peer.pre_policy.routes[IPV4_UNICAST]) == {NLRI, bytes.fromhex("180a0200")}
    assert set(peer.post_policy.routes[IPV4_UNICAST]) == {bytes.fromhex("180a0200")}


def test_another_import_policy_is_exported_as_differences() -> None:
    raw = Raw(import_="none").to_established()
    raw.send(UPDATE)
    collector = watched(raw, replace(PRE, monitor=("post-policy",)))
    settle(raw)
    peer = collector.station.of(REMOTE).post_policy.routes
    assert not peer.get(IPV4_UNICAST)
    config = raw.engine.instance(INSTANCE).peer("p").config
    raw.give(SetPeer(INSTANCE, replace(config, import_="all")))
    settle(raw)
    assert set(peer[IPV4_UNICAST]) == {NLRI}
    raw.give(SetPeer(INSTANCE, replace(config, import_="none")))
    settle(raw)
    assert not peer[IPV4_UNICAST]


def test_rfc7854_4_2_the_a_flag_is_for_two_octets_per_as() -> None:
    raw = Raw()
    collector = watched(raw, replace(PRE, monitor=("pre-policy", "post-policy")))
    raw.to_established(open_message(capabilities=FAMILIES[:2]))
    # AS_PATH 65002 23456, AS4_PATH 65002 70000.
    two = bytes.fromhex("400101004002060202fdea5ba04003040a000002c0110a02020000fdea00011170")
    raw.send(update(two, NLRI))
    assert all(message.peer.legacy_as_path for message in monitored(collector))
    assert monitored(collector)[0].update == update(two, NLRI)
    # The same in a table dump.
    collector.lose()
    raw.wait(31.0)
    raw.send(KEEPALIVE)
    collector.accept()
    settle(raw)
    peer = collector.station.of(REMOTE)
    (path,) = raw.engine.instance(INSTANCE).outbound.loc.tables[IPV4_UNICAST].paths(NLRI)
    assert peer.pre_policy.routes[IPV4_UNICAST][NLRI] == path.attributes
    assert path.attributes.as_path[0][1] == (65002, 70000)


def test_rfc7606_treat_as_withdraw_is_exported_as_a_withdrawal() -> None:
    raw = Raw().to_established()
    collector = watched(raw)
    raw.send(UPDATE)
    bad = bytes.fromhex("40010107") + ATTRIBUTES[4:]
    raw.send(update(bad, NLRI))
    peer = collector.station.of(REMOTE).pre_policy.routes
    assert not peer[IPV4_UNICAST]
    message = last(collector)
    assert isinstance(message, RouteMonitoring)
    assert message.update == update(b"", withdrawn=NLRI)


def test_routes_of_a_family_that_is_not_negotiated_are_not_exported() -> None:
    raw = Raw(families=(IPV4_UNICAST,)).to_established()
    collector = watched(raw)
    settle(raw)
    mp = bytes.fromhex("900e001a0002011020010db8000000000000000000000001002020010db8")
    raw.send(update(ATTRIBUTES + mp, NLRI))
    assert set(collector.station.of(REMOTE).pre_policy.routes) == {IPV4_UNICAST}


def test_rfc4724_4_2_stale_routes_are_exported_and_withdrawn() -> None:
    families = tuple((family, True) for family in (IPV4_UNICAST, IPV6_UNICAST))
    restart = GracefulRestartCapability(120, restarting=True, notification=True, families=families)
    opened = open_message(capabilities=(*FAMILIES, restart))
    other = bytes.fromhex("180a0200")
    raw = Raw(graceful_restart=GracefulRestart()).to_established(opened)
    collector = watched(raw)
    settle(raw)
    raw.send(update(ATTRIBUTES, NLRI + other))
    raw.drop()
    assert not collector.station.monitored
    raw.wait(1.0)
    raw.to_established(opened)
    settle(raw)
    peer = collector.station.of(REMOTE).pre_policy
    assert set(peer.routes[IPV4_UNICAST]) == {NLRI, other}
    assert not peer.ended
    raw.send(UPDATE)
    raw.send(end_of_rib(IPV4_UNICAST))
    assert set(peer.routes[IPV4_UNICAST]) == {NLRI}
    assert peer.ended == {IPV4_UNICAST}


def test_rfc9234_5_with_a_role_routes_are_exported_as_held() -> None:
    raw = Raw(role=Role.CUSTOMER).to_established()
    collector = watched(raw)
    raw.send(UPDATE)
    held = collector.station.of(REMOTE).pre_policy.routes[IPV4_UNICAST][NLRI]
    assert held.otc == REMOTE_ASN


def test_a_route_that_a_new_policy_rejects_is_withdrawn_post_policy() -> None:
    short = Policy(terms=(Term(match=Match(as_path_max=1), action="accept"),))
    raw = Raw(import_=short).to_established()
    collector = watched(raw, replace(PRE, monitor=("pre-policy", "post-policy")))
    settle(raw)
    raw.send(update(ATTRIBUTES, NLRI))
    settle(raw)
    assert collector.station.of(REMOTE).post_policy.routes[IPV4_UNICAST]
    longer = bytes.fromhex("4001010040020a02020000fdea0000fdeb4003040a000002")
    raw.send(update(longer, NLRI))
    settle(raw)
    peer = collector.station.of(REMOTE)
    assert peer.pre_policy.routes[IPV4_UNICAST]
    assert not peer.post_policy.routes[IPV4_UNICAST]
