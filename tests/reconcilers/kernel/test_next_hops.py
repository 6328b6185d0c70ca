"""Next hops of received routes, and the gateways that the kernel gets for them."""

from __future__ import annotations

import msgspec
import pytest

from reconcilers.kernel.next_hops import Unresolved, resolve
from reconcilers.kernel.routing import Hop, HostRoute, HostRouting, NotKnown
from resources.host import Host
from speaker.api import BestPath
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, Family
from tests.reconcilers.kernel.build import ETH0, HOST, internal, octets, path

V4, V6 = IPV4_UNICAST, IPV6_UNICAST


def resolved(
    found: BestPath, family: Family = V4, vrf: str = "", host: Host | None = HOST
) -> object:
    """Resolve, and return the hops as text, or the sentence."""
    outcome = resolve(found, family, vrf, HostRouting(host))
    if isinstance(outcome, Unresolved):
        return outcome.message
    return [(hop.gateway, hop.device) for hop in outcome]


def via(gateway: str, device: str) -> list[tuple[bytes, str]]:
    return [(octets(gateway), device)]


def test_a_peer_on_a_network_of_the_node_is_the_gateway() -> None:
    assert resolved(path("10.88.0.1")) == via("10.88.0.1", "eth0")
    assert resolved(path("2001:db8:88::1"), V6) == via("2001:db8:88::1", "eth0")


def test_a_third_party_on_the_network_is_the_gateway() -> None:
    """RFC 4271 section 5.1.3: a router on a common network."""
    third = path("10.88.0.77", peer="10.88.0.1", address="10.88.0.1")
    assert resolved(third) == via("10.88.0.77", "eth0")
    assert resolved(internal("10.88.0.77")) == via("10.88.0.77", "eth0")


def test_the_next_hop_of_an_internal_peer_is_resolved_by_the_default_route() -> None:
    assert resolved(internal("192.0.2.9")) == via("10.88.0.254", "eth0")


def test_that_of_an_external_peer_one_hop_away_is_not() -> None:
    """RFC 4271 section 6.3."""
    assert resolved(path("192.0.2.9", address="10.88.0.1")) == (
        "192.0.2.9 is on no network of this node, and the session is of one hop"
    )


def test_no_route_leads_to_the_next_hop() -> None:
    assert resolved(internal("2001:db8:99::1"), V6) == "no route leads to 2001:db8:99::1"
    assert resolved(internal("10.88.0.7"), vrf="red") == "no route leads to 10.88.0.7"


@pytest.mark.parametrize(
    ("address", "family", "why"),
    [
        ("10.88.0.11", V4, "10.88.0.11 is an address of this node"),
        ("0.0.0.0", V4, "0.0.0.0 is no address of a router"),
        ("127.0.0.1", V4, "127.0.0.1 is no address of a router"),
        ("224.0.0.5", V4, "224.0.0.5 is no address of a router"),
        ("::", V6, ":: is no address of a router"),
        ("::1", V6, "::1 is no address of a router"),
        ("ff02::5", V6, "ff02::5 is no address of a router"),
        ("10.88.0.1", V6, "10.88.0.1 is no IPv6 next hop"),
        ("::ffff:10.88.0.1", V6, "::ffff:10.88.0.1 is no IPv6 next hop"),
    ],
)
def test_addresses_that_are_no_next_hop(address: str, family: Family, why: str) -> None:
    assert resolved(internal(address), family) == why


class TestLinkLocal:
    """RFC 2545 section 3, RFC 8950 and unnumbered peers."""

    UNNUMBERED = path(
        "", peer="eth0", address="fe80::1", interface="eth0", link_local=octets("fe80::1")
    )

    @pytest.mark.parametrize("family", [V4, V6])
    def test_the_interface_of_the_session_is_that_of_the_route(self, family: Family) -> None:
        assert resolved(self.UNNUMBERED, family) == via("fe80::1", "eth0")

    def test_ipv4_by_ipv6(self) -> None:
        assert resolved(path("2001:db8:88::1"), V4) == via("2001:db8:88::1", "eth0")

    def test_of_two_next_hops_the_global_one_is_used_where_it_is_on_a_network(self) -> None:
        both = path("2001:db8:88::1", interface="eth0", link_local=octets("fe80::1"))
        assert resolved(both, V6) == via("2001:db8:88::1", "eth0")

    def test_and_otherwise_the_link_local_one(self) -> None:
        both = path("2001:db8:99::1", interface="eth0", link_local=octets("fe80::1"))
        assert resolved(both, V6) == via("fe80::1", "eth0")

    def test_without_an_interface_it_leads_nowhere(self) -> None:
        lost = msgspec.structs.replace(self.UNNUMBERED, interface=None)
        assert (
            resolved(lost) == "fe80::1 is link-local, and the interface of the session is not known"
        )

    def test_an_interface_that_is_down_has_no_next_hop(self) -> None:
        down = msgspec.structs.replace(ETH0, admin_up=False)
        assert resolved(self.UNNUMBERED, host=Host((down,))) == (
            "fe80::1 is on interface eth0, which is down or does not exist"
        )


def test_nothing_but_an_address_is_known_of_a_host_without_networks() -> None:
    assert resolved(internal("172.31.61.1"), host=None) == via("172.31.61.1", "")


def test_a_route_without_a_next_hop() -> None:
    assert resolved(path("", address="10.88.0.1")) == "the route has no next hop"


def answered(answer: HostRoute | NotKnown, found: BestPath) -> tuple[Hop, ...] | Unresolved:
    """Resolve with the host's answer."""

    class Answering:
        """The routing of a host with one answer."""

        def lookup(self, *_: object, **__: object) -> HostRoute | None:
            if isinstance(answer, NotKnown):
                raise answer
            return answer

        def is_own(self, *_: object) -> bool:
            return False

    return resolve(found, V4, "", Answering())  # type: ignore[arg-type]  # a part of it


def test_a_multipath_route_leads_to_all_its_gateways() -> None:
    hops = (Hop(octets("10.88.0.253"), "eth0"), Hop(octets("10.99.0.254"), "eth1"))
    assert answered(HostRoute("192.0.2.0/24", hops), internal("192.0.2.9")) == hops


def test_a_route_by_an_interface_alone_is_a_network() -> None:
    route = HostRoute("192.0.2.0/24", (Hop(b"", "wg0"),))
    assert answered(route, path("192.0.2.9")) == (Hop(octets("192.0.2.9"), "wg0"),)


def test_a_route_that_discards_packets_leads_nowhere() -> None:
    assert answered(HostRoute("192.0.2.0/24", ()), internal("192.0.2.9")) == Unresolved(
        "the route 192.0.2.0/24 to 192.0.2.9 discards packets"
    )


def test_a_next_hop_waits_until_the_hosts_routes_are_known() -> None:
    assert answered(NotKnown(pending=True), internal("192.0.2.9")) == Unresolved(
        "the route to 192.0.2.9 is not known yet", pending=True
    )
