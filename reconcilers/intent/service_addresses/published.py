"""The object in which the operator publishes the addresses of the cluster for agents. Pure.

A ConfigMap with one prefix a line. Prefixes that together are a shorter one are joined, so that a
cluster of 5,000 nodes with addresses from few networks is some hundred octets; heartbeats of Nodes
change nothing in it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from reconcilers.dialect import ClusterAddresses

NAME: Final = "waggle-cluster-addresses"
MAX_OCTETS: Final = 1_000_000
"""Of the data: an API server stores no larger ConfigMap (1 MiB)."""

_Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


def encode(addresses: ClusterAddresses) -> dict[str, str]:
    """Return the data of the object."""
    return {
        "nodes": _lines(addresses.nodes),
        "pods": _lines(addresses.pods),
        "peers": _lines(addresses.peers),
        "services": _lines(addresses.services),
    }


def decode(data: Mapping[str, str]) -> ClusterAddresses:
    """Return the addresses of the data of the object."""
    parts = {name: frozenset(data.get(name, "").split()) for name in encode(ClusterAddresses())}
    return ClusterAddresses(**parts)


def manifest(namespace: str, data: Mapping[str, str]) -> dict[str, Any]:
    """Return the object."""
    metadata = {
        "name": NAME,
        "namespace": namespace,
        "labels": {"app.kubernetes.io/part-of": "waggle"},
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(data)}


def octets(data: Mapping[str, str]) -> int:
    """Return the size of the data."""
    return sum(len(key) + len(value) for key, value in data.items())


def _lines(texts: Iterable[str]) -> str:
    """Return the shortest list of prefixes that are exactly these; what is none is left out."""
    of_version: dict[int, list[Any]] = {4: [], 6: []}
    for text in texts:
        try:
            network: _Network = ipaddress.ip_network(text, strict=False)
        except ValueError:
            # A host name among the addresses of a Node.
            continue
        of_version[network.version].append(network)
    joined = (
        str(one) for found in of_version.values() for one in ipaddress.collapse_addresses(found)
    )
    return "".join(f"{text}\n" for text in joined)
