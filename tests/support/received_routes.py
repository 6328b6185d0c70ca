"""What an agent accepts of a router's routes, derived from the document of ``waggle render``.

Applies the import rules of docs/render.md to a prefix, independently of the agent; and finds prefixes
that show each rule: the last that it takes, and the first that it refuses.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
USUAL = ("100.64.7.0/24", "2001:db8:f00d::/48")
"""Announced whatever the rules are: a peer without rules refuses them, mode ``all`` takes them."""


def decision(peer: Mapping[str, Any], prefix: str) -> tuple[bool, frozenset[str]]:
    """Return whether a prefix of a peer is accepted, and the filters that may be named for it."""
    network = ipaddress.ip_network(prefix)
    blocked = {f"AlwaysBlock {r['prefix']}" for r in peer["neverAccept"] if takes(r, network)}
    if blocked:
        return False, frozenset(blocked)
    if peer["accept"] == "all":
        return True, frozenset({"all"})
    selecting = {_text(rule) for rule in peer["accept"] if takes(rule, network)}
    return bool(selecting), frozenset(selecting or {"NotAllowed"})


def takes(rule: Mapping[str, Any], network: Network) -> bool:
    """Whether a rule selects a network: within its prefix, and of one of its lengths."""
    within = ipaddress.ip_network(rule["prefix"])
    if within.version != network.version:
        return False
    low, high = _lengths(rule)
    return low <= network.prefixlen <= high and network.subnet_of(within)  # type: ignore[arg-type]


def _lengths(rule: Mapping[str, Any]) -> tuple[int, int]:
    within = ipaddress.ip_network(rule["prefix"])
    low = within.prefixlen if rule["ge"] is None else rule["ge"]
    if rule["le"] is not None:
        return low, rule["le"]
    return low, low if rule["ge"] is None else within.max_prefixlen


def _text(rule: Mapping[str, Any]) -> str:
    bounds = (f"{name} {rule[name]}" for name in ("ge", "le") if rule[name] is not None)
    return " ".join((rule["prefix"], *bounds))


def probes(peers: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return prefixes at both ends of each rule of some peers, and beyond."""
    found = set(USUAL)
    for peer in peers:
        accept = [] if peer["accept"] == "all" else peer["accept"]
        for rule in (*accept, *peer["neverAccept"]):
            found.update(map(str, _around(rule)))
    return found


def _around(rule: Mapping[str, Any]) -> Iterator[Network]:
    within: Any = ipaddress.ip_network(rule["prefix"])
    low, high = _lengths(rule)
    for length in {within.prefixlen, low - 1, low, high, high + 1}:
        if within.prefixlen <= length <= within.max_prefixlen:
            yield next(within.subnets(new_prefix=length))
    if within.prefixlen > 1:
        above = within.supernet()
        yield from {above, *above.subnets()} - {within}
