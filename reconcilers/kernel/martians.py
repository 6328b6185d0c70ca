"""Prefixes that are never installed, whatever a peer announces: none of them leads to hosts elsewhere.

The IPv4 blocks of RFC 6890 that are not forwarded, and IPv6's of RFC 4291 and RFC 4038. Pure.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from typing import Final

from speaker.iana import Afi
from speaker.nlri import Family

_BLOCKS: Final = {
    Afi.IPV4: {
        "0.0.0.0/8": "this network",
        "127.0.0.0/8": "loopback",
        "169.254.0.0/16": "link-local",
        "224.0.0.0/4": "multicast",
        "240.0.0.0/4": "reserved",
        "224.0.0.0/3": "multicast and reserved",
    },
    Afi.IPV6: {
        "::/128": "unspecified",
        "::1/128": "loopback",
        "::/127": "unspecified and loopback",
        "::ffff:0:0/96": "IPv4-mapped",
        "fe80::/10": "link-local",
        "ff00::/8": "multicast",
    },
}
_BITS: Final = {Afi.IPV4: 32, Afi.IPV6: 128}


def _compiled(afi: Afi) -> tuple[tuple[int, int, str], ...]:
    """Return the length, the first bits and the text of each block."""
    networks = []
    for text, use in _BLOCKS[afi].items():
        network = ipaddress.ip_network(text)
        first = int(network.network_address) >> (_BITS[afi] - network.prefixlen)
        networks.append((network.prefixlen, first, f"{text} is {use}"))
    return tuple(networks)


_COMPILED: Final = {afi: _compiled(afi) for afi in _BLOCKS}
_FIRST_OCTETS: Final = {
    Afi.IPV4: frozenset({b"", b"\0", b"\x7f", b"\xa9", *(bytes((n,)) for n in range(224, 256))}),
    Afi.IPV6: frozenset({b"", b"\0", b"\xfe", b"\xff"}),
}
"""Of all prefixes within a block, and of default routes, which have none."""


def suspects(family: Family, prefixes: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the prefixes in wire form that may be martian or a default route: few of a table."""
    octets = _FIRST_OCTETS[Afi(family.afi)]
    return (nlri for nlri in prefixes if nlri[1:2] in octets)


def martian(family: Family, nlri: bytes) -> str | None:
    """Return why a martian prefix in wire form is never installed in the kernel, or None."""
    length = nlri[0]
    bits = int.from_bytes(nlri[1:], "big") >> (-length & 7)
    for shortest, first, text in _COMPILED[Afi(family.afi)]:
        if length >= shortest and bits >> (length - shortest) == first:
            return text
    return None
