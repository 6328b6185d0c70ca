"""The next hop of prefixes of the other IP version than the session's address."""

from __future__ import annotations

import pytest

from speaker.api import FamilyStatus, PeerConfig, RouteAttributes
from speaker.iana import IPV4_UNICAST, IPV6_UNICAST, Family
from tests.speaker.network import EXTENDED_NEXT_HOP, Host, Network

A, B = "fd00::1", "fd00::2"
PREFIX = "198.51.100.0/24"
SET = "routes"


def pair(
    interface_address: str | None = None,
    *,
    extended: bool = False,
    families: tuple[Family, ...] = (IPV4_UNICAST, IPV6_UNICAST),
    **settings: object,
) -> tuple[Network, Host, Host]:
    """Return two routers over IPv6; ``extended``: whether the second accepts RFC 8950's form."""
    network = Network()
    a, b = network.host("a", A, 65001), network.host("b", B, 65002, listens=False)
    a.interface_address, b.withheld = interface_address, () if extended else (EXTENDED_NEXT_HOP,)
    given = {"export": "set", "route_set": SET, **settings}
    a.peer(PeerConfig(name="b", address=B, peer_asn=65002, **given))  # type: ignore[arg-type]
    b.peer(PeerConfig(name="a", address=A, peer_asn=65001, import_="all", families=families))
    a.routes({PREFIX: RouteAttributes(), "2001:db8::/32": RouteAttributes()}, SET)
    network.run(2)
    assert a.status().established
    return network, a, b


def ipv4(host: Host) -> FamilyStatus:
    return next(one for one in host.status().families if one.family == IPV4_UNICAST)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"interface_address": "192.0.2.7"}, "192.0.2.7"),
        ({"interface_address": "192.0.2.7", "default_next_hop_ipv4": "192.0.2.1"}, "192.0.2.7"),
        ({"default_next_hop_ipv4": "192.0.2.1"}, "192.0.2.1"),
        ({"interface_address": "192.0.2.7", "next_hop_ipv4": "192.0.2.9"}, "192.0.2.9"),
        ({"interface_address": "192.0.2.7", "extended": True}, A),
        ({"next_hop_ipv4": "192.0.2.9", "extended": True}, "192.0.2.9"),
    ],
)
def test_ipv4_over_ipv6(settings: dict[str, object], expected: str) -> None:
    _, a, b = pair(**settings)  # type: ignore[arg-type]
    assert b.received(IPV4_UNICAST)[PREFIX].next_hop == expected
    assert b.received(IPV6_UNICAST)["2001:db8::/32"].next_hop == A
    family = ipv4(a)
    assert (family.advertised, family.left_out, family.obstacle, family.note) == (1, 0, "", "")


def test_the_routes_of_the_side_that_accepted_the_connection_have_it_too() -> None:
    network = Network()
    a, b = network.host("a", A, 65001), network.host("b", B, 65002)
    a.interface_address, b.withheld = "192.0.2.7", (EXTENDED_NEXT_HOP,)
    a.peer(PeerConfig(name="b", address=B, peer_asn=65002, export="all", passive=True))
    b.peer(PeerConfig(name="a", address=A, peer_asn=65001, import_="all"))
    a.routes({PREFIX: RouteAttributes()})
    network.run(2)
    assert b.received(IPV4_UNICAST)[PREFIX].next_hop == "192.0.2.7"


def test_without_an_ipv4_next_hop_they_are_counted_as_unsent_with_the_reason() -> None:
    network, a, b = pair()
    assert set(b.received(IPV4_UNICAST)) == set()
    assert set(b.received(IPV6_UNICAST)) == {"2001:db8::/32"}
    family = ipv4(a)
    assert (family.advertised, family.left_out, family.obstacle) == (0, 1, "NoNextHop")
    assert "RFC 8950" in family.note
    a.routes({"203.0.113.0/24": RouteAttributes()}, SET)
    network.run(1)
    assert ipv4(a).left_out == 2
    a.routes({"203.0.113.0/24": None, PREFIX: None}, SET)
    network.run(1)
    assert ipv4(a).left_out == 0


def test_a_family_that_the_peer_does_not_support_is_counted_in_the_same_way() -> None:
    _, a, _ = pair(families=(IPV6_UNICAST,))
    family = ipv4(a)
    assert (family.negotiated, family.left_out) == (False, 1)
    assert (family.obstacle, family.note) == (
        "FamilyNotNegotiated",
        "the peer does not support the family",
    )


def test_a_default_that_comes_and_goes_resets_no_session() -> None:
    network, a, b = pair()
    for default in ("192.0.2.1", "192.0.2.2", None):
        a.peer(
            PeerConfig(
                name="b",
                address=B,
                peer_asn=65002,
                export="set",
                route_set=SET,
                default_next_hop_ipv4=default,
            )
        )
        network.run(1)
        routes = b.received(IPV4_UNICAST)
        assert {p: r.next_hop for p, r in routes.items()} == ({PREFIX: default} if default else {})
    assert (b.status().established, b.status().flaps) == (True, 0)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        # An interface has no primary IPv6 address: the configured default goes before.
        ({"interface_address": "fd00:b::1", "default_next_hop_ipv6": "fd00:a::1"}, "fd00:a::1"),
        ({"interface_address": "fd00:b::1"}, "fd00:b::1"),
        ({}, "::ffff:192.0.2.1"),
    ],
)
def test_ipv6_over_ipv4(settings: dict[str, str], expected: str) -> None:
    network = Network()
    a, b = network.host("a", "192.0.2.1", 65001), network.host("b", "192.0.2.2", 65002)
    given = dict(settings)
    a.interface_address = given.pop("interface_address", None)
    a.peer(PeerConfig(name="b", address="192.0.2.2", peer_asn=65002, export="all", **given))  # type: ignore[arg-type]
    b.peer(PeerConfig(name="a", address="192.0.2.1", peer_asn=65001, import_="all"))
    a.routes({"2001:db8::/32": RouteAttributes()})
    network.run(2)
    assert b.received(IPV6_UNICAST)["2001:db8::/32"].next_hop == expected
