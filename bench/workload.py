"""Manifests for measurements: one node, many Services in one JSON file, many peers.

Sizes are arguments; contents are the same in each run.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

NODE = "bench-node"
LOCAL_ASN = 65001
PEER_ASN = 65010
CHANGING = "changing.json"


def peer_address(number: int) -> str:
    """Return the loopback address of a peer, counted from 0."""
    return f"127.77.{number // 250}.{number % 250 + 1}"


def write(directory: Path, *, services: int, peers: int, port: int) -> None:
    """Write the manifests of a whole node into ``directory``."""
    directory.mkdir(parents=True, exist_ok=True)
    put(directory / "bgp.json", bgp(peers, port))
    put(directory / "services.json", [service(number) for number in range(services)])
    change(directory, 0)


def change(directory: Path, step: int) -> bytes:
    """Change the address of the Service in the separate file.

    Returns the NLRI to advertise to every peer, as wire bytes.
    """
    address = (198, 51, 100, step % 2 + 1)
    ip = ".".join(map(str, address))
    # Replaced by a rename: a reader never reads a partial file.
    fresh = directory.parent / ".changing.new"
    put(fresh, [load_balancer("changing", "10.97.0.1", ip)])
    fresh.replace(directory / CHANGING)
    return bytes((32, *address))


def put(path: Path, items: list[dict[str, Any]]) -> None:
    """Write objects to a file."""
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


def service(number: int) -> dict[str, Any]:
    """Return a Service with two addresses, both of this number alone."""
    high, low = divmod(number, 250)
    return load_balancer(f"service-{number}", f"10.96.{high}.{low + 1}", f"172.16.{high}.{low + 1}")


def load_balancer(name: str, cluster_ip: str, ip: str) -> dict[str, Any]:
    """Return a Service of type LoadBalancer with one address."""
    # The size of a real object as kubectl prints it.
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": name,
            "namespace": "bench",
            "labels": {"app.kubernetes.io/name": name, "expose": "bgp", "team": "a"},
            "annotations": {"example.com/owner": "bench"},
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "resourceVersion": "1000",
            "uid": f"00000000-0000-0000-0000-{sum(name.encode()):012d}",
        },
        "spec": {
            "type": "LoadBalancer",
            "clusterIP": cluster_ip,
            "clusterIPs": [cluster_ip],
            "externalTrafficPolicy": "Cluster",
            "internalTrafficPolicy": "Cluster",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "ports": [
                {"name": "http", "port": 80, "protocol": "TCP", "targetPort": 8080},
                {"name": "https", "port": 443, "protocol": "TCP", "targetPort": 8443},
            ],
            "selector": {"app.kubernetes.io/name": name},
            "sessionAffinity": "None",
        },
        "status": {"loadBalancer": {"ingress": [{"ip": ip}]}},
    }


def bgp(peers: int, port: int) -> list[dict[str, Any]]:
    """Return the node, and Cilium's objects."""
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": NODE},
            "spec": {"podCIDRs": ["10.244.0.0/24"]},
            "status": {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}]},
        },
        {
            "apiVersion": "cilium.io/v2",
            "kind": "CiliumBGPClusterConfig",
            "metadata": {"name": "bench"},
            "spec": {
                "bgpInstances": [
                    {
                        "name": "bench",
                        "localASN": LOCAL_ASN,
                        "peers": [
                            {
                                "name": f"peer-{number:03d}",
                                "peerASN": PEER_ASN,
                                "peerAddress": peer_address(number),
                                "peerConfigRef": {"name": "bench"},
                            }
                            for number in range(peers)
                        ],
                    }
                ]
            },
        },
        {
            "apiVersion": "cilium.io/v2",
            "kind": "CiliumBGPPeerConfig",
            "metadata": {"name": "bench"},
            "spec": {
                "transport": {"peerPort": port},
                "timers": {
                    "connectRetryTimeSeconds": 1,
                    "holdTimeSeconds": 90,
                    "keepAliveTimeSeconds": 30,
                },
                "families": [
                    {
                        "afi": "ipv4",
                        "safi": "unicast",
                        "advertisements": {"matchLabels": {"advertise": "bgp"}},
                    }
                ],
            },
        },
        {
            "apiVersion": "cilium.io/v2",
            "kind": "CiliumBGPAdvertisement",
            "metadata": {"name": "bench", "labels": {"advertise": "bgp"}},
            "spec": {
                "advertisements": [
                    {
                        "advertisementType": "Service",
                        "service": {"addresses": ["LoadBalancerIP"]},
                        "selector": {"matchLabels": {"expose": "bgp"}},
                        "attributes": {"communities": {"standard": ["65001:100"]}},
                    }
                ]
            },
        },
    ]
