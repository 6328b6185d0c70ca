"""Hosts and paths for the tests of kernel routes."""

from __future__ import annotations

import ipaddress
from typing import Any

from resources.host import DefaultRoute, Device, Host, Vrf
from speaker.api import BestPath, PathSet

ETH0 = Device(
    "eth0",
    addresses=("10.88.0.11", "2001:db8:88::11"),
    networks=("10.88.0.0/24", "2001:db8:88::/64"),
)
ETH1 = Device("eth1", addresses=("10.99.0.11",), networks=("10.99.0.0/24",), vrf="red")
RED = Device("red")
HOST = Host((ETH0, ETH1, RED), (DefaultRoute(100, "10.88.0.254", "eth0"),), (Vrf("red", 1044),))


def octets(text: str) -> bytes:
    """Return an address as octets."""
    return ipaddress.ip_address(text).packed


def path(next_hop: str = "10.88.0.1", **values: Any) -> BestPath:  # noqa: ANN401
    """Return a path of an external peer one hop away, by default that of its next hop."""
    hop = octets(next_hop) if next_hop else b""
    given: dict[str, Any] = {
        "peer": next_hop,
        "address": next_hop,
        "interface": None,
        "instance": "main",
        "direct": True,
        "next_hop": hop,
        **values,
    }
    return BestPath(**given)


def internal(next_hop: str, **values: Any) -> BestPath:  # noqa: ANN401
    """Return a path of an internal peer."""
    return path(
        next_hop, **{"peer": "10.88.0.1", "address": "10.88.0.1", "direct": False, **values}
    )


def paths(*found: BestPath) -> PathSet:
    """Return a set of paths, the best one first."""
    return PathSet(found)
