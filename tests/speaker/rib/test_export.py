"""Export: eBGP and iBGP rules, communities, next hops."""

from __future__ import annotations

import msgspec
import pytest

from speaker.api import RouteAttributes
from speaker.attribute import AS_SEQUENCE, PathAttributes, Segment, UnknownAttribute
from speaker.iana import IPV4_UNICAST, IPV6_UNICAST, Family, Role
from speaker.rib.export import ExportRules, NextHop, export_attributes, export_next_hop
from speaker.rib.local_routes import LOCAL, LocalPaths
from speaker.rib.path import NEXT_HOP_KEPT, NEXT_HOP_SET, Path, Source

OWN4, OWN6 = bytes((10, 0, 0, 1)), bytes.fromhex("fd00") + bytes(13) + b"\x01"
THEIRS = bytes((10, 0, 0, 9))


def rules(*, ebgp: bool = True, mp4: bool = False) -> ExportRules:
    return ExportRules(
        export="all",
        route_set=None,
        policy=None,
        ebgp=ebgp,
        confederation=False,
        role=None,
        local_asn=65000,
        as4=True,
        max_message=4096,
        long_lived=False,
        families=(IPV4_UNICAST, IPV6_UNICAST),
        add_path=(),
        next_hops=(
            NextHop(IPV4_UNICAST, OWN6 if mp4 else OWN4, mp4),
            NextHop(IPV6_UNICAST, OWN6, mp=True),
        ),
    )


def learnt(*, ebgp: bool = True, **fields: object) -> Path:
    values: dict[str, object] = {
        "as_path": (Segment(AS_SEQUENCE, (65009,)),),
        "next_hop": THEIRS,
        **fields,
    }
    return Path(
        PathAttributes(**values),  # type: ignore[arg-type]
        Source("p", address=THEIRS, router_id=9, ebgp=ebgp),
    )


def local(**fields: object) -> Path:
    return LocalPaths().path(RouteAttributes(**fields))  # type: ignore[arg-type]


def test_to_ebgp_our_as_is_prepended_and_internal_attributes_are_removed() -> None:
    path = learnt(
        ebgp=False,
        local_preference=200,
        med=5,
        originator_id=b"\1\1\1\1",
        cluster_list=(b"\2" * 4,),
    )
    exported = export_attributes(path, rules())
    assert exported.as_path == (Segment(AS_SEQUENCE, (65000, 65009)),)
    assert (exported.local_preference, exported.med) == (None, None)
    assert (exported.originator_id, exported.cluster_list) == (None, ())


def test_the_med_of_originated_routes_is_advertised() -> None:
    assert export_attributes(local(med=5), rules()).med == 5


def test_to_ibgp_the_path_is_unchanged_and_local_pref_is_added() -> None:
    exported = export_attributes(learnt(med=5), rules(ebgp=False))
    assert exported.as_path == (Segment(AS_SEQUENCE, (65009,)),)
    assert (exported.local_preference, exported.med) == (100, 5)
    assert export_attributes(local(local_preference=7), rules(ebgp=False)).local_preference == 7


def test_unknown_transitive_attributes_are_passed_on_with_the_partial_bit() -> None:
    exported = export_attributes(learnt(unknown=(UnknownAttribute(0xC0, 99, b"x"),)), rules())
    assert exported.unknown == (UnknownAttribute(0xE0, 99, b"x"),)


@pytest.mark.parametrize(
    ("community", "to_ebgp", "to_ibgp"),
    [(0xFFFFFF01, False, True), (0xFFFFFF02, False, False), (0xFFFFFF03, False, True),
     (0xFFFFFF04, True, True)],
)  # fmt: skip
def test_well_known_communities_of_received_routes_are_obeyed_rfc_1997(
    community: int, *, to_ebgp: bool, to_ibgp: bool
) -> None:
    path = learnt(communities=(community,))
    assert rules().exports(path) is to_ebgp
    assert rules(ebgp=False).exports(path) is to_ibgp
    # On a route of our own they are meant for the peer.
    assert rules().exports(local(communities=(community,)))


def test_rfc4360_6_non_transitive_extended_communities_stay_in_the_as() -> None:
    """RFC 5701 section 2 has the same for communities with an IPv6 address."""
    everywhere, inside = b"\0\2" + bytes(6), b"\x40\4" + bytes(6)
    path = learnt(
        extended_communities=(inside, everywhere),
        ipv6_extended_communities=(everywhere + bytes(12), inside + bytes(12)),
    )
    exported = export_attributes(path, rules())
    assert exported.extended_communities == (everywhere,)
    assert exported.ipv6_extended_communities == (everywhere + bytes(12),)
    for within in (rules(ebgp=False), msgspec.structs.replace(rules(), confederation=True)):
        assert export_attributes(path, within).extended_communities == (inside, everywhere)
    # Locally configured communities are kept.
    own = Path(PathAttributes(extended_communities=(inside,)), LOCAL)
    assert export_attributes(own, rules()).extended_communities == (inside,)


def test_ibgp_routes_are_not_advertised_to_ibgp_peers() -> None:
    assert not rules(ebgp=False).exports(learnt(ebgp=False))
    assert rules(ebgp=False).exports(learnt(ebgp=True))
    assert rules().exports(learnt(ebgp=False))


def test_next_hops() -> None:
    assert export_next_hop(local(), IPV4_UNICAST, rules()) == OWN4
    assert export_next_hop(local(), IPV4_UNICAST, rules(mp4=True)) == OWN6
    assert export_next_hop(learnt(), IPV4_UNICAST, rules()) == OWN4
    assert export_next_hop(learnt(), IPV4_UNICAST, rules(ebgp=False)) == THEIRS
    assert export_next_hop(local(next_hop="10.7.7.7"), IPV4_UNICAST, rules()) == bytes(
        (10, 7, 7, 7)
    )
    assert export_next_hop(local(next_hop="10.7.7.7"), IPV6_UNICAST, rules()).endswith(
        b"\xff\xff\x0a\x07\x07\x07"
    )
    # NEXT_HOP cannot carry an IPv6 address.
    assert export_next_hop(local(next_hop="fd00::7"), IPV4_UNICAST, rules()) == OWN4


def test_equal_attributes_are_one_path() -> None:
    paths = LocalPaths()
    one = paths.path(RouteAttributes(communities=(1, 1, 2)))
    assert one is paths.path(RouteAttributes(communities=(1, 1, 2)))
    assert one.attributes.communities == (1, 2)


GLOBAL, LINK_LOCAL = (
    bytes.fromhex("20010db8") + bytes(11) + b"\x09",
    b"\xfe\x80" + bytes(13) + b"\x09",
)


@pytest.mark.parametrize("family", [IPV4_UNICAST, IPV6_UNICAST])
def test_rfc2545_3_a_received_link_local_next_hop_stays_on_its_link(family: Family) -> None:
    internal = rules(ebgp=False, mp4=True)
    assert export_next_hop(learnt(next_hop=LINK_LOCAL), family, internal) == OWN6
    assert export_next_hop(learnt(next_hop=LINK_LOCAL * 2), family, internal) == OWN6
    assert export_next_hop(learnt(next_hop=bytes(16) + LINK_LOCAL), family, internal) == OWN6
    assert export_next_hop(learnt(next_hop=GLOBAL + LINK_LOCAL), family, internal) == GLOBAL
    assert export_next_hop(learnt(next_hop=GLOBAL), family, internal) == GLOBAL
    # A policy and the configuration of a route decide for themselves.
    set_by_policy = learnt(next_hop=LINK_LOCAL)
    set_by_policy.overrides = NEXT_HOP_SET
    assert export_next_hop(set_by_policy, family, internal) == LINK_LOCAL
    assert export_next_hop(local(next_hop="fe80::9"), family, internal) == LINK_LOCAL
    # "unchanged" is no such decision: the address is of another link all the same.
    unchanged = learnt(next_hop=LINK_LOCAL)
    unchanged.overrides = NEXT_HOP_KEPT
    assert export_next_hop(unchanged, family, rules(mp4=True)) == OWN6
    unchanged = learnt(next_hop=GLOBAL + LINK_LOCAL)
    unchanged.overrides = NEXT_HOP_KEPT
    assert export_next_hop(unchanged, family, rules(mp4=True)) == GLOBAL


@pytest.mark.parametrize("family", [IPV4_UNICAST, IPV6_UNICAST])
def test_the_link_of_a_route_server_and_its_clients_keeps_a_link_local_next_hop(
    family: Family,
) -> None:
    server = msgspec.structs.replace(rules(mp4=True), role=Role.ROUTE_SERVER)
    assert export_next_hop(learnt(next_hop=LINK_LOCAL), family, server) == OWN6
    here = NextHop(family, b"\xfe\x80" + bytes(13) + b"\x01", mp=True)
    server = msgspec.structs.replace(server, next_hops=(here,))
    assert export_next_hop(learnt(next_hop=LINK_LOCAL), family, server) == LINK_LOCAL
