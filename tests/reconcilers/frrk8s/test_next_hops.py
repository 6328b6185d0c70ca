"""The next hop of IPv6 prefixes towards neighbours with IPv4 addresses: the node's IPv6 address."""

from __future__ import annotations

from typing import Any

import pytest

from speaker.nlri import IPV6_UNICAST
from tests.reconcilers.frrk8s.agent import AgentInMemory
from tests.reconcilers.frrk8s.build import PEER, configuration, neighbor, router

NODE = "n1"
PREFIX = "2001:db8::/32"


def node(*addresses: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": NODE},
        "status": {"addresses": [{"type": "InternalIP", "address": one} for one in addresses]},
    }


def agent(*addresses: str, vrf: str = "", **more: object) -> AgentInMemory:
    """Return an agent of a node with these addresses, and one neighbour of both families."""
    to_all = {"allowed": {"mode": "all"}, **dict(more.pop("toAdvertise", {}))}  # type: ignore[call-overload]
    given = neighbor(dualStackAddressFamily=True, toAdvertise=to_all, **more)
    routers = [{**router(given, prefixes=[PREFIX]), **({"vrf": vrf} if vrf else {})}]
    it = AgentInMemory(NODE)
    it.write([node(*addresses), configuration("a", {"bgp": {"routers": routers}})])
    it.settle()
    return it


def hop(it: AgentInMemory) -> str | None:
    """Return the next hop of IPv6 prefixes in the intent; None is the address of the session."""
    (peer,) = it.intent.peers.all(it.db.snapshot())
    return peer.next_hop(IPV6_UNICAST)


@pytest.mark.parametrize(
    ("addresses", "expected"),
    [
        (("192.0.2.1", "fd00::1", "fd00::2"), "fd00::1"),
        (("192.0.2.1",), None),
    ],
)
def test_it_is_the_nodes_address(addresses: tuple[str, ...], expected: str | None) -> None:
    assert hop(agent(*addresses)) == expected


def test_the_one_of_the_neighbour_goes_before() -> None:
    configured = {"nextHop": {"ipv6": "fd00::77"}}
    assert hop(agent("192.0.2.1", "fd00::1", toAdvertise=configured)) == "fd00::77"


def test_a_session_over_ipv6_has_its_own() -> None:
    assert hop(agent("192.0.2.1", "fd00::1", address="fd00::9")) is None


def test_the_nodes_address_is_not_one_of_a_vrf() -> None:
    assert hop(agent("192.0.2.1", "fd00::1", vrf="red")) is None


def test_an_address_that_comes_and_goes_resets_no_session() -> None:
    it = agent("192.0.2.1")
    it.connect()
    for address in ("fd00::1", "fd00::2", None):
        cost = it.work(node("192.0.2.1", *filter(None, [address])))
        # One UPDATE with the one IPv6 prefix, and no Cease.
        assert cost.updates == {PEER: 1}
        (status,) = it.speaker.peers()
        assert (status.established, status.flaps) == (True, 0)
        router_side = it.routers[PEER].received(IPV6_UNICAST)[PREFIX]
        assert router_side.next_hop == (address or "::ffff:192.0.2.1")
