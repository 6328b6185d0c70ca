"""What the best paths of a prefix lead to."""

from __future__ import annotations

import pytest

from reconcilers.kernel.forwarding import Forwarding, ForwardingRules, Refreshed
from reconcilers.kernel.reasons import NotInstalled, Reason
from reconcilers.kernel.routing import Hop, HostRoute, HostRouting
from reconcilers.kernel.writer.protocol_messages import BLACKHOLE as BLACKHOLE_HOPS
from reconcilers.kernel.writer.protocol_messages import NextHop
from reconcilers.sliced_work import finish
from resources.host import Host
from speaker.api import BestPath
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, Family
from tests.reconcilers.kernel.build import HOST, internal, octets, path, paths

VRFS = {"main": "", "red": "red"}
BLACKHOLE_COMMUNITY = 65535 << 16 | 666


def forwarding(
    *found: BestPath,
    family: Family = IPV4_UNICAST,
    host: Host | None = HOST,
    maximum: int = 64,
    blackhole: bool = False,
) -> Forwarding:
    rules = ForwardingRules(HostRouting(host), VRFS, maximum=maximum, blackhole=blackhole)
    return rules.of(paths(*found), family)


def hops(*ends: tuple[str, str]) -> tuple[Hop, ...]:
    return tuple(Hop(octets(gateway), device) for gateway, device in ends)


def test_equal_paths_share_a_route_whatever_their_order() -> None:
    two = hops(("10.88.0.1", "eth0"), ("10.88.0.2", "eth0"))
    assert forwarding(path("10.88.0.2"), path("10.88.0.1")).hops == two
    assert forwarding(path("10.88.0.1"), path("10.88.0.2")).hops == two


def test_paths_with_one_next_hop_are_one_next_hop() -> None:
    assert forwarding(internal("10.88.0.7"), internal("10.88.0.7", peer="other")).hops == hops(
        ("10.88.0.7", "eth0")
    )


def test_the_number_of_next_hops_has_a_limit_that_keeps_the_best() -> None:
    some = [path(f"10.88.0.{n}") for n in (9, 8, 7)]
    assert forwarding(*some, maximum=2).hops == hops(("10.88.0.8", "eth0"), ("10.88.0.9", "eth0"))


def test_a_path_that_cannot_be_resolved_is_left_out_of_the_route() -> None:
    lost = internal("10.88.0.11")
    found = forwarding(lost, path("10.88.0.1"))
    assert found.hops == hops(("10.88.0.1", "eth0"))
    assert found.why_not is None
    assert [(one == lost, why.message) for one, why in found.unresolved] == [
        (True, "10.88.0.11 is an address of this node")
    ]


def test_without_any_next_hop_there_is_no_route() -> None:
    found = forwarding(internal("10.88.0.11"))
    assert found.next_hops is None
    assert found.why_not == NotInstalled(Reason.NEXT_HOP, "10.88.0.11 is an address of this node")


def test_a_route_of_this_router_is_not_installed() -> None:
    found = forwarding(path("", peer=None, address=None))
    assert found.why_not == NotInstalled(Reason.LOCAL, "instance main originates the prefix")


def test_rfc7999_a_route_discards_packets_where_that_is_switched_on() -> None:
    marked = path("10.88.0.1", communities=(BLACKHOLE_COMMUNITY,))
    assert forwarding(marked, blackhole=True) == Forwarding(next_hops=BLACKHOLE_HOPS)
    assert forwarding(marked).hops == hops(("10.88.0.1", "eth0"))
    assert not forwarding(path("10.88.0.1"), marked, blackhole=True).blackhole


def test_a_route_imported_from_another_vrf_has_the_interface_there() -> None:
    assert forwarding(path("10.99.0.1", instance="red", imported=True)).hops == hops(
        ("10.99.0.1", "eth1")
    )


def test_a_next_hop_may_be_unusable_for_one_family_alone() -> None:
    rules = ForwardingRules(HostRouting(HOST), VRFS, maximum=64, blackhole=False)
    both = paths(path("10.88.0.1"))
    assert rules.of(both, IPV4_UNICAST).next_hops
    assert not rules.of(both, IPV6_UNICAST).next_hops


def test_a_class_that_no_path_set_is_in_is_forgotten() -> None:
    rules = ForwardingRules(HostRouting(HOST), VRFS, maximum=64, blackhole=False)
    one, marked = paths(path("10.88.0.1")), paths(path("10.88.0.1", communities=(7,)))
    first = rules.class_of(one, IPV4_UNICAST)
    assert rules.class_of(marked, IPV4_UNICAST) is first, "communities lead nowhere else"
    rules.forget(one, IPV4_UNICAST)
    assert list(rules.classes) == [first]
    rules.forget(marked, IPV4_UNICAST)
    assert not list(rules.classes)
    assert rules.class_of(one, IPV4_UNICAST) is not first


class Changing:
    """The routing of a host that changes."""

    def __init__(self, host: Host | None) -> None:
        self.present = HostRouting(host)

    def __getattr__(self, name: str) -> object:
        return getattr(self.present, name)


def lost(rules: ForwardingRules, instance: str, peer: str) -> list[Refreshed]:
    return finish(rules.session_lost(instance, peer))


def restored(rules: ForwardingRules, instance: str, peer: str) -> list[Refreshed]:
    return finish(rules.session_restored(instance, peer))


def rules_of(routing: Changing) -> ForwardingRules:
    return ForwardingRules(routing, VRFS, maximum=64, blackhole=False)  # type: ignore[arg-type]


def hop(gateway: str) -> NextHop:
    return NextHop(octets(gateway))


def test_equal_sets_of_next_hops_are_one_object() -> None:
    rules = rules_of(Changing(HOST))
    one = rules.of(paths(path("10.88.0.1"), path("10.88.0.2")), IPV4_UNICAST)
    other = rules.of(paths(path("10.88.0.2"), path("10.88.0.1")), IPV4_UNICAST)
    assert one.next_hops == (hop("10.88.0.1"), hop("10.88.0.2"))
    assert one.next_hops is other.next_hops


def test_a_host_that_changes_has_other_next_hops_for_the_paths_that_it_concerns() -> None:
    routing = Changing(HOST)
    rules = rules_of(routing)
    near, far = paths(path("10.88.0.1")), paths(internal("192.0.2.9"))
    rules.of(near, IPV4_UNICAST)
    rules.of(far, IPV4_UNICAST)
    routing.present = HostRouting(Host(HOST.devices))
    (changed,) = finish(rules.refresh())
    assert changed.of is rules.class_of(far, IPV4_UNICAST)
    assert (changed.before, changed.after) == ((hop("10.88.0.254"),), None)
    assert not finish(rules.refresh())


def test_the_paths_of_a_session_that_is_lost_are_not_used_until_it_is_back() -> None:
    rules = rules_of(Changing(HOST))
    both = paths(path("10.88.0.1"), path("10.88.0.2"))
    before = rules.of(both, IPV4_UNICAST).next_hops
    (changed,) = lost(rules, "main", "10.88.0.1")
    assert (changed.before, changed.after) == (before, (hop("10.88.0.2"),))
    assert rules.of(both, IPV4_UNICAST).unresolved[0][1].message == (
        "the session with 10.88.0.1 has ended"
    )
    (back,) = restored(rules, "main", "10.88.0.1")
    assert back.after == before
    assert not restored(rules, "main", "10.88.0.1")


def test_path_sets_with_other_communities_are_resolved_once() -> None:
    """A full table has ten thousands of them, and its peer is lost in one turn of the loop."""
    routing = Changing(HOST)
    rules = rules_of(routing)
    looked_up: list[bytes] = []
    lookup = routing.present.lookup

    def counted(vrf: str, address: bytes, *, neighbor: bool = False) -> HostRoute | None:
        looked_up.append(address)
        return lookup(vrf, address, neighbor=neighbor)

    routing.lookup = counted  # type: ignore[attr-defined]
    some = [
        paths(path("10.88.0.1", communities=(n,)), path("10.88.0.2", communities=(n,)))
        for n in range(100)
    ]
    before = {rules.of(each, IPV4_UNICAST).next_hops for each in some}
    assert looked_up == [octets("10.88.0.1"), octets("10.88.0.2")]
    (changed,) = lost(rules, "main", "10.88.0.1")
    assert {changed.before} == before
    assert {rules.of(each, IPV4_UNICAST).next_hops for each in some} == {(hop("10.88.0.2"),)}
    (back,) = restored(rules, "main", "10.88.0.1")
    assert {back.after} == before
    assert len(looked_up) == 5, "each next hop once"


def test_a_blackhole_of_a_lost_peer_stays_until_it_is_withdrawn() -> None:
    rules = ForwardingRules(HostRouting(HOST), VRFS, maximum=64, blackhole=True)
    discarded = paths(path("10.88.0.1", communities=(BLACKHOLE_COMMUNITY,)))
    assert rules.of(discarded, IPV4_UNICAST).blackhole
    assert not lost(rules, "main", "10.88.0.1")
    assert rules.of(discarded, IPV4_UNICAST).blackhole


def test_an_interface_without_a_number_leads_nowhere() -> None:
    routing = Changing(HOST)
    routing.index_of = lambda _: None  # type: ignore[attr-defined]
    found = rules_of(routing).of(paths(path("10.88.0.1")), IPV4_UNICAST)
    assert found.why_not == NotInstalled(Reason.NEXT_HOP, "interface eth0 is not known")


def test_classes_are_resolved_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconcilers.kernel.forwarding.RESOLVED", 10)
    routing = Changing(HOST)
    rules = rules_of(routing)
    some = [paths(path("10.88.0.1"), internal(f"10.88.0.{n}", peer="other")) for n in range(20, 45)]
    before = [rules.of(each, IPV4_UNICAST).next_hops for each in some]
    slices = rules.session_lost("main", "10.88.0.1")
    turns = []
    for _ in slices:
        after = [rules.of(each, IPV4_UNICAST).next_hops for each in some]
        turns.append(sum(old != new for old, new in zip(before, after, strict=True)))
    assert turns == [10, 20]


def test_a_refresh_that_takes_the_place_of_another_one_knows_what_was_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("reconcilers.kernel.forwarding.RESOLVED", 10)
    rules = rules_of(Changing(HOST))
    two = [paths(path("10.88.0.1"), internal(f"10.88.0.{n}", peer="b")) for n in range(20, 45)]
    before = [rules.of(each, IPV4_UNICAST).next_hops for each in two]
    next(rules.session_lost("main", "10.88.0.1"))
    changed = finish(rules.session_lost("main", "b"))
    assert [each.before for each in changed] == before
    assert {each.after for each in changed} == {None}
    next(rules.session_restored("main", "10.88.0.1"))
    changed = finish(rules.session_restored("main", "b"))
    assert [each.after for each in changed] == before
    next(rules.session_lost("main", "10.88.0.1"))
    assert finish(rules.session_restored("main", "10.88.0.1")) == [], "as if nothing had been"
