"""The known prefixes that are nearest to an unknown one, for the sentence that has none."""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Iterable
from typing import Final, TypeAlias

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

NEAREST: Final = 3
"""Number of known prefixes named in place of an unknown one."""
NEAR_BITS: Final = 8
"""Leading bits that a prefix has to have in common with an unknown one to be named."""


def network_of(text: str) -> Network | None:
    """Return the network of a prefix or address; None for another text."""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_network(text, strict=False)
    return None


def nearest_prefixes(wanted: str, known: Iterable[str]) -> list[str]:
    """Return the prefixes with the most leading bits of a prefix or address, nearest first."""
    target = network_of(wanted)
    if target is None:
        return []
    keys: dict[str, tuple[int, int, int]] = {}
    for text in set(known):
        network = network_of(text)
        if network is None or network.version != target.version:
            continue
        differs = int(target.network_address) ^ int(network.network_address)
        same = target.max_prefixlen - differs.bit_length()
        bits = min(target.prefixlen, network.prefixlen, same)
        if bits >= NEAR_BITS:
            keys[text] = (-bits, int(network.network_address), network.prefixlen)
    return sorted(keys, key=keys.__getitem__)[:NEAREST]
