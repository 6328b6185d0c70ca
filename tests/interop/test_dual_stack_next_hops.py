"""IPv4 routes over an IPv6 session, at routers that accept no IPv6 next hop for them.

MetalLB's dualStackAddressFamily, as FRR-k8s configures FRR: the next hop is the IPv4 address of the
session's interface, or the node's. What BIRD and FRR have in their tables.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.conftest import NeedRouter
from tests.interop.transport_lab import ASN, OURS, PEERS, PORT, router_for
from tests.reconcilers.metallb.objects import advertisement, peer, pool
from tests.support.agent import Agent
from tests.support.netns import linked_namespaces
from tests.support.routers import PeerSettings, Router, RouterSettings
from tests.support.routers.base import Originated
from tests.support.routers.waggle import Waggle
from tests.support.wait import eventually

pytestmark = [pytest.mark.interop, pytest.mark.netns, pytest.mark.program]

NODE_ADDRESS = "10.99.0.99"
"""Of the loopback interface."""
PREFIX4, PREFIX6 = "198.51.100.10/32", "2001:db8:100::10/128"
FOUR, SIX = OURS


def node(*addresses: str) -> dict[str, Any]:
    """Return the Node with these addresses as InternalIPs."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "test-node"},
        "status": {"addresses": [{"type": "InternalIP", "address": one} for one in addresses]},
    }


SERVICE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"type": "LoadBalancer"},
    "status": {
        "loadBalancer": {"ingress": [{"ip": text.split("/")[0]} for text in (PREFIX4, PREFIX6)]}
    },
}


ENDPOINTS: dict[str, Any] = {
    "apiVersion": "discovery.k8s.io/v1",
    "kind": "EndpointSlice",
    "metadata": {
        "name": "web-1",
        "namespace": "shop",
        "labels": {"kubernetes.io/service-name": "web"},
    },
    "addressType": "IPv4",
    "endpoints": [
        {"addresses": ["10.0.1.9"], "conditions": {"ready": True}, "nodeName": "test-node"}
    ],
}


class Session:
    """An agent and a router, with one session over IPv6 that has both families."""

    def __init__(self, agent: Agent, router: Router) -> None:
        self.agent, self.router = agent, router

    def held(self) -> dict[str, str]:
        """Return the next hops in the router's table, by prefix."""
        return {prefix: route.next_hop for prefix, route in self.router.all_routes().items()}

    def holds(self, expected: dict[str, str]) -> None:
        """Wait until the router has exactly these."""

        def check() -> None:
            assert self.held() == expected, self.held()

        eventually(
            check, context=lambda: f"{self.agent.daemon.tail()}\n{self.router.daemon.tail()}"
        )

    def problems(self) -> list[str]:
        """Return the messages of the problems of ``waggle status``."""
        (item,) = self.agent.ask("/v1/status")
        return [problem["message"] for problem in item.get("problems", [])]

    def explained(self) -> dict[str, tuple[bool, str]]:
        """Return whether each prefix is advertised, and the reason, by ``waggle explain``."""
        items = self.agent.ask("/v1/explain", target="shop/web")
        return {item["prefix"]: (item["advertised"], item["reason"]) for item in items}


@pytest.fixture(params=["bird", "frr"])
def session(
    request: pytest.FixtureRequest, need_router: NeedRouter, tmp_path: Path
) -> Iterator[Session]:
    """Start a router that accepts no IPv6 next hop for IPv4; the interface has an IPv4 address."""
    kind: str = request.param
    need_router(kind)
    with linked_namespaces() as link, contextlib.ExitStack() as stack:
        link.left.add_address(f"{FOUR}/24")
        link.left.add_address(f"{SIX}/64")
        link.left.batch(f"addr add {NODE_ADDRESS}/32 dev lo")
        for _, number in PEERS.values():
            link.right.add_address(f"10.99.0.{number}/24")
            link.right.add_address(f"fd00:99::{number}/64")
        router = _without_rfc_8950(router_for(kind, "ebgp-ipv6", link, tmp_path))
        cells = ("--disable-cell=cilium", "--enable-cell=frrk8s", "--enable-cell=metallb")
        agent = Agent(link.left, tmp_path / "agent", arguments=cells)
        asn, number = PEERS["ebgp-ipv6"]
        agent.write_objects(
            "metallb.json",
            peer(
                "tor",
                f"fd00:99::{number}",
                myASN=ASN,
                peerASN=asn,
                peerPort=PORT,
                routerID="10.99.0.1",
                connectTime="1s",
                dualStackAddressFamily=True,
            ),
            pool("p", "198.51.100.0/24", "2001:db8:100::/64"),
            advertisement("all"),
            SERVICE,
            ENDPOINTS,
        )
        agent.write_objects("node.json", node(NODE_ADDRESS))
        for part in (router, agent):
            part.start()
            stack.callback(part.stop)
            part.wait_ready()
        yield Session(agent, router)


def test_it_is_the_interfaces_address_or_the_nodes_or_a_problem(session: Session) -> None:
    session.holds({PREFIX4: FOUR, PREFIX6: SIX})
    assert session.explained() == {PREFIX4: (True, "Advertised"), PREFIX6: (True, "Advertised")}
    assert session.problems() == []

    # The interface loses its address: with the next session the next hop is the node's.
    left = session.agent.daemon.namespace
    assert left is not None
    left.batch(f"addr del {FOUR}/24 dev cable")
    session.router.restart()
    session.holds({PREFIX4: NODE_ADDRESS, PREFIX6: SIX})

    # Without that one, too, the route is withdrawn, and nothing else.
    session.agent.write_objects("node.json", node())
    session.holds({PREFIX6: SIX})
    reason = "there is no IPv4 next hop"

    def reported() -> None:
        (problem,) = session.problems()
        assert reason in problem
        assert problem.startswith("peer 'fd00:99::12': ipv4-unicast routes are not advertised")

    eventually(reported, context=session.agent.daemon.tail)
    assert session.explained() == {PREFIX4: (False, "NoNextHop"), PREFIX6: (True, "Advertised")}
    flaps = session.agent.peers()["fd00:99::12"].get("flaps", 0)

    session.agent.write_objects("node.json", node(NODE_ADDRESS))
    session.holds({PREFIX4: NODE_ADDRESS, PREFIX6: SIX})
    eventually(lambda: _is(session.problems(), []), context=session.agent.daemon.tail)
    assert session.agent.peers()["fd00:99::12"].get("flaps", 0) == flaps


@pytest.mark.parametrize("configured", [None, "10.99.0.77"])
@pytest.mark.parametrize("kind", ["bird", "frr"])
def test_waggle_router_takes_the_interfaces_address_or_the_configured_one(
    kind: str, configured: str | None, need_router: NeedRouter, tmp_path: Path
) -> None:
    need_router(kind)
    asn, number = PEERS["ebgp-ipv6"]
    with linked_namespaces() as link, contextlib.ExitStack() as stack:
        link.left.add_address(f"{FOUR}/24")
        link.left.add_address(f"{SIX}/64")
        link.right.add_address(f"10.99.0.{number}/24")
        link.right.add_address(f"fd00:99::{number}/64")
        theirs = _without_rfc_8950(router_for(kind, "ebgp-ipv6", link, tmp_path))
        peer_settings = PeerSettings(
            f"fd00:99::{number}", asn, port=PORT, passive=False, other_next_hop=configured
        )
        ours = Waggle(
            RouterSettings(ASN, "10.99.0.1", (SIX,), (peer_settings,), port=PORT),
            link.left,
            tmp_path / "ours",
        )
        ours.announced = {"198.51.100.0/24": Originated(), "2001:db8:100::/48": Originated()}
        for part in (theirs, ours):
            part.start()
            stack.callback(part.stop)
            part.wait_ready()
        expected = {"198.51.100.0/24": configured or FOUR, "2001:db8:100::/48": SIX}

        def check() -> None:
            routes = theirs.all_routes()
            assert {prefix: route.next_hop for prefix, route in routes.items()} == expected

        eventually(check, context=lambda: f"{ours.daemon.tail()}\n{theirs.daemon.tail()}")


def _without_rfc_8950(router: Router) -> Router:
    (settings,) = router.settings.peers
    plain = dataclasses.replace(settings, extended_next_hop=False)
    router.settings = dataclasses.replace(router.settings, peers=(plain,))
    return router


def _is(found: object, expected: object) -> None:
    assert found == expected
