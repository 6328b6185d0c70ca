"""A route that cannot be encoded is not advertised: it costs no other route, and no peer its table."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speaker.api import AddPathMode, InvalidConfig, PeerConfig, RouteAttributes, RouteLeftOut
from speaker.iana import IPV4_UNICAST, IPV6_UNICAST
from tests.speaker.network import INSTANCE, Host, Network
from tests.support.examples import examples

A, B, C = "10.0.0.1", "10.0.0.2", "10.0.0.3"
TOO_LONG = RouteAttributes(communities=tuple(range(16_380)))
"""65,520 octets of communities: an extended message has no room for more (RFC 8654)."""
NUMBERS = st.one_of(st.none(), st.integers(-(2**40), 2**40))


def forced(**values: object) -> RouteAttributes:
    """Attributes that the constructor would reject."""
    attributes = RouteAttributes()
    for field, value in values.items():
        msgspec.structs.force_setattr(attributes, field, value)
    return attributes


def hub(network: Network, add_path: AddPathMode = "none") -> Host:
    host = network.host("a", A, 65001)
    for name, address, asn in (("b", B, 65002), ("c", C, 65003)):
        host.peer(
            PeerConfig(
                name=name,
                address=address,
                peer_asn=asn,
                passive=True,
                import_="all",
                export="all",
                add_path=add_path,
            )
        )
    return host


def leaf(network: Network, name: str, address: str, add_path: AddPathMode = "none") -> Host:
    host = network.host(name, address, 65000 + int(address[-1]))
    host.peer(
        PeerConfig(
            name="a", address=A, peer_asn=65001, import_="all", export="all", add_path=add_path
        )
    )
    return host


def counts(host: Host, peer: str) -> tuple[int, int]:
    """Prefixes advertised to a peer, and not advertised."""
    family = next(f for f in host.status(peer).families if f.family == IPV4_UNICAST)
    return family.advertised, family.left_out


def advertised(host: Host, peer: str) -> set[str]:
    return {
        view.prefix for view in host.engine.views.routes_advertised(INSTANCE, peer, IPV4_UNICAST)
    }


def initial_tables(host: Host) -> set[bool]:
    return {status.initial_table_sent for status in host.engine.views.peers(host.network.now)}


@pytest.mark.parametrize("impossible", [forced(med=2**32), forced(origin=256), TOO_LONG])
@pytest.mark.parametrize("before", [True, False])
def test_one_impossible_route_costs_no_peer_its_table(
    impossible: RouteAttributes, before: bool
) -> None:
    network = Network()
    a = hub(network)
    routes = {"10.8.0.0/24": RouteAttributes(), "10.9.0.0/24": impossible}
    if before:
        a.routes(routes)
    b = leaf(network, "b", B)
    network.run(3)
    if not before:
        a.routes(routes)
    network.run(1)
    c = leaf(network, "c", C)
    network.run(3)
    for host, name in ((b, "b"), (c, "c")):
        assert host.status().established
        assert set(host.received(IPV4_UNICAST)) == {"10.8.0.0/24"}
        assert counts(a, name) == (1, 1)
        assert advertised(a, name) == {"10.8.0.0/24"}
    assert initial_tables(a) == {True}


@pytest.mark.parametrize("add_path", ["none", "both"])
def test_a_route_that_becomes_too_long_is_withdrawn_counted_and_reported(
    add_path: AddPathMode,
) -> None:
    network = Network()
    a = hub(network, add_path)
    b = leaf(network, "b", B, add_path)
    network.run(3)
    a.routes({"10.8.0.0/24": RouteAttributes(), "10.9.0.0/24": RouteAttributes(med=1)})
    network.run(1)
    assert counts(a, "b") == (2, 0)
    a.routes({"10.9.0.0/24": TOO_LONG})
    network.run(1)
    assert counts(a, "b") == (1, 1)
    assert advertised(a, "b") == set(b.received(IPV4_UNICAST)) == {"10.8.0.0/24"}
    family = next(f for f in a.status("b").families if f.family == IPV4_UNICAST)
    assert family.note == "they do not fit a message to the peer"
    (report,) = [event for event in a.events if isinstance(event, RouteLeftOut)]
    assert (report.peers, report.prefix, report.count) == (("b",), "10.9.0.0/24", 1)
    assert "a message has at most 65535" in report.reason
    a.routes({"10.9.0.0/24": RouteAttributes(med=2)})
    network.run(1)
    assert counts(a, "b") == (2, 0)
    assert set(b.received(IPV4_UNICAST)) == {"10.8.0.0/24", "10.9.0.0/24"}


def test_left_out_routes_are_gone_from_the_counts_when_they_are_withdrawn() -> None:
    network = Network()
    a = hub(network)
    leaf(network, "b", B)
    a.routes({"10.9.0.0/24": TOO_LONG, "10.10.0.0/24": TOO_LONG})
    network.run(3)
    assert counts(a, "b") == (0, 2)
    a.routes({"10.9.0.0/24": None})
    network.run(1)
    assert counts(a, "b") == (0, 1)
    a.routes({"10.10.0.0/24": None})
    network.run(1)
    assert counts(a, "b") == (0, 0)
    assert a.status("b").families[0].note == ""


def test_each_attribute_of_a_route_is_checked_when_it_is_created() -> None:
    for field, value in (
        ("origin", 3),
        ("origin", -1),
        ("med", 2**32),
        ("med", -1),
        ("local_preference", 2**32),
        ("communities", (2**32,)),
        ("large_communities", ((1, 2, 2**32),)),
        ("large_communities", ((1, 2),)),
        ("extended_communities", (bytes(7),)),
        ("next_hop", "router1"),
        ("next_hop", "0.0.0.0"),
        ("next_hop", "224.0.0.1"),
        ("next_hop", "255.255.255.255"),
        ("next_hop", "::"),
        ("next_hop", "ff02::1"),
        ("next_hop", "::ffff:0.0.0.0"),
        ("next_hop", "fe80::1%eth0"),
    ):
        with pytest.raises(InvalidConfig, match=f"^route: {field}: ") as caught:
            RouteAttributes(**{field: value})  # type: ignore[arg-type]
        assert caught.value.field == field


@settings(max_examples=examples(200), deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["10.9.0.0/24", "10.10.0.0/24", "fd00:9::/48"]),
        st.builds(
            forced,
            origin=st.integers(-1, 300),
            med=NUMBERS,
            local_preference=NUMBERS,
            communities=st.lists(st.integers(-1, 2**33), max_size=3).map(tuple),
            large_communities=st.lists(
                st.tuples(st.integers(-1, 2**33), st.integers(0, 5), st.integers(0, 5)), max_size=2
            ).map(tuple),
            extended_communities=st.lists(st.binary(max_size=12), max_size=2).map(tuple),
            next_hop=st.sampled_from([None, "0.0.0.0", "10.0.0.9", "fe80::1", "ff02::1"]),
        ),
        max_size=3,
    )
)
def test_whatever_the_attributes_every_other_route_arrives_with_end_of_rib(
    impossible: dict[str, RouteAttributes],
) -> None:
    network = Network()
    a = hub(network)
    good = {"10.8.0.0/24": RouteAttributes(), "fd00:8::/48": RouteAttributes(med=7)}
    a.routes({**good, **impossible})
    b = leaf(network, "b", B)
    network.run(3)
    assert b.status().established
    assert "10.8.0.0/24" in b.received(IPV4_UNICAST)
    assert "fd00:8::/48" in b.received(IPV6_UNICAST)
    assert initial_tables(a) >= {True}
    a.routes({**{prefix: RouteAttributes() for prefix in impossible}, **good})
    network.run(1)
    assert set(b.received(IPV4_UNICAST)) | set(b.received(IPV6_UNICAST)) == {*good, *impossible}
