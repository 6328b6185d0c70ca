"""The values of best paths: what forwarding needs of a path, made from a Loc-RIB."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest
from msgspec.structs import replace

from speaker.api import BestPath, InstanceConfig, InstanceImport, PeerConfig, RouteAttributes
from speaker.attribute import (
    AS_SEQUENCE,
    AttributeFastPath,
    PathAttributes,
    Segment,
    encode_attribute,
    encode_attributes,
)
from speaker.engine.inputs import SetInstance, UpdateRoutes
from speaker.engine.path_sets import PathSets
from speaker.iana import WELL_KNOWN_COMMUNITIES, AttributeType
from speaker.negotiated import Negotiated
from speaker.nlri import prefix_to_wire
from speaker.rib.path import Path, Source
from tests.speaker.network import INSTANCE, Host, Network

GLOBAL = ipaddress.ip_address("2001:db8::1").packed
LINK_LOCAL = ipaddress.ip_address("fe80::1").packed
PEER = Source("p", address=b"\x0a\0\0\x01")


def best_path(path: Path, instance: str) -> BestPath:
    """The value of one path."""
    (found,) = PathSets().single(path, instance).paths
    return found


@pytest.mark.parametrize(
    ("announced", "next_hop", "link_local"),
    [
        (b"\xc0\0\x02\x01", b"\xc0\0\x02\x01", b""),
        (GLOBAL, GLOBAL, b""),
        (GLOBAL + LINK_LOCAL, GLOBAL, LINK_LOCAL),
        (LINK_LOCAL, b"", LINK_LOCAL),
        (b"", b"", b""),
    ],
    ids=[
        "IPv4",
        "IPv6, also of IPv4 prefixes (RFC 8950)",
        "RFC 2545 3",
        "link-local alone",
        "none",
    ],
)
def test_rfc2545_3_the_link_local_next_hop_is_apart_from_the_global_one(
    announced: bytes, next_hop: bytes, link_local: bytes
) -> None:
    found = best_path(Path(PathAttributes(next_hop=announced), PEER), "i")
    assert (found.next_hop, found.link_local) == (next_hop, link_local)


def test_rfc7999_communities_are_there() -> None:
    blackhole = WELL_KNOWN_COMMUNITIES["blackhole"]
    found = best_path(Path(PathAttributes(communities=(blackhole, 7)), PEER), "i")
    assert found.communities == (blackhole, 7)


def test_paths_that_forward_alike_are_one_and_equal_sets_one_object() -> None:
    sets = PathSets()
    one, same = (Path(PathAttributes(med=med, next_hop=b"\x0a\0\0\1"), PEER) for med in (1, 2))
    other = Path(PathAttributes(next_hop=b"\x0a\0\0\2"), PEER)
    assert sets.single(one, "i") is sets.single(same, "i")
    both = sets.several((one, other, same), "i")
    assert [path.next_hop for path in both.paths] == [b"\x0a\0\0\1", b"\x0a\0\0\2"]
    assert sets.several((same, other), "i") is both
    assert sets.several((one, same), "i") is sets.single(one, "i")


def test_attributes_that_are_not_decoded_have_the_same_value_and_remain_as_they_are() -> None:
    """A table of attributes that took the fast path keeps its size."""
    session = Negotiated(local_asn=65000, peer_asn=65001)
    attributes = PathAttributes(
        as_path=(Segment(AS_SEQUENCE, (65001, 3)),),
        next_hop=b"\xc0\0\x02\x01",
        med=5,
        communities=(WELL_KNOWN_COMMUNITIES["blackhole"], 7),
        large_communities=((1, 2, 3),),
    )
    for decoded in (attributes, replace(attributes, communities=(), med=None)):
        before, behind = encode_attributes(decoded, as4=True)
        octets = before + encode_attribute(0x40, AttributeType.NEXT_HOP, decoded.next_hop) + behind
        assert AttributeFastPath(session).match_next_hop(octets) is not None
        path = Path(None, PEER, None, 0, octets)
        assert best_path(path, "i") == best_path(Path(decoded, PEER), "i")
        assert path.encoded == octets


# ------------------------------------------------------------------------- sessions


def value(host: Host, prefix: str = "10.8.0.0/16", instance: str = INSTANCE) -> BestPath:
    family, nlri = prefix_to_wire(prefix)
    path = host.engine.instance(instance).outbound.loc.table(family).best(nlri)
    assert path is not None
    return best_path(path, instance)


def received(
    settings: dict[str, Any], asn: int, peer: str = "10.0.0.2", prefix: str = "10.8.0.0/16"
) -> BestPath:
    """The value of a route of the only peer."""
    network = Network()
    own = "10.0.0.1" if "." in peer else peer.replace("::2", "::1")
    one, other = network.host("one", own, 65001), network.host("other", peer, asn)
    one.peer(PeerConfig(name="p", address=peer, peer_asn=asn, import_="all", **settings))
    other.peer(PeerConfig(name="q", address=own, peer_asn=65001, export="all", **settings))
    other.routes({prefix: RouteAttributes()})
    network.run(10)
    return value(one, prefix)


def test_a_path_names_its_peer_and_whether_it_is_a_neighbour_of_a_link() -> None:
    found = received({}, 65002)
    assert (found.peer, found.address, found.instance) == ("p", "10.0.0.2", INSTANCE)
    assert found.direct
    assert (found.local, found.imported, found.interface) == (False, False, None)


@pytest.mark.parametrize(
    ("asn", "settings", "direct"),
    [
        (65002, {}, True),
        (65002, {"ttl_security": 1}, True),
        (65002, {"ttl_security": 2}, False),
        (65002, {"ebgp_multihop": 2}, False),
        (65001, {}, False),
    ],
    ids=["eBGP", "RFC 5082, one hop", "RFC 5082, two hops", "eBGP multihop", "iBGP"],
)
def test_rfc4271_5_1_3_a_session_of_one_hop_is_direct(
    asn: int, settings: dict[str, Any], *, direct: bool
) -> None:
    assert received(settings, asn).direct is direct


def test_a_link_local_session_has_its_interface() -> None:
    found = received({}, 65001, "fe80::2%eth7", "2001:db8:8::/48")
    assert (found.address, found.interface, found.direct) == ("fe80::2", "eth7", True)


def test_a_local_route_has_no_peer_and_an_imported_one_its_instance() -> None:
    network = Network()
    host, other = network.host("one", "10.0.0.1", 65001), network.host("other", "10.0.0.2", 65002)
    host.peer(PeerConfig(name="p", address="10.0.0.2", peer_asn=65002, import_="all"))
    other.peer(PeerConfig(name="q", address="10.0.0.1", peer_asn=65001, export="all"))
    other.routes({"10.8.0.0/16": RouteAttributes()})
    family, nlri = prefix_to_wire("10.9.0.0/16")
    host.give(UpdateRoutes(INSTANCE, None, {family: {nlri: RouteAttributes()}}))
    host.give(
        SetInstance(
            InstanceConfig(
                name="red",
                local_asn=65001,
                router_id="192.0.2.9",
                imports=(InstanceImport(INSTANCE),),
            )
        )
    )
    network.run(10)
    own = value(host, "10.9.0.0/16")
    assert (own.local, own.imported, own.peer, own.address) == (True, False, None, None)
    announced = value(host, "10.8.0.0/16", "red")
    assert (announced.peer, announced.instance, announced.imported) == ("p", INSTANCE, True)
    assert announced.direct
    originated = value(host, "10.9.0.0/16", "red")
    assert (originated.local, originated.instance, originated.imported) == (True, INSTANCE, True)
