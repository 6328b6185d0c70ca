"""FRRConfigurations for measurements: sizes are arguments, contents are the same in each run."""

from __future__ import annotations

from typing import Any

NODE = "bench-node"
NAMESPACE = "frr-k8s-system"
LOCAL_ASN = 65001
PEER_ASN = 65010
Object = dict[str, Any]


def node() -> Object:
    """Return the Node."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": NODE, "labels": {"kubernetes.io/hostname": NODE}},
        "status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.1"}]},
    }


def peer_address(number: int) -> str:
    """Return the address of a neighbour, counted from 0."""
    return f"127.77.{number // 250}.{number % 250 + 1}"


def prefix(number: int) -> str:
    """Return one prefix of many."""
    return f"10.{number >> 14 & 255}.{number >> 6 & 255}.{(number & 63) * 4}/30"


def configuration(name: str, spec: Object) -> Object:
    """Return an FRRConfiguration with the metadata of a real one."""
    return {
        "apiVersion": "frrk8s.metallb.io/v1beta1",
        "kind": "FRRConfiguration",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": f"00000000-0000-0000-0000-{sum(name.encode()):012d}",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "generation": 1,
        },
        "spec": spec,
    }


def advertising(
    number: int, prefixes: list[str], peers: int, *, port: int = 179, community: bool = True
) -> Object:
    """Return an object with prefixes that it advertises to the same neighbours as every other."""
    advertise: Object = {"allowed": {"prefixes": prefixes}}
    if community:
        advertise["withCommunity"] = [{"community": "65001:100", "prefixes": prefixes}]
    neighbors = [
        {"address": peer_address(i), "asn": PEER_ASN, "port": port, "toAdvertise": advertise}
        for i in range(peers)
    ]
    router = {"asn": LOCAL_ASN, "prefixes": prefixes, "neighbors": neighbors}
    return configuration(f"part-{number:04d}", {"bgp": {"routers": [router]}})


def parts(objects: int, prefixes: int, peers: int, *, port: int = 179) -> list[Object]:
    """Return objects with different prefixes for the same neighbours."""
    return [
        advertising(i, [prefix(i * prefixes + j) for j in range(prefixes)], peers, port=port)
        for i in range(objects)
    ]


def of_nodes(nodes: int, each: int) -> list[Object]:
    """Return FRRConfigurations of many nodes, each of which selects one by its name."""
    configurations = []
    for number in range(nodes):
        for i in range(each):
            name = f"node-{number:04d}-{i}"
            peers = [
                {"address": peer_address(number % 900 + k), "asn": PEER_ASN,
                 "toAdvertise": {"allowed": {"prefixes": [prefix(number * each + i)]}},
                 "toReceive": {"allowed": {"prefixes": [{"prefix": "10.0.0.0/8", "le": 32}]}}}
                for k in range(2)
            ]  # fmt: skip
            router = {"asn": LOCAL_ASN, "neighbors": peers,
                      "prefixes": [prefix(number * each + i)]}  # fmt: skip
            hostname = NODE if number == 0 else f"node-{number:04d}"
            selector = {"matchLabels": {"kubernetes.io/hostname": hostname}}
            spec = {"bgp": {"routers": [router]}, "nodeSelector": selector}
            configurations.append(configuration(name, spec))
    return configurations
