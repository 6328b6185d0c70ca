"""Addresses, AS numbers and TTLs of a peer: from its configuration, its instance, and its OPEN."""

from __future__ import annotations

from typing import Any

from speaker.api import Confederation, PeerConfig
from speaker.peer.connections import Connections
from speaker.peer.peer_context import PeerContext


class PeerIdentity:
    """The identity of a peer, as far as it is known."""

    instance: PeerContext[Any]
    config: PeerConfig
    connections: Connections
    neighbor: str | None
    """Of an unnumbered peer: the address that was discovered on its interface."""

    @property
    def name(self) -> str:
        """The peer's name."""
        return self.config.name

    @property
    def where(self) -> tuple[str, str]:
        """The names of the instance and the peer."""
        return (self.instance.name, self.config.name)

    @property
    def address(self) -> str | None:
        """The configured address, or the one discovered on the interface."""
        return self.config.address or self.neighbor

    @property
    def router_id(self) -> int:
        """The local BGP Identifier."""
        return self.instance.router_id

    @property
    def local_asn(self) -> int:
        """The AS number that the peer sees; outside a confederation its identifier (RFC 5065)."""
        if self.config.local_asn:
            return self.config.local_asn
        confederation = self.instance.confederation
        if confederation is not None and not self._inside(confederation):
            return confederation.identifier
        return self.instance.local_asn

    def _inside(self, confederation: Confederation) -> bool:
        # An AS that is still to be learnt is taken as external: this side may send its OPEN first.
        asn = self.config.peer_asn
        return asn in ("internal", self.instance.local_asn) or asn in confederation.members

    @property
    def confederation_peer(self) -> bool:
        """Whether the peer is in another member AS of the confederation (RFC 5065)."""
        confederation = self.instance.confederation
        return confederation is not None and self.ebgp and self._inside(confederation)

    @property
    def remote_asn(self) -> int:
        """The peer's AS number, from its OPEN where it is not configured; 0 while unknown."""
        asn = self.config.peer_asn
        if asn == "internal":
            return self.local_asn
        if asn != "external" and asn:
            return asn
        opened = self.connections.primary.peer_open
        return opened.asn if opened is not None else 0

    @property
    def ebgp(self) -> bool:
        """Whether the peer is in another AS, as far as is known."""
        return self.remote_asn != self.local_asn

    @property
    def ttl(self) -> int:
        """The TTL of sent packets, 0 for the system's default."""
        if self.config.ttl_security:
            return 255
        return self.config.ebgp_multihop if self.ebgp else 0

    @property
    def min_ttl(self) -> int:
        """The least TTL of received packets, 0 for any (RFC 5082)."""
        hops = self.config.ttl_security
        return 256 - hops if hops else 0

    @property
    def passive(self) -> bool:
        """Whether only the peer opens connections."""
        return self.config.passive or self.address is None
