"""The next hop of prefixes of the other IP version than the neighbour's address.

Of IPv6 prefixes over IPv4 it is the node's IPv6 address; of IPv4 prefixes over IPv6 the address of the
session's interface, which the speaker finds, or the node's.
"""

from __future__ import annotations

from typing import Any

import pytest

from reconcilers.intent.unsent_routes import unsent_routes, write_unsent_routes
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, Family
from tests.reconcilers.frrk8s.agent_in_memory import ADDRESS, AgentInMemory
from tests.reconcilers.frrk8s.build import PEER, configuration, neighbor, router

NODE = "n1"
PREFIX4, PREFIX6 = "198.51.100.0/24", "2001:db8::/32"
OWN6, PEER6 = "fd00:a::1", "fd00:a::9"


def node(*addresses: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": NODE},
        "status": {"addresses": [{"type": "InternalIP", "address": one} for one in addresses]},
    }


def agent(
    *addresses: str,
    vrf: str = "",
    own: str = ADDRESS,
    **more: Any,  # noqa: ANN401
) -> AgentInMemory:
    """Return an agent of a node with these addresses, and one neighbour of both families."""
    to_all = {"allowed": {"mode": "all"}, **dict(more.pop("toAdvertise", {}))}
    given = neighbor(**{"dualStackAddressFamily": True, "toAdvertise": to_all, **more})
    # Another router ID would reset the session.
    fixed = {"id": "198.51.100.250", **({"vrf": vrf} if vrf else {})}
    routers = [{**router(given, prefixes=[PREFIX4, PREFIX6]), **fixed}]
    it = AgentInMemory(NODE, address=own)
    it.write([node(*addresses), configuration("a", {"bgp": {"routers": routers}})])
    it.settle()
    return it


def over_ipv6(
    *addresses: str,
    interface_address: str | None = None,
    extended_next_hop: bool = False,
    **more: Any,  # noqa: ANN401
) -> AgentInMemory:
    """Return an agent whose session is over IPv6; its interface may have an IPv4 address.

    ``extended_next_hop``: whether the router accepts IPv6 next hops of IPv4 prefixes (RFC 8950).
    """
    it = agent(*addresses, own=OWN6, address=PEER6, **more)
    it.speaker.host.interface_address = interface_address
    it.connect(extended_next_hop=extended_next_hop)
    return it


def hops(it: AgentInMemory, family: Family = IPV6_UNICAST) -> tuple[str | None, str | None]:
    """Return the next hops of the intent: the configured one, and the node's address."""
    (peer,) = it.intent.peers.all(it.db.snapshot())
    return peer.next_hop(family, configured=True), peer.next_hop(family, configured=False)


def next_hop(it: AgentInMemory) -> str | None:
    """Return the next hop of the IPv4 prefix that the router has received."""
    route = it.routers[PEER6].received(IPV4_UNICAST).get(PREFIX4)
    return None if route is None else route.next_hop


@pytest.mark.parametrize(
    ("addresses", "expected"),
    [
        (("192.0.2.1", "fd00::1", "fd00::2"), "fd00::1"),
        (("192.0.2.1",), None),
    ],
)
def test_it_is_the_nodes_address(addresses: tuple[str, ...], expected: str | None) -> None:
    assert hops(agent(*addresses)) == (None, expected)


def test_the_one_of_the_neighbour_goes_before() -> None:
    configured = {"nextHop": {"ipv6": "fd00::77"}}
    assert hops(agent("192.0.2.1", "fd00::1", toAdvertise=configured)) == ("fd00::77", None)


def test_a_session_over_ipv6_has_its_own() -> None:
    assert hops(agent("192.0.2.1", "fd00::1", address="fd00::9")) == (None, None)


@pytest.mark.parametrize("written", ["fd00::9", "FD00:0:0::9"])
def test_a_neighbour_with_an_address_of_the_node_however_written_is_the_node_itself(
    written: str,
) -> None:
    it = agent("192.0.2.1", written, address="fd00::9")
    (peer,) = it.intent.peers.all(it.db.snapshot())
    assert "it is an address of node" in (peer.down_reason or "")


def test_the_nodes_address_is_not_one_of_a_vrf() -> None:
    assert hops(agent("192.0.2.1", "fd00::1", vrf="red")) == (None, None)
    in_vrf = agent("192.0.2.1", "fd00::1", vrf="red", address=PEER6)
    assert hops(in_vrf, IPV4_UNICAST) == (None, None)


def test_an_address_that_comes_and_goes_resets_no_session() -> None:
    it = agent("192.0.2.1")
    it.connect()
    for address in ("fd00::1", "fd00::2", None):
        cost = it.work(node("192.0.2.1", *filter(None, [address])))
        # One UPDATE with the one IPv6 prefix, and no Cease.
        assert cost.updates == {PEER: 1}
        (status,) = it.speaker.peers()
        assert (status.established, status.flaps) == (True, 0)
        router_side = it.routers[PEER].received(IPV6_UNICAST)[PREFIX6]
        assert router_side.next_hop == (address or "::ffff:192.0.2.1")


@pytest.mark.parametrize(
    ("interface_address", "configured", "expected"),
    [
        ("192.0.2.7", None, "192.0.2.7"),
        (None, None, "192.0.2.1"),
        ("192.0.2.7", "192.0.2.77", "192.0.2.77"),
    ],
)
def test_ipv4_over_ipv6_has_the_address_of_the_interface_or_of_the_node(
    interface_address: str | None, configured: str | None, expected: str
) -> None:
    more: dict[str, Any] = (
        {} if configured is None else {"toAdvertise": {"nextHop": {"ipv4": configured}}}
    )
    it = over_ipv6("192.0.2.1", interface_address=interface_address, **more)
    assert next_hop(it) == expected
    assert it.routers[PEER6].received(IPV6_UNICAST)[PREFIX6].next_hop == OWN6


def test_where_it_was_negotiated_the_next_hop_is_the_sessions_as_in_rfc_8950() -> None:
    it = over_ipv6("192.0.2.1", interface_address="192.0.2.7", extended_next_hop=True)
    assert next_hop(it) == OWN6


def test_an_ipv4_address_of_the_node_that_comes_and_goes_resets_no_session() -> None:
    it = over_ipv6()
    for address in ("192.0.2.1", "192.0.2.2", None):
        it.work(node(*filter(None, [address])))
        assert next_hop(it) == address
        (status,) = it.speaker.peers()
        assert (status.established, status.flaps) == (True, 0)


def test_without_any_the_routes_are_unsent_and_the_problem_has_the_reason() -> None:
    it = over_ipv6()
    assert next_hop(it) is None
    rows = list(unsent_routes(it.speaker.peers()))
    assert write_unsent_routes(it.db, it.intent, rows) == rows
    it.round()
    (problem,) = it.intent.problems.all(it.db.snapshot())
    assert (str(problem.objects[0]), problem.category) == (
        "FRRConfiguration/frr-k8s-system/a",
        "unsupported",
    )
    assert problem.message.startswith(
        f"peer '{PEER6}': ipv4-unicast routes are not advertised: there is no IPv4 next hop"
    )
    # The reason goes with the obstacle.
    it.work(node("192.0.2.1"))
    write_unsent_routes(it.db, it.intent, unsent_routes(it.speaker.peers()))
    it.round()
    assert not list(it.intent.problems.all(it.db.snapshot()))
