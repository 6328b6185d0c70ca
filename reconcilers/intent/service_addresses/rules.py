"""The rules for the addresses of Services on one node, and the judgement of one address. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from reconcilers.intent.service_addresses.martians import martian
from reconcilers.model import Peer, SessionAddress
from reconcilers.options import IntentOptions
from reconcilers.prefixes import covered, host_route
from resources.core import Node
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, Family, prefix_to_wire


class Rejection(NamedTuple):
    """Why an address is not advertised: one word, and a sentence without its end."""

    reason: str
    message: str
    of_node: bool = False
    """True if another node may advertise the address."""


class AddressRules(msgspec.Struct, frozen=True):
    """The rules for one node. Prefixes and host routes are wire bytes."""

    own: frozenset[bytes] = frozenset()
    """Addresses of this node, as host routes: of its Node, objects of dialects, and its sessions."""
    peers: frozenset[bytes] = frozenset()
    """Addresses of its peers, as host routes."""
    allow: Mapping[Family, tuple[bytes, ...]] | None = None
    """Prefixes outside of which nothing is advertised; None allows all."""
    deny: Mapping[Family, tuple[bytes, ...]] = {}
    minimum_length: Mapping[Family, int] = {}

    def reject_address(self, family: Family, nlri: bytes) -> Rejection | None:
        """Return why the address with this host route is not advertised, or None."""
        special = martian(family, nlri)
        if special is not None:
            return Rejection("Martian", f"it is {special}")
        if nlri in self.own:
            return Rejection("NodeAddress", "it is an address of this node", of_node=True)
        if nlri in self.peers:
            return Rejection("PeerAddress", "it is the address of a peer", of_node=True)
        if self.deny and covered(nlri, self.deny.get(family, ())):
            return Rejection("Denied", "--advertise-deny has a prefix that it is in")
        if self.allow is not None and not covered(nlri, self.allow.get(family, ())):
            return Rejection("NotAllowed", "no prefix of --advertise-allow has it")
        return None

    def changed_addresses(self, former: AddressRules) -> frozenset[bytes] | None:
        """Return the host routes that are judged differently; None where it may be any address."""
        if replace(former, own=self.own, peers=self.peers) != self:
            return None
        return (self.own ^ former.own) | (self.peers ^ former.peers)

    def reject_prefix(self, family: Family, prefix: bytes) -> Rejection | None:
        """Return why an aggregate is not advertised, or None."""
        minimum = self.minimum_length.get(family, 0)
        if prefix[0] >= minimum:
            return None
        text = f"its aggregate has the length {prefix[0]}, and {minimum} is the shortest allowed"
        return Rejection("AggregateTooShort", text)


def address_rules(
    node: Node | None,
    peers: Iterable[Peer],
    options: IntentOptions,
    session_addresses: Iterable[SessionAddress] = (),
    addresses: Iterable[str] = (),
) -> AddressRules:
    """Return the rules of a node with these peers; ``session_addresses`` of others do not count.

    ``addresses`` are those that other objects than the Node have for the node.
    """
    texts = [] if node is None else [address.address for address in node.status.addresses]
    texts += addresses
    sessions = list(peers)
    names = {(peer.instance, peer.name) for peer in sessions}
    texts += [peer.local_address for peer in sessions if peer.local_address is not None]
    texts += [row.address for row in session_addresses if (row.instance, row.peer) in names]
    return AddressRules(
        own=_host_routes(texts),
        peers=_host_routes(peer.address for peer in sessions if peer.address is not None),
        allow=_by_family(options.advertise_allow) if options.advertise_allow else None,
        deny=_by_family(options.advertise_deny),
        minimum_length={
            IPV4_UNICAST: options.advertise_min_length_ipv4,
            IPV6_UNICAST: options.advertise_min_length_ipv6,
        },
    )


def _host_routes(texts: Iterable[str]) -> frozenset[bytes]:
    """Return the host routes of addresses; host names among them are left out."""
    found = set()
    for text in texts:
        try:
            found.add(host_route(text)[1])
        except OSError:
            continue
    return frozenset(found)


def _by_family(prefixes: Iterable[str]) -> dict[Family, tuple[bytes, ...]]:
    found: dict[Family, tuple[bytes, ...]] = {}
    for text in prefixes:
        family, nlri = prefix_to_wire(text)
        found[family] = (*found.get(family, ()), nlri)
    return found
