"""Router solicitations and advertisements (RFC 4861 sections 4.1, 4.2 and 6.1), as far as needed.

Pure. The kernel computes the checksum on ICMPv6 sockets.
"""

from __future__ import annotations

import ipaddress
import struct
from typing import Final, NamedTuple

ROUTER_SOLICITATION: Final = 133
ROUTER_ADVERTISEMENT: Final = 134
HOP_LIMIT: Final = 255
"""Only a packet that was sent on this link arrives with this hop limit (RFC 4861 section 6.1)."""
_ADVERTISEMENT: Final = struct.Struct("!BBHBBHII")
_SOURCE_LINK_LAYER: Final = 1


def solicitation() -> bytes:
    """Return a router solicitation without options."""
    return struct.pack("!BBHI", ROUTER_SOLICITATION, 0, 0, 0)


def advertisement(link_layer: bytes | None = None) -> bytes:
    """Return a router advertisement with a lifetime of 0: a neighbour, and not a default router.

    ``link_layer`` is the local link-layer address, six octets on Ethernet.
    """
    head = _ADVERTISEMENT.pack(ROUTER_ADVERTISEMENT, 0, 0, 0, 0, 0, 0, 0)
    if link_layer is None or len(link_layer) != 6:
        return head
    return head + bytes((_SOURCE_LINK_LAYER, 1)) + link_layer


class Received(NamedTuple):
    """A message that was received on the link."""

    kind: int
    source: str
    """A link-local address, without its zone."""


def read(data: bytes, source: str, hop_limit: int) -> Received | None:
    """Return a valid solicitation or advertisement, or None (RFC 4861 sections 6.1.1 and 6.1.2).

    A solicitation from the unspecified address is valid but names no neighbour: None as well.
    """
    host, *_ = source.partition("%")
    if hop_limit != HOP_LIMIT or not ipaddress.ip_address(host).is_link_local:
        return None
    if len(data) < 8 or data[1] != 0:
        return None
    kind = data[0]
    options = {ROUTER_SOLICITATION: 8, ROUTER_ADVERTISEMENT: 16}.get(kind)
    if options is None or len(data) < options or not _options_fit(data[options:]):
        return None
    return Received(kind, host)


def _options_fit(data: bytes) -> bool:
    while data:
        if len(data) < 2 or not data[1] or len(data) < 8 * data[1]:
            return False
        data = data[8 * data[1] :]
    return True
