"""Rules of sessions: prefix limits, roles, confederations, shutdown communication, DelayOpen."""

from __future__ import annotations

from itertools import chain

import pytest

from speaker.api import (
    Confederation,
    GracefulRestart,
    InstanceConfig,
    MaximumPrefixes,
    PeerAs,
    PeerConfig,
    PeerPrefixLimit,
    PrefixLimit,
    RouteAttributes,
    SessionError,
    StateChanged,
)
from speaker.engine.inputs import EnablePeer, ResetPeer, SetInstance, SetPeer, ShutDownPeer
from speaker.fsm import State
from speaker.iana import IPV4_UNICAST, IPV6_UNICAST, CeaseSubcode, Role
from speaker.message import Notification
from tests.speaker.network import INSTANCE, Host, Network

A, B, C = "10.0.0.1", "10.0.0.2", "10.0.0.3"


def config(name: str, address: str, asn: PeerAs, **changes: object) -> PeerConfig:
    """An open peer."""
    values: dict[str, object] = {"import_": "all", "export": "all", **changes}
    return PeerConfig(name=name, address=address, peer_asn=asn, **values)  # type: ignore[arg-type]


def pair(a: dict[str, object], b: dict[str, object]) -> tuple[Network, Host, Host]:
    """Two routers; what is special about each end."""
    network = Network()
    left, right = network.host("a", A, 65001), network.host("b", B, 65002)
    left.peer(config("b", B, 65002, **a))
    right.peer(config("a", A, 65001, passive=True, **b))
    network.run(5)
    return network, left, right


def entered(host: Host) -> list[str]:
    """The states that the sessions of a router have entered, from the first one on."""
    return [event.new for event in host.events if isinstance(event, StateChanged)]


def prefixes(count: int, octet: int = 8) -> dict[str, RouteAttributes | None]:
    return {f"10.{octet}.{n}.0/24": RouteAttributes() for n in range(count)}


# ------------------------------------------------------------ internal, external


@pytest.mark.parametrize(
    ("peer_asn", "theirs", "ttl"), [("external", 65002, 1), ("internal", 65001, 0), (0, 65001, 1)]
)
def test_an_as_is_learnt_from_the_open(peer_asn: PeerAs, theirs: int, ttl: int) -> None:
    network = Network()
    left, right = network.host("a", A, 65001), network.host("b", B, theirs)
    left.peer(config("b", B, peer_asn))
    assert left.status().peer_asn == (65001 if peer_asn == "internal" else 0)
    right.peer(config("a", A, 65001, passive=True))
    network.run(5)
    assert left.status().established
    assert left.status().peer_asn == theirs
    assert left.status().peer_type == (peer_asn or None)
    assert left.connects[0].ttl == ttl
    # An external path grows by the AS, an internal one does not.
    left.routes({"10.8.0.0/24": RouteAttributes()})
    network.run(1)
    as_path = right.available(IPV4_UNICAST)["10.8.0.0/24"].as_path
    assert as_path == ("" if theirs == 65001 else "65001")


@pytest.mark.parametrize(("peer_asn", "theirs"), [("external", 65001), ("internal", 65002)])
def test_rfc4271_6_2_a_peer_of_the_wrong_class_is_a_bad_peer_as(
    peer_asn: PeerAs, theirs: int
) -> None:
    network = Network()
    left, right = network.host("a", A, 65001), network.host("b", B, theirs)
    left.peer(config("b", B, peer_asn))
    right.peer(config("a", A, 65001, passive=True))
    network.run(5)
    assert not left.status().established
    sent = [e for e in left.events if isinstance(e, SessionError) and e.sent]
    assert (sent[0].code, sent[0].subcode) == (2, 2)
    assert f"peer AS {theirs}, expected" in left.status().reason


def test_an_internal_peer_is_in_the_member_as_of_a_confederation() -> None:
    network = Network()
    left, right = network.host("a", A, 64601), network.host("b", B, 64601)
    for host, router_id in ((left, A), (right, B)):
        host.give(SetInstance(InstanceConfig(
            name=INSTANCE, local_asn=64601, router_id=router_id,
            confederation=Confederation(65000, (64602,)),
        )))  # fmt: skip
    left.peer(config("b", B, "internal"))
    right.peer(config("a", A, "internal", passive=True))
    network.run(5)
    assert left.status().established
    assert (left.status().local_asn, left.status().peer_asn) == (64601, 64601)


# ------------------------------------------------------------ maximum prefixes


def limits(host: Host) -> list[tuple[int, bool]]:
    return [(e.received, e.ended) for e in host.events if isinstance(e, PrefixLimit)]


def test_a_warning_is_reported_once_at_its_threshold() -> None:
    limit = MaximumPrefixes(20, warning_percent=50)
    network, a, b = pair({}, {"maximum_prefixes": (limit,)})
    for count in (9, 10, 15, 20):
        a.routes(prefixes(count))
        network.run(1)
    assert limits(b) == [(10, False)]
    assert b.status().established


def test_rfc4486_4_beyond_the_limit_the_session_ends_with_family_and_limit() -> None:
    network, a, b = pair({}, {"maximum_prefixes": (MaximumPrefixes(20),)})
    a.routes(prefixes(21))
    network.run(0.5)
    assert not b.status().established
    assert b.available(IPV4_UNICAST) == {}
    assert limits(b)[-1] == (21, True)
    (sent,) = [e for e in b.events if isinstance(e, SessionError) and e.sent]
    assert (sent.code, sent.subcode) == (6, 1)
    octets = b.sent()
    assert octets.endswith(bytes.fromhex("06010001 01 00000014".replace(" ", "")))
    assert "the peer sent 21 prefixes of ipv4-unicast, the limit is 20" in b.status().reason


def peer_limits(host: Host) -> list[PeerPrefixLimit]:
    changes = [event for event in host.events if isinstance(event, StateChanged)]
    return [event.peer_limit for event in changes if event.peer_limit is not None]


@pytest.mark.parametrize(
    "settings", [{}, {"graceful_restart": GracefulRestart(60)}], ids=["Cease", "Hard Reset"]
)
def test_rfc4486_4_the_end_of_the_session_has_the_limit_of_the_peer_and_what_it_was_sent(
    settings: dict[str, object],
) -> None:
    network, a, b = pair(settings, {"maximum_prefixes": (MaximumPrefixes(20),), **settings})
    a.routes(prefixes(21))
    network.run(0.5)
    (found,) = peer_limits(a)
    assert (found.family, found.limit) == (IPV4_UNICAST, 20)
    assert dict(found.advertised)[IPV4_UNICAST] == 21
    assert peer_limits(b) == []


def test_rfc4486_4_the_data_is_optional() -> None:
    without = Notification.cease(CeaseSubcode.MAXIMUM_PREFIXES)
    assert without.is_prefix_limit
    assert without.prefix_limit is None
    cut = Notification(6, 1, bytes.fromhex("000101000003"))
    assert (cut.is_prefix_limit, cut.prefix_limit) == (True, None)
    assert Notification(6, 1, bytes.fromhex("00020100000014")).prefix_limit == (2, 1, 20)
    assert not Notification.cease(CeaseSubcode.OUT_OF_RESOURCES).is_prefix_limit


def test_a_peer_beyond_its_limit_stays_down_until_it_is_reset() -> None:
    network, a, b = pair({}, {"maximum_prefixes": (MaximumPrefixes(20),)})
    a.routes(prefixes(21))
    network.run(600)
    assert b.status().state == "Idle"
    assert entered(b).count("Established") == 1
    assert entered(b)[-1] == "Idle"
    a.routes({"10.8.20.0/24": None})
    b.give(ResetPeer(INSTANCE, "a"))
    network.run(120)
    assert b.status().established
    assert len(b.available(IPV4_UNICAST)) == 20


def test_a_peer_beyond_its_limit_starts_again_after_its_time() -> None:
    network, a, b = pair({}, {"maximum_prefixes": (MaximumPrefixes(20, restart_after=60),)})
    a.routes(prefixes(21))
    network.run(1)
    a.routes({"10.8.20.0/24": None})
    network.run(50)
    assert entered(b).count("Established") == 1
    assert not b.status().established
    network.run(120)
    assert b.status().established


def test_a_limit_with_warning_only_keeps_the_session() -> None:
    limit = MaximumPrefixes(20, warning_only=True)
    network, a, b = pair({}, {"maximum_prefixes": (limit,)})
    a.routes(prefixes(30))
    network.run(1)
    assert b.status().established
    assert limits(b) == [(30, False)]


def test_a_family_has_a_limit_of_its_own() -> None:
    mixed = (MaximumPrefixes(5, IPV6_UNICAST), MaximumPrefixes(100))
    network, a, b = pair({"next_hop_ipv6": "fd00::1"}, {"maximum_prefixes": mixed})
    a.routes(prefixes(50))
    network.run(1)
    assert b.status().established
    a.routes({f"fd00:{n}::/48": RouteAttributes() for n in range(6)})
    network.run(1)
    assert not b.status().established


def test_a_changed_limit_does_not_reset_the_session() -> None:
    network, a, b = pair({}, {"maximum_prefixes": (MaximumPrefixes(20),)})
    b.peer(config("a", A, 65001, passive=True, maximum_prefixes=(MaximumPrefixes(50),)))
    a.routes(prefixes(30))
    network.run(1)
    assert b.status().established
    assert b.status().flaps == 0


def test_a_limit_below_the_present_count_applies_at_once() -> None:
    network, a, b = pair({}, {})
    a.routes(prefixes(30))
    network.run(1)
    b.peer(config("a", A, 65001, passive=True, maximum_prefixes=(MaximumPrefixes(20),)))
    network.run(1)
    assert limits(b) == [(30, True)]
    assert b.status().state == "Idle"
    assert "the limit is 20" in b.status().reason


# ------------------------------------------------------------------- RFC 9234

PAIRS = {
    (Role.PROVIDER, Role.CUSTOMER),
    (Role.CUSTOMER, Role.PROVIDER),
    (Role.ROUTE_SERVER, Role.ROUTE_SERVER_CLIENT),
    (Role.ROUTE_SERVER_CLIENT, Role.ROUTE_SERVER),
    (Role.PEER, Role.PEER),
}


@pytest.mark.parametrize("remote", Role)
@pytest.mark.parametrize("local", Role)
def test_rfc9234_4_2_only_corresponding_roles_are_accepted(local: Role, remote: Role) -> None:
    _, a, b = pair({"role": local}, {"role": remote})
    assert a.status().established is b.status().established is ((local, remote) in PAIRS)
    if (local, remote) not in PAIRS:
        errors = {(e.code, e.subcode) for e in a.events + b.events if isinstance(e, SessionError)}
        assert (2, 11) in errors


@pytest.mark.parametrize("strict", [False, True])
def test_rfc9234_4_2_a_peer_without_a_role_is_rejected_in_strict_mode_only(*, strict: bool) -> None:
    _, _, b = pair({}, {"role": Role.PEER, "role_strict": strict})
    assert b.status().established is not strict


def test_no_role_is_offered_within_an_as() -> None:
    network = Network()
    a, b = network.host("a", A, 65001), network.host("b", B, 65001)
    a.peer(config("b", B, 65001, role=Role.CUSTOMER))
    b.peer(config("a", A, 65001, role=Role.CUSTOMER, passive=True))
    network.run(5)
    assert a.status().established


def line(first: Role, second: Role) -> tuple[Network, Host, Host, Host]:
    """A - b - c: what b is to a, and what b is to c."""
    network = Network()
    a, b, c = network.host("a", A, 65001), network.host("b", B, 65002), network.host("c", C, 65003)
    a.peer(config("b", B, 65002))
    # b may be a route server, which leaves the AS path unchanged (RFC 7947).
    c.peer(config("b", B, 65002, enforce_first_as=False))
    b.peer(config("a", A, 65001, passive=True, role=first))
    b.peer(config("c", C, 65003, passive=True, role=second))
    a.routes(prefixes(1))
    network.run(5)
    return network, a, b, c


UP = (Role.CUSTOMER, Role.PEER, Role.ROUTE_SERVER_CLIENT)
"""Roles towards a provider, a peer and a route server."""


@pytest.mark.parametrize("second", Role)
@pytest.mark.parametrize("first", Role)
def test_rfc9234_5_routes_of_a_provider_are_advertised_to_customers_only(
    first: Role, second: Role
) -> None:
    _, _, _, c = line(first, second)
    leaks = first in UP and second in UP
    assert bool(c.available(IPV4_UNICAST)) is not leaks


def otc(host: Host) -> int | None:
    """The mark on the one route."""
    (member,) = host.engine.instance(INSTANCE).established.values()
    ((_, path, _),) = chain.from_iterable(member.adj_in.routes(IPV4_UNICAST, 7))
    return path.attributes.otc


@pytest.mark.parametrize(
    ("first", "second", "mark"),
    [
        (Role.CUSTOMER, Role.PROVIDER, 65001),
        (Role.PEER, Role.PROVIDER, 65001),
        (Role.PROVIDER, Role.PROVIDER, 65002),
        (Role.PROVIDER, Role.PEER, 65002),
        (Role.PROVIDER, Role.CUSTOMER, None),
        (Role.PROVIDER, Role.ROUTE_SERVER, 65002),
    ],
)
def test_rfc9234_5_otc_is_attached_by_role(first: Role, second: Role, mark: int | None) -> None:
    _, _, _, c = line(first, second)
    assert otc(c) == mark


@pytest.mark.parametrize(
    ("role", "used"),
    [
        (Role.PROVIDER, False),
        (Role.ROUTE_SERVER, False),
        (Role.PEER, False),
        (Role.CUSTOMER, True),
        (Role.ROUTE_SERVER_CLIENT, True),
    ],
)
def test_rfc9234_5_a_route_with_otc_from_a_customer_is_a_leak(role: Role, *, used: bool) -> None:
    network = Network()
    a, b, c = network.host("a", A, 65001), network.host("b", B, 65002), network.host("c", C, 65003)
    # a is provider of b, which has no role towards c and so forwards the OTC of a.
    a.peer(config("b", B, 65002, role=Role.PROVIDER))
    b.peer(config("a", A, 65001, passive=True))
    b.peer(config("c", C, 65003, passive=True))
    c.peer(config("b", B, 65002, role=role))
    a.routes(prefixes(1))
    network.run(5)
    assert bool(c.available(IPV4_UNICAST)) is used
    (route,) = c.received(IPV4_UNICAST).values()
    assert used or "route leak" in route.reason


def test_rfc9234_5_an_otc_attribute_with_the_peers_as_is_accepted() -> None:
    _, _, b = pair({"role": Role.PEER}, {"role": Role.PEER})
    network, a, b = pair({"role": Role.PEER}, {"role": Role.PEER})
    a.routes(prefixes(1))
    network.run(1)
    assert set(b.available(IPV4_UNICAST)) == {"10.8.0.0/24"}
    assert otc(b) == 65001


# ------------------------------------------------------------------- RFC 5065


def confederation() -> tuple[Network, Host, Host, Host, Host]:
    """Out (65009) - x (member 64601) - y (member 64602) - z (in y's AS); the outside sees 65000."""
    network = Network()
    inside = Confederation(65000, (64601, 64602))
    hosts = []
    for name, address, asn in (
        ("x", A, 64601),
        ("y", B, 64602),
        ("z", C, 64602),
    ):
        host = network.host(name, address, asn)
        host.give(
            SetInstance(
                InstanceConfig(
                    name=INSTANCE, local_asn=asn, router_id=address, confederation=inside
                )
            )
        )
        hosts.append(host)
    x, y, z = hosts
    out = network.host("out", "10.0.0.9", 65009)
    out.peer(config("x", A, 65000))
    x.peer(config("out", "10.0.0.9", 65009, passive=True))
    x.peer(config("y", B, 64602, passive=True))
    y.peer(config("x", A, 64601))
    y.peer(config("z", C, 64602, passive=True))
    z.peer(config("y", B, 64602))
    network.run(5)
    assert out.status().established
    assert z.status().established
    return network, out, x, y, z


def test_rfc5065_4_the_path_grows_by_member_ases_inside() -> None:
    network, out, x, y, z = confederation()
    out.routes({"10.8.0.0/24": RouteAttributes(med=5)})
    x.routes({"10.9.0.0/24": RouteAttributes(local_preference=150)})
    network.run(2)
    assert y.available(IPV4_UNICAST)["10.8.0.0/24"].as_path == "(64601) 65009"
    assert z.available(IPV4_UNICAST)["10.8.0.0/24"].as_path == "(64601) 65009"
    # LOCAL_PREF and MED cross member ASes, and the next hop stays (section 5.2).
    assert z.available(IPV4_UNICAST)["10.9.0.0/24"].local_preference == 150
    assert z.available(IPV4_UNICAST)["10.8.0.0/24"].med == 5
    assert z.available(IPV4_UNICAST)["10.8.0.0/24"].next_hop == "10.0.0.9"


def test_rfc5065_4_external_peers_see_the_identifier_only() -> None:
    network, out, _, _, z = confederation()
    z.routes({"10.7.0.0/24": RouteAttributes()})
    network.run(2)
    route = out.available(IPV4_UNICAST)["10.7.0.0/24"]
    assert route.as_path == "65000"
    assert route.local_preference is None
    assert out.status().peer_asn == 65000


def test_rfc5065_4_a_path_with_the_own_member_as_is_a_loop() -> None:
    network, _, x, _, z = confederation()
    z.routes({"10.7.0.0/24": RouteAttributes()})
    network.run(2)
    assert x.available(IPV4_UNICAST)["10.7.0.0/24"].as_path == "(64602)"
    # x does not advertise it back to 64602, where it would not be used.
    assert z.received(IPV4_UNICAST) == {}


@pytest.mark.parametrize(
    ("community", "inside", "outside"),
    [(0xFFFFFF01, True, False), (0xFFFFFF03, False, False), (0xFFFFFF02, False, False)],
)
def test_rfc1997_well_known_communities_at_as_and_confederation_borders(
    community: int, *, inside: bool, outside: bool
) -> None:
    network, _, _, y, z = confederation()
    # From z by iBGP to y, which has a border to x inside of the confederation.
    z.routes({"10.7.0.0/24": RouteAttributes(communities=(community,))})
    network.run(2)
    hosts = network.hosts
    if community != 0xFFFFFF02:
        assert set(y.available(IPV4_UNICAST)) == {"10.7.0.0/24"}
    assert bool(hosts[A].available(IPV4_UNICAST)) is inside
    assert bool(hosts["10.0.0.9"].available(IPV4_UNICAST)) is outside


# ---------------------------------------------------- shutdown communication


def test_rfc9003_the_shutdown_communication_reaches_the_peers_status() -> None:
    network, a, b = pair({}, {})
    a.give(ShutDownPeer(INSTANCE, "b", "maintenance until 14:00 \u2603"))
    network.run(300)
    assert "maintenance until 14:00 \u2603" in b.status().reason
    assert a.status().reason == "shut down: maintenance until 14:00 \u2603"
    assert a.status().state == "Idle"
    a.give(EnablePeer(INSTANCE, "b"))
    network.run(150)
    assert a.status().established


def test_rfc9003_a_long_communication_is_cut_between_characters() -> None:
    network, a, b = pair({}, {})
    # 255 octets end within a character of three.
    a.give(ShutDownPeer(INSTANCE, "b", "x" + "\u2603" * 200))
    network.run(1)
    assert "'x" + "\u2603" * 84 + "'" in b.status().reason


def test_a_peer_that_is_shut_down_accepts_no_connection() -> None:
    network, a, b = pair({}, {})
    before = len(entered(b))
    b.give(ShutDownPeer(INSTANCE, "a"))
    network.run(600)
    assert entered(b)[before:] == ["Idle"]
    assert entered(a).count("Established") == 1
    assert b.status().reason == "shut down"
    assert not a.status().established


@pytest.mark.parametrize(
    "change",
    [
        SetInstance(InstanceConfig(name=INSTANCE, local_asn=65001, router_id="192.0.2.9")),
        SetPeer(INSTANCE, config("b", B, "external")),
    ],
    ids=["another router ID", "another AS"],
)
def test_a_peer_that_is_shut_down_stays_so_with(change: SetInstance | SetPeer) -> None:
    """Its session starts again, and an operator has shut it down."""
    network, a, b = pair({}, {})
    a.give(ShutDownPeer(INSTANCE, "b", "maintenance"))
    a.give(change)
    network.run(600)
    assert not b.status().established
    assert a.status().reason == "shut down: maintenance"
    a.give(EnablePeer(INSTANCE, "b"))
    network.run(150)
    assert a.status().established


def test_a_reset_session_starts_again_at_once() -> None:
    network, a, b = pair({}, {})
    a.give(ResetPeer(INSTANCE, "b", "new cable"))
    network.run(0.1)
    assert "Administrative Reset: 'new cable'" in b.status().reason
    network.run(5)
    assert a.status().established


# ------------------------------------------------------------------ DelayOpen


def test_rfc4271_8_1_1_with_delay_open_the_peers_open_is_first() -> None:
    network = Network()
    a, b = network.host("a", A, 65001), network.host("b", B, 65002)
    a.peer(config("b", B, 65002, delay_open_time=30))
    b.peer(config("a", A, 65001, passive=True))
    network.run(5)
    assert a.status().established
    assert b.status().established


def test_rfc4271_8_1_1_the_delay_open_timer_sends_the_open() -> None:
    network = Network()
    a, b = network.host("a", A, 65001), network.host("b", B, 65002)
    a.peer(config("b", B, 65002, delay_open_time=10))
    b.peer(config("a", A, 65001, passive=True, delay_open_time=30))
    network.run(9)
    assert a.status().state == str(State.CONNECT)
    assert b.status().state == str(State.ACTIVE)
    assert not a.writes
    network.run(2)
    assert a.status().established
    assert b.status().established


def test_a_connection_that_is_lost_while_the_open_is_delayed_is_tried_again() -> None:
    network = Network()
    a, b = network.host("a", A, 65001), network.host("b", B, 65002)
    a.peer(config("b", B, 65002, delay_open_time=30))
    b.peer(config("a", A, 65001, passive=True, delay_open_time=60))
    network.run(5)
    for number in list(b.ends):
        network.cut(b, number)
        b.give_closed(number)
    network.run(120)
    assert a.status().established
