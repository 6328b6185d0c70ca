"""The addresses that BGP uses, of interfaces and default routes."""

from __future__ import annotations

from ipaddress import IPv6Address

import pytest

from resources.errors import InvalidObject
from resources.host import DefaultRoute, Device, Host, Vrf
from resources.host.network import advertisable, default_gateway, source_address
from tests.support.kinds import NODE_NETWORK

MIXED = (
    "127.0.0.1", "224.0.0.1", "0.0.0.0", "192.168.100.100", "192.168.100.101", "169.254.7.7",
    "::1", "::", "ff00::1", "fe80::1", "::ffff:192.0.2.1", "fd00::aabb:1", "fd00::aabb:1",
)  # fmt: skip


@pytest.mark.parametrize("state", ["up", "unknown"])
def test_advertisable_addresses_are_yielded_once(state: str) -> None:
    device = Device("lo1", oper_state=state, addresses=MIXED)
    assert list(advertisable(device)) == [
        "192.168.100.100",
        "192.168.100.101",
        "169.254.7.7",
        "fd00::aabb:1",
    ]


@pytest.mark.parametrize(
    "device",
    [
        Device("lo1", admin_up=False, addresses=("192.0.2.1",)),
        Device("lo1", oper_state="down", addresses=("192.0.2.1",)),
        Device("lo1", oper_state="lowerlayerdown", addresses=("192.0.2.1",)),
    ],
)
def test_an_interface_that_is_down_has_no_advertisable_address(device: Device) -> None:
    assert list(advertisable(device)) == []


HOST = Host(
    devices=(
        Device("eth0", addresses=("192.0.2.1", "fd00::1", "fe80::1", "::ffff:192.0.2.9")),
        Device("eth1", addresses=("192.0.2.2", "192.0.2.3")),
        Device("eth2", oper_state="down", addresses=("198.51.100.1",)),
    ),
    default_routes=(
        DefaultRoute(100, "192.0.2.254", "eth0"),
        DefaultRoute(50, "198.51.100.254", "eth2"),
        DefaultRoute(200, "192.0.2.253", "eth1"),
        DefaultRoute(10, "fe80::fe", "eth0"),
        DefaultRoute(1024, "fd00::fe", "eth0"),
    ),
)


def test_a_source_is_the_one_usable_address_of_the_family() -> None:
    assert source_address(HOST, "eth0", 4) == "192.0.2.1"
    assert source_address(HOST, "eth0", 6) == "fd00::1"


@pytest.mark.parametrize(
    ("interface", "version", "words"),
    [
        ("eth9", 4, "there is no interface eth9"),
        ("eth1", 6, "eth1 has no usable IPv6 address"),
        ("eth1", 4, "eth1 has 2 usable IPv4 addresses, one is needed"),
    ],
)
def test_a_missing_source_address_has_a_reason(interface: str, version: int, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        source_address(HOST, interface, version)


def test_the_gateway_is_that_of_the_lowest_metric_whose_interface_is_up() -> None:
    assert default_gateway(HOST, 4) == "192.0.2.254"
    # Not the link-local one, though its metric is lower.
    assert default_gateway(HOST, 6) == "fd00::fe"


def test_a_missing_gateway_has_a_reason() -> None:
    with pytest.raises(ValueError, match="there is no IPv4 default route"):
        default_gateway(Host(), 4)
    down = Host(HOST.devices, (DefaultRoute(0, "198.51.100.254", "eth2"),))
    with pytest.raises(ValueError, match="eth2, is not up"):
        default_gateway(down, 4)


def network(**spec: object) -> dict[str, object]:
    return {
        "apiVersion": "waggle.dev/v1alpha1",
        "kind": "NodeNetwork",
        "metadata": {"name": "node-1"},
        "spec": spec,
    }


def test_a_node_network_describes_interfaces_in_a_manifest() -> None:
    row = NODE_NETWORK.decode(
        network(
            devices=[
                {"name": "eth0", "addresses": ["FD00::1", "::ffff:192.0.2.2"], "operState": "UP"},
                {"name": "eth1", "adminUp": False},
            ],
            defaultRoutes=[{"gateway": "192.0.2.254", "device": "eth0"}],
        )
    )
    assert row.host == Host(
        (
            Device("eth0", addresses=("fd00::1", str(IPv6Address("::ffff:192.0.2.2")))),
            Device("eth1", admin_up=False),
        ),
        (DefaultRoute(0, "192.0.2.254", "eth0"),),
    )


def test_an_address_of_a_node_network_may_have_the_length_of_its_network() -> None:
    addresses = ["192.0.2.7/24", "192.0.2.8/25", "192.0.2.9", "fd00::1/64"]
    row = NODE_NETWORK.decode(network(devices=[{"name": "eth0", "addresses": addresses}]))
    (device,) = row.host.devices
    assert device.addresses == ("192.0.2.7", "192.0.2.8", "192.0.2.9", "fd00::1")
    assert device.networks == ("192.0.2.0/24", "192.0.2.0/25", "fd00::/64")


def test_a_node_network_may_list_the_vrfs() -> None:
    devices = [{"name": "eth0", "vrf": "red"}, {"name": "eth1"}]
    row = NODE_NETWORK.decode(network(devices=devices, vrfs=[{"name": "red", "table": 1001}]))
    assert row.host == Host((Device("eth0", vrf="red"), Device("eth1")), (), (Vrf("red", 1001),))
    assert NODE_NETWORK.decode(network(vrfs=[])).host.vrfs == ()
    assert NODE_NETWORK.decode(network()).host.vrfs is None


RED = {"name": "red", "table": 7}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"vrfs": [RED, RED]}, "spec.vrfs[1].name"),
        ({"vrfs": [{"name": "red", "table": 0}]}, "spec.vrfs[0].table"),
        ({"vrfs": [RED], "devices": [{"name": "eth0", "vrf": "blue"}]}, "spec.devices[0].vrf"),
        ({"devices": [{"name": "eth0"}, {"name": "eth0"}]}, "spec.devices[1].name"),
        ({"devices": [{"name": "eth0", "addresses": ["x"]}]}, "spec.devices[0].addresses[0]"),
        ({"devices": [{"name": "e", "addresses": ["x/24"]}]}, "spec.devices[0].addresses[0]"),
        (
            {"devices": [{"name": "e", "addresses": ["192.0.2.1/33"]}]},
            "spec.devices[0].addresses[0]",
        ),
        ({"devices": [{"name": "e", "addresses": ["192.0.2.1/"]}]}, "spec.devices[0].addresses[0]"),
        (
            {"devices": [{"name": "e", "addresses": ["fd00::1/129"]}]},
            "spec.devices[0].addresses[0]",
        ),
        ({"devices": [{"name": ""}]}, "spec.devices[0].name"),
        ({"defaultRoutes": [{"gateway": "x", "device": "e"}]}, "spec.defaultRoutes[0].gateway"),
        ({"defaultRoutes": [{"gateway": "192.0.2.1"}]}, "spec.defaultRoutes[0].device"),
    ],
)
def test_an_error_names_the_term_and_the_value(spec: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidObject) as caught:
        NODE_NETWORK.decode(network(**spec))
    assert [error.path for error in caught.value.errors] == [field]


def test_an_unknown_field_of_a_node_network_is_reported() -> None:
    assert NODE_NETWORK.strict
    value = network(devices=[{"name": "eth0", "adress": ["192.0.2.1"]}], defaultRoute=[])
    paths = {error.path for error in NODE_NETWORK.unknown_fields(value)}
    assert paths == {"spec.defaultRoute", "spec.devices[0].adress"}
