"""A thousand objects in conflict, of each kind of conflict of each dialect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.reconcilers.build import cluster_config, peer, peer_config
from tests.reconcilers.frrk8s.build import configuration, neighbor, router
from tests.reconcilers.metallb import objects as metallb

Objects = list[dict[str, Any]]
COUNT = 1000


def address(number: int) -> str:
    return f"10.1.{number >> 8}.{number & 255}"


def frr(number: int, **bgp: Any) -> dict[str, Any]:  # noqa: ANN401
    return configuration(f"o{number:04}", {"bgp": bgp})


def preferring(preference: int) -> dict[str, Any]:
    prefixes = ["10.0.0.0/24"]
    given = [{"localPref": preference, "prefixes": prefixes}]
    advertise = {"allowed": {"prefixes": prefixes}, "withLocalPref": given}
    return router(neighbor(toAdvertise=advertise), prefixes=prefixes)


def cilium(kind: str, value: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "cilium.io/v2", "kind": kind, **value}


def policy(number: int, *peers: dict[str, Any]) -> dict[str, Any]:
    """Return a BGPPolicy of Antrea."""
    return {
        "apiVersion": "crd.antrea.io/v1alpha1",
        "kind": "BGPPolicy",
        "metadata": {"name": f"o{number:04}"},
        "spec": {
            "nodeSelector": {},
            "localASN": 64512,
            "listenPort": 179,
            "advertisements": {"pod": {}},
            "bgpPeers": list(peers),
        },
    }


def antrea_peer(number: int) -> dict[str, Any]:
    return {"address": address(number), "asn": 64600}


def peering_policy(number: int) -> dict[str, Any]:
    """Return a CiliumBGPPeeringPolicy."""
    neighbors = [{"peerAddress": "10.0.0.1/32", "peerASN": 64600}]
    return {
        "apiVersion": "cilium.io/v2alpha1",
        "kind": "CiliumBGPPeeringPolicy",
        "metadata": {"name": f"o{number:04}"},
        "spec": {
            "nodeSelector": {},
            "virtualRouters": [{"localASN": 64512, "neighbors": neighbors}],
        },
    }


def each(made: Callable[[int], dict[str, Any]], *also: dict[str, Any]) -> Callable[[], Objects]:
    return lambda: [*also, *map(made, range(COUNT))]


CONFLICTS: dict[str, Callable[[], Objects]] = {
    "FRRConfigurations: AS number": each(lambda n: frr(n, routers=[router(asn=64512 + n)])),
    "FRRConfigurations: port": each(lambda n: frr(n, routers=[router(neighbor(port=1000 + n))])),
    "FRRConfigurations: local preference": each(lambda n: frr(n, routers=[preferring(n + 1)])),
    "FRRConfigurations: BFD profile": each(
        lambda n: frr(
            n, bfdProfiles=[{"name": "x", "receiveInterval": 100 + n}], routers=[router()]
        )
    ),
    "IPAddressPools: overlap": each(lambda n: metallb.pool(f"o{n:04}", "198.18.0.0/16")),
    "BGPAdvertisements: local preference": each(
        lambda n: metallb.advertisement(f"o{n:04}", localPref=n + 1),
        metallb.pool("p", "198.18.0.0/16"),
    ),
    "BGPAdvertisements: aggregation length": each(
        lambda n: metallb.advertisement(f"o{n:04}", aggregationLength=16),
        metallb.pool("p", "198.18.0.0/24"),
    ),
    "BGPPeers: AS number": each(lambda n: metallb.peer(f"o{n:04}", address(n), myASN=64512 + n)),
    "BGPPeers: router ID": each(
        lambda n: metallb.peer(f"o{n:04}", address(n), routerID=address(n))
    ),
    "BGPPeers: address": each(lambda n: metallb.peer(f"o{n:04}")),
    "BGPPeers: echo mode": each(
        lambda n: metallb.peer(f"o{n:04}", address(n), bfdProfile="e"),
        metallb.profile("e", echoMode=True),
        metallb.pool("p", "2001:db8::/48"),
        metallb.advertisement("a"),
    ),
    "Communities: alias": each(lambda n: metallb.community(f"o{n:04}", a=f"1:{n}")),
    "BGPPolicies: node": each(lambda n: policy(n, antrea_peer(0))),
    "BGPPolicies: address of a peer": lambda: [
        policy(0, *({"address": "10.1.0.1", "asn": 64000 + n} for n in range(COUNT)))
    ],
    "CiliumBGPClusterConfigs: node": each(
        lambda n: cilium("CiliumBGPClusterConfig", cluster_config(f"o{n:04}")),
        cilium("CiliumBGPPeerConfig", peer_config()),
    ),
    "CiliumBGPClusterConfigs: address of a peer": lambda: [
        cilium("CiliumBGPPeerConfig", peer_config()),
        cilium(
            "CiliumBGPClusterConfig",
            cluster_config(peers=[peer(f"o{n:04}") for n in range(COUNT)]),
        ),
    ],
    "CiliumBGPPeeringPolicies: node": each(peering_policy),
    "two dialects: address of a peer": lambda: [
        policy(0, *map(antrea_peer, range(COUNT))),
        frr(0, routers=[router(*(neighbor(address=address(n)) for n in range(COUNT)), asn=64513)]),
    ],
}
