"""The next hops of the routes that a peer has announced: addresses of routers."""

from __future__ import annotations

import ipaddress
from typing import Final, final

MAX_NEXT_HOPS: Final = 256
"""Next hops that are remembered of one peer: a route server may have thousands."""


@final
class ReceivedNextHops:
    """The first next hops of a peer, of accepted and other routes; a look-up per attribute set."""

    __slots__ = ("_texts",)

    def __init__(self) -> None:
        self._texts: dict[bytes, str] = {}

    def add(self, next_hop: bytes) -> None:
        """Remember a next hop of 4, 16 or 32 octets; of 32 the global address (RFC 2545 section 3)."""
        if next_hop not in self._texts and len(self._texts) < MAX_NEXT_HOPS:
            self._texts[next_hop] = str(ipaddress.ip_address(next_hop[:16]))

    @property
    def texts(self) -> tuple[str, ...]:
        """The addresses as text, in the order in which they came."""
        return tuple(self._texts.values())
