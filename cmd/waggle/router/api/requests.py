"""Requests of the router's API, and the attributes that they announce."""

from __future__ import annotations

import ipaddress
from typing import Final, Literal

import msgspec

from speaker.api import InvalidConfig, RouteAttributes
from speaker.iana import WELL_KNOWN_COMMUNITIES
from speaker.nlri import IPV4_UNICAST, Family
from waggle.router.config.values import with_key


class Request(
    msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True
):
    """One request of a client."""

    op: Literal[
        "announce",
        "withdraw",
        "refresh",
        "reset",
        "shutdown",
        "enable",
        "peers",
        "collectors",
        "routes",
    ]
    prefixes: list[str] = []
    next_hop: str | None = None
    med: int | None = None
    local_preference: int | None = None
    communities: list[str] = []
    large_communities: list[str] = []
    table: Literal["available", "received", "advertised"] = "available"
    family: str | None = None
    peer: str | None = None
    prefix: str | None = None
    limit: int | None = None
    message: str = ""


decode_request: Final = msgspec.json.Decoder(Request).decode


def check_next_hop_of(family: Family, next_hop: str | None) -> None:
    """Reject a link-local next hop for IPv4 prefixes. Raises ValueError."""
    if next_hop is None or family != IPV4_UNICAST:
        return
    address = ipaddress.ip_address(next_hop)
    if address.version == 6 and address.is_link_local:
        raise ValueError(
            f"nextHop: {next_hop} is a link-local address; an IPv4 prefix needs another"
        )


def attributes(request: Request) -> RouteAttributes:
    """Return the attributes of announced prefixes. Raises ValueError naming the text."""
    try:
        return RouteAttributes(
            next_hop=request.next_hop,
            med=request.med,
            local_preference=request.local_preference,
            communities=tuple(map(_community, request.communities)),
            large_communities=tuple(map(_large, request.large_communities)),
        )
    except InvalidConfig as error:
        raise ValueError(with_key(error)) from None


def _numbers(text: str, count: int, limit: int) -> list[int]:
    parts = text.split(":")
    if len(parts) != count or not all(part.isascii() and part.isdigit() for part in parts):
        raise ValueError(f"{text!r} is not {count} numbers separated by colons")
    numbers = [int(part) for part in parts]
    if max(numbers) > limit:
        raise ValueError(f"{text!r}: a number is above {limit}")
    return numbers


def _community(text: str) -> int:
    known = WELL_KNOWN_COMMUNITIES.get(text)
    if known is not None:
        return known
    high, low = _numbers(text, 2, 0xFFFF)
    return high << 16 | low


def _large(text: str) -> tuple[int, int, int]:
    one, two, three = _numbers(text, 3, 0xFFFFFFFF)
    return (one, two, three)
