"""IPAddressPool: addresses that MetalLB's controller assigns to Services, and that nodes advertise."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from functools import lru_cache
from typing import Annotated, Final, NamedTuple, TypeAlias

import msgspec

from resources.addresses import canonical_address
from resources.crds.schema_markers import doc
from resources.decimal_numbers import decimal_number
from resources.errors import FieldError, shortened
from resources.label_selectors import LabelSelector
from resources.meta import Struct
from resources.metallb.field_rules import selectors_errors, twice_errors
from resources.metallb.objects import MetalLBObject
from resources.metav1 import Conditions

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

KEPT_BLOCKS: Final = 4096
"""Entries of pools that are parsed once, and not for each comparison."""


class ServiceAllocation(Struct, frozen=True):
    """To which Services addresses are assigned; not looked at by nodes."""

    priority: Annotated[int, doc("Pools with a lower number are used first.")] = 0
    namespaces: Annotated[tuple[str, ...], doc("The namespaces of the Services, by name.")] = ()
    namespace_selectors: Annotated[
        tuple[LabelSelector, ...], doc("The namespaces of the Services, by label.")
    ] = ()
    service_selectors: Annotated[tuple[LabelSelector, ...], doc("The Services, by label.")] = ()


class IPAddressPoolSpec(Struct, frozen=True):
    """The specification."""

    addresses: Annotated[
        tuple[str, ...], doc("Prefixes (192.0.2.0/24) and ranges (192.0.2.10-192.0.2.20).")
    ]
    auto_assign: Annotated[
        bool, doc("Whether addresses are assigned to Services that do not name the pool.")
    ] = True
    avoid_buggy_ips: Annotated[
        bool, doc("Whether addresses that end with .0 and .255 are never assigned.")
    ] = msgspec.field(default=False, name="avoidBuggyIPs")
    service_allocation: Annotated[
        ServiceAllocation | None, doc("To which Services addresses are assigned.")
    ] = None


class IPAddressPoolStatus(Struct, frozen=True):
    """The status, as MetalLB's controller writes it.

    None of them is required: the controller has none of a pool that it refuses, and the conditions of
    such a pool matter.
    """

    assigned_ipv4: Annotated[int | None, doc("Assigned IPv4 addresses.")] = None
    assigned_ipv6: Annotated[int | None, doc("Assigned IPv6 addresses.")] = None
    available_ipv4: Annotated[int | None, doc("IPv4 addresses that are free.")] = None
    available_ipv6: Annotated[int | None, doc("IPv6 addresses that are free.")] = None
    conditions: Conditions = ()


class IPAddressPool(MetalLBObject, frozen=True, kw_only=True):
    """One pool."""

    spec: IPAddressPoolSpec


class Block(NamedTuple):
    """One entry of a pool: its text, and the smallest set of prefixes that it is."""

    text: str
    networks: tuple[Network, ...]


@lru_cache(maxsize=KEPT_BLOCKS)
def block(text: str) -> Block:
    """Parse an entry of an IPAddressPool: a prefix (host bits are cut) or a range.

    Raises `ValueError` naming the rule.
    """
    first, dash, last = text.partition("-")
    if not dash:
        base, slash, length = text.partition("/")
        number = decimal_number(length, 128)
        if not slash or number is None:
            raise ValueError(f"{shortened(text)} is neither a prefix nor a range of addresses")
        return Block(text, (_network(text, base, number),))
    start, end = (_address(text, part) for part in (first, last))
    if start.version != end.version:
        raise ValueError(f"{shortened(text)} runs from one address family to the other")
    if int(end) < int(start):
        raise ValueError(f"{shortened(text)} runs backwards")
    return Block(text, tuple(ipaddress.summarize_address_range(start, end)))


def _network(text: str, base: str, length: int) -> Network:
    try:
        return ipaddress.ip_network((canonical_address(base), length), strict=False)
    except ValueError:
        raise ValueError(f"{shortened(text)} is not a prefix such as 192.0.2.0/24") from None


def _address(text: str, part: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    try:
        return ipaddress.ip_address(canonical_address(part.strip()))
    except ValueError:
        reason = f"{shortened(part.strip())} is not an IP address"
        raise ValueError(f"{shortened(text)} is not a range of addresses: {reason}") from None


def blocks(row: IPAddressPool) -> tuple[Block, ...]:
    """Return the entries of an IPAddressPool that was validated."""
    return tuple(map(block, row.spec.addresses))


def overlapping(first: Block, second: Block) -> bool:
    """True if two entries of IPAddressPools have an address in common."""
    return any(
        a.version == b.version and a.overlaps(b) for a in first.networks for b in second.networks
    )


def pool_errors(row: IPAddressPool) -> Iterator[FieldError]:
    """Yield the rules that a MetalLB IPAddressPool breaks, each on its own."""
    if not row.spec.addresses:
        yield FieldError("spec.addresses", "at least one prefix or range is required")
    ranges: list[tuple[int, Block]] = []
    for i, text in enumerate(row.spec.addresses):
        try:
            entry = block(text)
        except ValueError as error:
            yield FieldError(f"spec.addresses[{i}]", str(error))
            continue
        other = next((j for j, earlier in ranges if overlapping(earlier, entry)), None)
        if other is not None:
            yield FieldError(
                f"spec.addresses[{i}]", f"{text[:64]!r} overlaps with spec.addresses[{other}]"
            )
        ranges.append((i, entry))
    allocation = row.spec.service_allocation
    if allocation is not None:
        path = "spec.serviceAllocation"
        yield from twice_errors(allocation.namespaces, f"{path}.namespaces")
        yield from selectors_errors(allocation.namespace_selectors, f"{path}.namespaceSelectors")
        yield from selectors_errors(allocation.service_selectors, f"{path}.serviceSelectors")
