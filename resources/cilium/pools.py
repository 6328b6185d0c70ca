"""Cilium's address pools: CiliumLoadBalancerIPPool for VIPs, CiliumPodIPPool for pod networks.

Only the fields that BGP needs: labels and address ranges.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

import msgspec

from resources.addresses import canonical_address
from resources.decimal_numbers import decimal_number
from resources.errors import FieldError, shortened
from resources.label_selectors import LabelSelector
from resources.meta import Resource, Struct


class Block(Struct, frozen=True):
    """A prefix, or the addresses from start to stop, both within; start alone is one address."""

    cidr: str = ""
    start: str = ""
    stop: str = ""


class LoadBalancerIPPoolSpec(Struct, frozen=True):
    """The specification; ``cidrs`` is the older name of ``blocks``."""

    blocks: tuple[Block, ...] = ()
    cidrs: tuple[Block, ...] = ()
    service_selector: LabelSelector | None = None
    allow_first_last_ips: str = msgspec.field(default="", name="allowFirstLastIPs")
    disabled: bool = False


class CiliumLoadBalancerIPPool(Resource, frozen=True):
    """One pool of VIPs."""

    spec: LoadBalancerIPPoolSpec = msgspec.field(default_factory=LoadBalancerIPPoolSpec)

    @property
    def prefixes(self) -> tuple[str, ...]:
        """All addresses of the Cilium pool as canonical prefixes."""
        prefixes = [
            prefix for block in (*self.spec.blocks, *self.spec.cidrs) for prefix in _prefixes(block)
        ]
        return tuple(dict.fromkeys(prefixes))


def _prefixes(block: Block) -> list[str]:
    if block.cidr:
        return [_cidr(block.cidr)]
    first = ipaddress.ip_address(canonical_address(block.start))
    last = ipaddress.ip_address(canonical_address(block.stop or block.start))
    try:
        return [str(network) for network in ipaddress.summarize_address_range(first, last)]
    except (TypeError, ValueError) as error:
        raise ValueError(f"{block.start} to {block.stop} is no range: {error}") from None


def _cidr(text: str) -> str:
    # Cilium takes an address, and a prefix with host bits, for the prefix that it is in.
    base, slash, length = text.partition("/")
    address = ipaddress.ip_address(canonical_address(base))
    if not slash:
        return f"{address}/{address.max_prefixlen}"
    number = decimal_number(length, address.max_prefixlen)
    if number is None:
        raise ValueError(f"{shortened(length)} is not a prefix length")
    return str(ipaddress.ip_network((address, number), strict=False))


def load_balancer_pool_errors(pool: CiliumLoadBalancerIPPool) -> Iterator[FieldError]:
    """Yield the rules that a CiliumLoadBalancerIPPool breaks, beyond its schema."""
    for field, blocks in (("blocks", pool.spec.blocks), ("cidrs", pool.spec.cidrs)):
        for i, block in enumerate(blocks):
            if not (block.cidr or block.start):
                yield FieldError(f"spec.{field}[{i}]", "either cidr or start is required")
                continue
            try:
                _prefixes(block)
            except ValueError as error:
                yield FieldError(f"spec.{field}[{i}]", str(error))


class PoolFamily(Struct, frozen=True):
    """The part of a pool in one family."""

    cidrs: tuple[str, ...] = ()
    mask_size: int = 0


class PodIPPoolSpec(Struct, frozen=True):
    """The specification."""

    ipv4: PoolFamily | None = None
    ipv6: PoolFamily | None = None


class CiliumPodIPPool(Resource, frozen=True):
    """One pool of pod networks; its allocations to nodes are in the CiliumNodes."""

    spec: PodIPPoolSpec = msgspec.field(default_factory=PodIPPoolSpec)
