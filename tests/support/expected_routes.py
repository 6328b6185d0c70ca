"""The routes that a router's table has to hold, derived from the document of ``waggle render``.

Applies BGP's rules for eBGP and iBGP (RFC 4271 section 5) to a peer of the document, independently of
the agent.
"""

from __future__ import annotations

import dataclasses
import ipaddress
from collections.abc import Iterable, Mapping
from typing import Any

from tests.support.routers import RouterRoute
from tests.support.scenario import own_asn

DEFAULT_LOCAL_PREFERENCE = 100


@dataclasses.dataclass(frozen=True, slots=True)
class TableRoute:
    """One route of a table, in the form in which tables are compared."""

    next_hop: str
    as_path: tuple[int, ...]
    origin: str
    communities: frozenset[str]
    large_communities: frozenset[str]
    local_preference: int | None
    """None on eBGP, where routers set their own."""
    med: int | None


def expected_table(
    instance: Mapping[str, Any], peer: Mapping[str, Any], own_addresses: Iterable[str]
) -> dict[str, TableRoute]:
    """Return the routes that are advertised to ``peer`` of the render document, by prefix.

    ``own_addresses`` are of the session and, for prefixes of the other family, of the node and
    of the session's interface: the first suitable one is the next hop self.
    """
    own = list(own_addresses)
    local_asn = own_asn(instance, peer)
    internal = peer["peerASN"] == local_asn
    found = {}
    for route in peer["advertise"]:
        preference = route["localPreference"]
        if preference is None:
            preference = DEFAULT_LOCAL_PREFERENCE
        found[route["prefix"]] = TableRoute(
            next_hop=route["nextHop"] or next_hop_self(route["prefix"], own),
            as_path=() if internal else (local_asn,),
            origin=route["origin"],
            communities=frozenset(route["communities"]),
            large_communities=frozenset(route["largeCommunities"]),
            local_preference=preference if internal else None,
            med=route["med"],
        )
    return found


def next_hop_self(prefix: str, own_addresses: list[str]) -> str:
    """Return the next hop self: the session's address, or one of the prefix's family.

    The first address is the session's. An IPv4 prefix may have an IPv6 next hop (RFC 8950). An
    IPv6 prefix may not have an IPv4 one: over an IPv4 session it has the node's IPv6 address, or
    one of the interface, or the v4-mapped form of the session's.
    """
    session = own_addresses[0]
    if ":" not in prefix or ":" in session:
        return session
    return next((address for address in own_addresses if ":" in address), f"::ffff:{session}")


def _canonical(prefix: str, address: str) -> str:
    if ":" in prefix and ":" not in address:
        # Go prints an IPv4-mapped address in this form (RFC 4760, RFC 2545).
        return f"::ffff:{address}"
    mapped = getattr(ipaddress.ip_address(address), "ipv4_mapped", None)
    return str(ipaddress.ip_address(address)) if mapped is None else f"::ffff:{mapped}"


def actual_table(routes: Mapping[str, RouterRoute], *, internal: bool) -> dict[str, TableRoute]:
    """Return a router's routes, by prefix."""
    return {
        prefix: TableRoute(
            next_hop=_canonical(prefix, route.next_hop),
            as_path=route.as_path,
            origin=route.origin,
            communities=route.communities,
            large_communities=route.large_communities,
            local_preference=route.local_preference if internal else None,
            med=route.med,
        )
        for prefix, route in routes.items()
    }


def table_differences(found: Mapping[str, TableRoute], expected: Mapping[str, TableRoute]) -> str:
    """Return the differences of a table, route by route; empty if there is none."""
    lines = []
    for prefix in sorted({*found, *expected}):
        has, wants = found.get(prefix), expected.get(prefix)
        if has is None:
            lines.append(f"{prefix} is missing")
        elif wants is None:
            lines.append(f"{prefix} is too many: {has}")
        elif has != wants:
            lines += [
                f"{prefix} has {field.name} {getattr(has, field.name)!r}, "
                f"not {getattr(wants, field.name)!r}"
                for field in dataclasses.fields(TableRoute)
                if getattr(has, field.name) != getattr(wants, field.name)
            ]
    return "; ".join(lines)
