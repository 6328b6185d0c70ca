"""What the best paths of a prefix lead to."""

from __future__ import annotations

from reconcilers.kernel.forwarding import Forwarding, ForwardingRules
from reconcilers.kernel.reasons import NotInstalled, Reason
from reconcilers.kernel.routing import Hop, HostRouting
from reconcilers.kernel.writer.protocol_messages import BLACKHOLE as BLACKHOLE_HOPS
from reconcilers.kernel.writer.protocol_messages import NextHop
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


def test_a_next_hop_of_an_instance_without_a_row_waits_for_it() -> None:
    """Its VRF is not known: the default one may lead elsewhere, or nowhere."""
    found = forwarding(path("10.88.0.1", instance="blue"))
    text = "the VRF of instance blue is not known yet"
    assert found.why_not == NotInstalled(Reason.NEXT_HOP, text)
    assert found.pending


def test_an_interface_without_a_number_is_not_known_yet() -> None:
    routing = Changing(HOST)
    routing.index_of = lambda _: None  # type: ignore[attr-defined]
    found = rules_of(routing).of(paths(path("10.88.0.1")), IPV4_UNICAST)
    assert found.why_not == NotInstalled(Reason.NEXT_HOP, "interface eth0 is not known yet")
    assert found.pending
