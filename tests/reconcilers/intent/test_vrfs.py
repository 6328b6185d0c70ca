"""An instance in a VRF that the node does not have is that instance's problem."""

from __future__ import annotations

import pytest

from reconcilers.intent.vrfs import vrf_problems
from reconcilers.model import Instance, ObjectRef, Problem
from resources.host import Device, Host, Vrf

ROUTER = ObjectRef("Router", "ns", "a")
DEFAULT = Instance("main", None, 65001, "192.0.2.1", dialect="ant")
RED = Instance("r", "red", 65001, "192.0.2.1", origin=ROUTER, dialect="ant")


def test_only_the_instance_whose_vrf_is_not_there_has_a_problem() -> None:
    blue = Instance("b", "blue", 65001, "192.0.2.1", dialect="ant")
    host = Host((Device("eth1", addresses=("10.99.0.11",), vrf="blue"),), vrfs=(Vrf("blue", 10),))
    text = "node n1 has no VRF 'red': the sessions of instance 'r' wait for it"
    assert list(vrf_problems([DEFAULT, RED, blue], host, "n1")) == [
        Problem((ROUTER,), "", text, (), "unresolved", "ant")
    ]


def test_where_the_vrfs_are_not_known_there_is_no_problem() -> None:
    assert list(vrf_problems([DEFAULT, RED], Host(), "n1")) == []
    assert len(list(vrf_problems([DEFAULT, RED], Host(vrfs=()), "n1"))) == 1


@pytest.mark.parametrize(
    "devices",
    [
        (),
        (Device("red"), Device("eth1", vrf="red")),
        (Device("eth1", addresses=("10.99.0.11",)), Device("red")),
        (Device("eth1", addresses=("10.99.0.11",), vrf="blue"),),
    ],
)
def test_a_vrf_without_an_interface_with_an_address_is_a_problem(
    devices: tuple[Device, ...],
) -> None:
    host = Host(devices, vrfs=(Vrf("blue", 9), Vrf("red", 10)))
    text = (
        "VRF 'red' of node n1 has no interface with an address: "
        "the sessions of instance 'r' wait for it"
    )
    assert list(vrf_problems([RED], host, "n1")) == [
        Problem((ROUTER,), "", text, (), "unresolved", "ant")
    ]


@pytest.mark.parametrize(
    "device",
    [
        Device("red", addresses=("192.0.2.7",)),
        Device("eth1", addresses=("fe80::1",), vrf="red"),
        Device("eth1", addresses=("10.99.0.11",), vrf="red"),
    ],
)
def test_an_address_of_the_vrf_device_or_of_an_interface_in_it_is_enough(device: Device) -> None:
    assert not list(vrf_problems([RED], Host((device,), vrfs=(Vrf("red", 10),)), "n1"))
