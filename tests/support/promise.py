"""What a router's table must hold if ``waggle render`` keeps its word.

Turns a peer of the render document into the routes that this peer's router should show. Knows the
rules of BGP for eBGP and iBGP (RFC 4271 section 5), and nothing of how the agent works.
"""

from __future__ import annotations

import dataclasses
import ipaddress
from collections.abc import Iterable, Mapping
from typing import Any

from tests.support.routers import RouterRoute

DEFAULT_LOCAL_PREFERENCE = 100


@dataclasses.dataclass(frozen=True, slots=True)
class Promise:
    """One route as promised; the shape in which routers' tables are compared."""

    next_hop: str
    as_path: tuple[int, ...]
    origin: str
    communities: frozenset[str]
    large_communities: frozenset[str]
    local_preference: int | None
    """None on eBGP, where routers put their own."""


def promised(
    instance: Mapping[str, Any], peer: Mapping[str, Any], own_addresses: Iterable[str]
) -> dict[str, Promise]:
    """Return what ``peer`` of the render document is promised, by prefix.

    ``own_addresses`` are those of the session and, for prefixes of the other family, of the node:
    the first one that fits is the next hop that stands for "self".
    """
    own = list(own_addresses)
    local_asn = peer["localASN"] or instance["localASN"]
    internal = peer["peerASN"] == local_asn
    found = {}
    for route in peer["advertise"]:
        preference = route["localPreference"]
        if preference is None:
            preference = DEFAULT_LOCAL_PREFERENCE
        found[route["prefix"]] = Promise(
            next_hop=route["nextHop"] or next_hop_self(route["prefix"], own),
            as_path=() if internal else (local_asn,),
            origin=route["origin"],
            communities=frozenset(route["communities"]),
            large_communities=frozenset(route["largeCommunities"]),
            local_preference=preference if internal else None,
        )
    return found


def next_hop_self(prefix: str, own_addresses: list[str]) -> str:
    """Return the address that stands for "self": the session's, or one of the prefix's family.

    The first address is the session's. An IPv4 prefix may have an IPv6 next hop (RFC 8950). An
    IPv6 prefix may not have an IPv4 one: over an IPv4 session it has the node's IPv6 address, or
    the v4-mapped form of the session's where the node has none.
    """
    session = own_addresses[0]
    if ":" not in prefix or ":" in session:
        return session
    return next((address for address in own_addresses if ":" in address), f"::ffff:{session}")


def _canonical(prefix: str, address: str) -> str:
    if ":" in prefix and ":" not in address:
        # Go prints a v4-mapped address like that; it cannot be another one (RFC 4760, RFC 2545).
        return f"::ffff:{address}"
    mapped = getattr(ipaddress.ip_address(address), "ipv4_mapped", None)
    return str(ipaddress.ip_address(address)) if mapped is None else f"::ffff:{mapped}"


def held(routes: Mapping[str, RouterRoute], *, internal: bool) -> dict[str, Promise]:
    """Return a router's routes in the shape of promises."""
    return {
        prefix: Promise(
            next_hop=_canonical(prefix, route.next_hop),
            as_path=route.as_path,
            origin=route.origin,
            communities=route.communities,
            large_communities=route.large_communities,
            local_preference=route.local_preference if internal else None,
        )
        for prefix, route in routes.items()
    }


def compare(found: Mapping[str, Promise], expected: Mapping[str, Promise]) -> str:
    """Say how a table differs from what was promised, route by route; nothing where it does not."""
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
                for field in dataclasses.fields(Promise)
                if getattr(has, field.name) != getattr(wants, field.name)
            ]
    return "; ".join(lines)
