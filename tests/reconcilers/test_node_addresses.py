"""The addresses of a node as default next hops."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reconcilers.apply.to_speaker import peer_config
from reconcilers.compile_manifests import CompiledManifests, kinds_of
from reconcilers.model import NextHop
from reconcilers.node_addresses import next_hops_of
from resources.core import Node, NodeAddress, NodeStatus
from resources.manifests.load import load
from resources.meta import ObjectMeta
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST
from tests.support.scenario import offline_settings
from waggle import dialects


def node(*addresses: tuple[str, str]) -> Node:
    found = tuple(NodeAddress(type=type_, address=text) for type_, text in addresses)
    return Node(metadata=ObjectMeta(name="n"), status=NodeStatus(addresses=found))


BOTH = node(
    ("Hostname", "n"),
    ("ExternalIP", "203.0.113.1"),
    ("InternalIP", "2001:db8::1"),
    ("InternalIP", "192.0.2.1"),
)


@pytest.mark.parametrize(
    ("session", "expected"),
    [
        ("198.51.100.9", NextHop(IPV6_UNICAST, "2001:db8::1")),
        ("2001:db8::9", NextHop(IPV4_UNICAST, "192.0.2.1")),
        # A session of an interface has link-local IPv6 addresses.
        (None, NextHop(IPV4_UNICAST, "192.0.2.1")),
    ],
)
def test_it_is_the_internal_address_of_the_other_family(
    session: str | None, expected: NextHop
) -> None:
    assert next_hops_of(BOTH, session) == (expected,)


def test_the_external_one_comes_next_and_without_any_there_is_none() -> None:
    external = node(("ExternalIP", "203.0.113.1"))
    assert next_hops_of(external, "2001:db8::9") == (NextHop(IPV4_UNICAST, "203.0.113.1"),)
    assert next_hops_of(external, "198.51.100.9") == ()
    assert next_hops_of(None, "2001:db8::9") == ()


def test_an_address_with_a_zone_is_no_next_hop() -> None:
    zoned = node(("InternalIP", "fe80::1%eth0"), ("InternalIP", "2001:db8::1"))
    assert next_hops_of(zoned, "198.51.100.9") == (NextHop(IPV6_UNICAST, "2001:db8::1"),)
    assert next_hops_of(node(("InternalIP", "fe80::1%eth0")), "198.51.100.9") == ()


ASN = 65001
END = "2001:db8:1::9"
DIALECTS: dict[str, list[dict[str, Any]]] = {
    "cilium": [
        {
            "apiVersion": "cilium.io/v2",
            "kind": "CiliumBGPClusterConfig",
            "metadata": {"name": "c"},
            "spec": {
                "bgpInstances": [
                    {
                        "name": "i",
                        "localASN": ASN,
                        "peers": [{"name": "p", "peerASN": 65002, "peerAddress": END}],
                    }
                ]
            },
        }
    ],
    "cilium v1": [
        {
            "apiVersion": "cilium.io/v2alpha1",
            "kind": "CiliumBGPPeeringPolicy",
            "metadata": {"name": "c"},
            "spec": {
                "virtualRouters": [
                    {
                        "localASN": ASN,
                        "neighbors": [{"peerAddress": f"{END}/128", "peerASN": 65002}],
                    }
                ]
            },
        }
    ],
    "frrk8s": [
        {
            "apiVersion": "frrk8s.metallb.io/v1beta1",
            "kind": "FRRConfiguration",
            "metadata": {"name": "c", "namespace": "frr-k8s-system"},
            "spec": {
                "bgp": {
                    "routers": [
                        {
                            "asn": ASN,
                            "neighbors": [
                                {"address": END, "asn": 65002, "dualStackAddressFamily": True}
                            ],
                        }
                    ]
                }
            },
        }
    ],
    "metallb": [
        {
            "apiVersion": "metallb.io/v1beta2",
            "kind": "BGPPeer",
            "metadata": {"name": "c", "namespace": "metallb-system"},
            "spec": {
                "myASN": ASN,
                "peerASN": 65002,
                "peerAddress": END,
                "dualStackAddressFamily": True,
            },
        }
    ],
}
"""A session over IPv6 with both families; Antrea's sessions have the family of their address alone."""


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_has_it_for_ipv4_over_ipv6(dialect: str, tmp_path: Path) -> None:
    of_node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n"},
        "status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.1"}]},
    }
    path = tmp_path / "objects.json"
    items = [of_node, *DIALECTS[dialect]]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    types = [entry.load() for entry in dialects.DIALECTS]
    made = CompiledManifests(load([str(path)], kinds_of(types)), types, offline_settings("n", {}))
    (peer,) = made.intent.peers.all(made.db.snapshot())
    config = peer_config(peer, ASN, lambda _: None)
    assert IPV4_UNICAST in config.families
    assert (config.next_hop_ipv4, config.default_next_hop_ipv4) == (None, "192.0.2.1")
