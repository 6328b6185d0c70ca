"""The networks, default routes and VRFs of a host, as the resolution of next hops reads them."""

from __future__ import annotations

import msgspec
import pytest

from reconcilers.kernel.routing import Hop, HostRoute, HostRouting, NotKnown
from resources.host import DefaultRoute, Device, Host, Vrf
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, prefix_to_wire
from tests.reconcilers.kernel.build import ETH0, HOST, octets

GATEWAY = HostRoute("0.0.0.0/0", (Hop(octets("10.88.0.254"), "eth0"),), 100)


def test_an_address_is_on_the_network_of_an_interface() -> None:
    routing = HostRouting(HOST)
    assert routing.lookup("", octets("10.88.0.77")) == HostRoute(
        "10.88.0.0/24", (Hop(b"", "eth0"),)
    )
    assert routing.lookup("", octets("2001:db8:88::1")) == HostRoute(
        "2001:db8:88::/64", (Hop(b"", "eth0"),)
    )


def test_other_addresses_have_the_default_route_of_their_version() -> None:
    routing = HostRouting(HOST)
    assert routing.lookup("", octets("192.0.2.1")) == GATEWAY
    assert routing.lookup("", octets("2001:db8:99::1")) is None


def test_of_two_default_routes_the_lower_metric_decides() -> None:
    routes = (DefaultRoute(100, "10.88.0.254", "eth0"), DefaultRoute(50, "10.88.0.253", "eth0"))
    found = HostRouting(Host((ETH0,), routes)).lookup("", octets("192.0.2.1"))
    assert found is not None
    assert found.hops == (Hop(octets("10.88.0.253"), "eth0"),)


def test_an_interface_that_is_down_has_no_network_and_no_default_route() -> None:
    down = msgspec.structs.replace(ETH0, oper_state="down")
    routing = HostRouting(
        Host((down, Device("lo1", addresses=("192.0.2.1",))), HOST.default_routes)
    )
    assert routing.lookup("", octets("10.88.0.1")) is None
    assert not routing.is_usable("eth0")
    assert routing.is_own("", octets("10.88.0.11"))


def test_vrfs_do_not_see_each_other() -> None:
    routing = HostRouting(HOST)
    assert routing.table_of("red") == 1044
    assert routing.lookup("red", octets("10.99.0.1")) == HostRoute(
        "10.99.0.0/24", (Hop(b"", "eth1"),)
    )
    assert routing.lookup("red", octets("192.0.2.1")) is None
    assert routing.lookup("", octets("10.99.0.1")) == GATEWAY
    assert routing.is_own("red", octets("10.99.0.11"))
    assert not routing.is_own("", octets("10.99.0.11"))


def test_addresses_of_the_vrf_device_belong_to_the_vrf() -> None:
    device = Device("red", addresses=("10.70.0.1",), networks=("10.70.0.0/24",))
    routing = HostRouting(Host((device,), (), (Vrf("red", 7),)))
    assert routing.networks("red", IPV4_UNICAST) == {prefix_to_wire("10.70.0.0/24")[1]: "red"}


def test_the_table_of_the_default_vrf_is_an_option_and_that_of_an_unknown_vrf_is_none() -> None:
    assert HostRouting(HOST, 100).table_of("") == 100
    assert HostRouting(HOST, 100).table_of("blue") is None
    assert HostRouting(None).table_of("") == 254


@pytest.mark.parametrize("host", [None, Host(), Host((Device("eth0"),))])
def test_nothing_is_known_of_a_host_without_networks(host: Host | None) -> None:
    with pytest.raises(NotKnown) as raised:
        HostRouting(host).lookup("", octets("10.88.0.1"))
    assert not raised.value.pending


def test_without_a_host_every_interface_is_usable() -> None:
    assert HostRouting(None).is_usable("eth0")
    assert not HostRouting(Host()).is_usable("eth0")


class TestWithoutLengths:
    """A manifest may have addresses without the length of their network."""

    HOST = Host(
        (
            Device("eth0", addresses=("10.88.0.11", "fe80::1")),
            Device("eth1", addresses=("10.1.0.1",)),
        ),
        HOST.default_routes,
    )

    def test_a_usual_length_is_assumed(self) -> None:
        routing = HostRouting(self.HOST)
        assert routing.lookup("", octets("10.88.0.77")) == HostRoute(
            "10.88.0.0/24", (Hop(b"", "eth0"),)
        )
        assert routing.lookup("", octets("10.88.1.1")) == GATEWAY

    def test_a_neighbour_is_on_the_interface_with_the_most_similar_address(self) -> None:
        routing = HostRouting(self.HOST)
        assert routing.lookup("", octets("10.88.1.1"), neighbor=True) == HostRoute(
            "10.88.1.1/32", (Hop(b"", "eth0"),)
        )
        assert routing.lookup("", octets("10.2.0.1"), neighbor=True) == HostRoute(
            "10.2.0.1/32", (Hop(b"", "eth1"),)
        )

    def test_a_neighbour_is_not_guessed_where_lengths_are_known(self) -> None:
        assert HostRouting(HOST).lookup("", octets("10.88.1.1"), neighbor=True) == GATEWAY

    def test_a_network_of_assumed_length_is_no_network_of_the_host(self) -> None:
        assert not HostRouting(self.HOST).networks("", IPV4_UNICAST)
        assert HostRouting(HOST).networks("", IPV6_UNICAST)
