"""Addresses that a Service must not announce, at real routers: they get none of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.interop.conftest import NeedRouter
from tests.interop.transport_lab import ASN, OURS, PEERS, PORT, give_addresses
from tests.support.agent import Agent
from tests.support.netns import linked_namespaces
from tests.support.routers import KINDS, PeerSettings, RouterSettings
from tests.support.routers.base import Originated
from tests.support.wait import settles

pytestmark = [pytest.mark.interop, pytest.mark.netns, pytest.mark.program]

NAME = "ebgp-ipv4"
PEER_ASN, NUMBER = PEERS[NAME]
ROUTER = (f"10.99.0.{NUMBER}", f"fd00:99::{NUMBER}")
OTHER_NODE, OTHER_PODS = ("192.0.2.7", "2001:db8:7::7"), "10.244.7.0/24"
GOOD = ("198.51.100.9/32", "2001:db8:10::9/128")
BAD = {
    "127.0.0.9": "Martian",
    "169.254.169.254": "Martian",
    "0.0.0.0": "Martian",
    "::ffff:198.51.100.7": "Martian",
    "64:ff9b::7f00:1": "Martian",
    OURS[0]: "NodeAddress",
    OTHER_NODE[0]: "NodeAddress",
    OTHER_NODE[1]: "NodeAddress",
    "64:ff9b::c000:207": "NodeAddress",
    "2002:a60:1::1": "ApiServer",
    ROUTER[0]: "PeerAddress",
    "10.244.7.9": "PodAddress",
    "10.96.0.1": "ApiServer",
    "10.96.0.77": "ClusterIP",
    "10.96.3.3": "ServiceRange",
    "203.0.113.5": "NotInNamespace",
}


BY_ROUTES: dict[str, dict[str, str]] = {"bird": {ROUTER[1]: "NextHop"}, "frr": {}}
"""What the routes of a router show beside: FRR without zebra has no IPv6 next hop to send."""


def node(name: str, pods: str, *addresses: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "spec": {"podCIDRs": [pods]},
        "status": {"addresses": [{"type": "InternalIP", "address": one} for one in addresses]},
    }


def service(namespace: str, name: str, cluster_ip: str, *external: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "clusterIP": cluster_ip,
            "clusterIPs": [cluster_ip],
            "externalIPs": list(external),
        },
    }


def manifests(bad: Iterable[str]) -> list[dict[str, Any]]:
    cilium = {"apiVersion": "cilium.io/v2"}
    families: list[dict[str, Any]] = [
        {"afi": f, "safi": "unicast", "advertisements": {}} for f in ("ipv4", "ipv6")
    ]
    peer = {
        "name": NAME,
        "peerASN": PEER_ASN,
        "peerAddress": ROUTER[0],
        "peerConfigRef": {"name": "p"},
    }
    external = {"advertisementType": "Service", "service": {"addresses": ["ExternalIP"]}}
    granted = {"waggle.dev/service-addresses": "203.0.113.0/24"}
    return [
        node("test-node", "10.244.1.0/24", *OURS),
        node("n7", OTHER_PODS, *OTHER_NODE),
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": "bank", "annotations": granted},
        },
        {
            **cilium,
            "kind": "CiliumBGPClusterConfig",
            "metadata": {"name": "c"},
            "spec": {"bgpInstances": [{"name": "i", "localASN": ASN, "peers": [peer]}]},
        },
        {
            **cilium,
            "kind": "CiliumBGPPeerConfig",
            "metadata": {"name": "p"},
            "spec": {
                "families": families,
                "transport": {"peerPort": PORT},
                "timers": {"connectRetryTimeSeconds": 1},
            },
        },
        {
            **cilium,
            "kind": "CiliumBGPAdvertisement",
            "metadata": {"name": "a"},
            "spec": {"advertisements": [{**external, "selector": {}}]},
        },
        service("default", "kubernetes", "10.96.0.1"),
        service("bank", "till", "10.96.0.77"),
        service("shop", "web", "10.96.0.78", *bad, *(one.split("/")[0] for one in GOOD)),
    ]


@pytest.mark.parametrize("kind", ["bird", "frr"])
def test_a_router_gets_no_address_that_belongs_to_something_else(
    kind: str, need_router: NeedRouter, tmp_path: Path
) -> None:
    need_router(kind)
    bad = {**BAD, **BY_ROUTES[kind]}
    with linked_namespaces() as link, contextlib.ExitStack() as stack:
        give_addresses(link)
        settings = RouterSettings(PEER_ASN, ROUTER[0], ROUTER, (PeerSettings(OURS[0], ASN),), PORT)
        router = KINDS[kind](settings, link.right, tmp_path / "router")
        # Its IPv6 address, which no object has, is known as a next hop.
        router.announced = {"2001:db8:99::/48": Originated()}
        arguments = ("--service-cidr=10.96.0.0/16",)
        agent = Agent(link.left, tmp_path / "agent", arguments=arguments)
        agent.write_objects("objects.json", *manifests(bad))
        for part in (router, agent):
            part.start()
            stack.callback(part.stop)
            part.wait_ready()

        def held() -> set[str]:
            return {*router.routes("ipv4-unicast"), *router.routes("ipv6-unicast")}

        def explain(address: str) -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = agent.command("explain", address)["items"]
            return found

        def complete() -> None:
            assert held() == set(GOOD)
            assert agent.peers()[NAME]["state"] == "Established"
            for address, reason in BY_ROUTES[kind].items():
                assert {one["reason"] for one in explain(address)} == {reason}

        settles(complete, stays=1.0, interval=0.2, context=agent.daemon.tail)
        explained = {address: {one["reason"] for one in explain(address)} for address in bad}
        # A cluster IP is a ClusterIP as well, which nothing advertises.
        wanted = {address: {reason} for address, reason in bad.items()}
        assert {one: found - {"AddressType"} for one, found in explained.items()} == wanted
