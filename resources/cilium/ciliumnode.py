"""CiliumNode: the addresses that Cilium's IPAM has allocated to a node; written by Cilium.

Only the fields that BGP needs.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from resources.addresses import prefix_errors
from resources.errors import FieldError
from resources.meta import Resource, Struct


class PoolAllocation(Struct, frozen=True):
    """The prefixes allocated from one pool."""

    pool: str
    cidrs: tuple[str, ...] = ()


class NodePools(Struct, frozen=True):
    """The prefixes allocated from all pools."""

    allocated: tuple[PoolAllocation, ...] = ()


class Ipam(Struct, frozen=True):
    """The address ranges of a node's pods."""

    pod_cidrs: tuple[str, ...] = ()
    pools: NodePools = msgspec.field(default_factory=NodePools)


class CiliumNodeAddress(Struct, frozen=True):
    """An address of a node."""

    type: str = ""
    ip: str = ""


class CiliumNodeSpec(Struct, frozen=True):
    """The specification, as far as it is used."""

    addresses: tuple[CiliumNodeAddress, ...] = ()
    ipam: Ipam = msgspec.field(default_factory=Ipam)


class CiliumNode(Resource, frozen=True):
    """One node; its labels and annotations are copies of the Node's."""

    spec: CiliumNodeSpec = msgspec.field(default_factory=CiliumNodeSpec)


def cilium_node_errors(node: CiliumNode) -> Iterator[FieldError]:
    """Yield the rules that a CiliumNode breaks, and a schema cannot express."""
    texts = [(f"podCIDRs[{i}]", text) for i, text in enumerate(node.spec.ipam.pod_cidrs)]
    texts += [
        (f"pools.allocated[{i}].cidrs[{j}]", text)
        for i, allocation in enumerate(node.spec.ipam.pools.allocated)
        for j, text in enumerate(allocation.cidrs)
    ]
    for field, text in texts:
        yield from prefix_errors(text, f"spec.ipam.{field}")
