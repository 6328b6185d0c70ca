"""The object in which the operator publishes the addresses of the cluster for agents. Pure.

A ConfigMap with an address, a prefix or a range in each line. Ranges that touch are joined, so that
5,000 nodes with addresses from few networks are few lines; heartbeats of Nodes change nothing in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from reconcilers.dialect import ClusterAddresses
from reconcilers.intent.service_addresses.address_set import AddressSet
from reconcilers.sliced_work import Slices

NAME: Final = "waggle-cluster-addresses"
MAX_OCTETS: Final = 1_000_000
"""Of the data: an API server stores no larger ConfigMap (1 MiB)."""


PARTS: Final = ("nodes", "pods", "peers", "services")


def encode(addresses: ClusterAddresses) -> Slices[dict[str, str]]:
    """Encode the addresses of the cluster as the published object's data, in slices."""
    data = {}
    for name in PARTS:
        ranges = yield from AddressSet.gather(getattr(addresses, name))
        data[name] = "".join(f"{text}\n" for text in ranges.texts())
    return data


def decode(data: Mapping[str, str]) -> Slices[dict[str, AddressSet]]:
    """Decode the published object's data to the addresses of the cluster, by part, in slices."""
    addresses = {}
    for name in PARTS:
        addresses[name] = yield from AddressSet.gather(data.get(name, "").split())
    return addresses


def with_stored(addresses: ClusterAddresses, data: Mapping[str, str]) -> ClusterAddresses:
    """Return the addresses together with the addresses that are published already.

    Where a kind cannot be read, the addresses of its objects stay published.
    """
    return ClusterAddresses(
        **{name: getattr(addresses, name) | {*data.get(name, "").split()} for name in PARTS}
    )


def manifest(namespace: str, data: Mapping[str, str]) -> dict[str, Any]:
    """Return the manifest of the published object, for the operator to write."""
    metadata = {
        "name": NAME,
        "namespace": namespace,
        "labels": {"app.kubernetes.io/part-of": "waggle"},
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(data)}


def octets(data: Mapping[str, str]) -> int:
    """Return the size of the published data."""
    return sum(len(key) + len(value) for key, value in data.items())
