"""Whose connection it is: the peers of a router by address, and prefixes for those not known by one.

Finds and never decides: a connection is taken or turned away by `speaker.engine.instance.instance`.
"""

from __future__ import annotations

import ipaddress
from typing import final

from speaker.api import DynamicPeerConfig
from speaker.fsm import State
from speaker.peer.addresses import address_key
from speaker.peer.peer import Peer


@final
class PeersByAddress:
    """The addresses of one router's peers."""

    def __init__(self) -> None:
        self.dynamic: dict[str, DynamicPeerConfig] = {}
        """Configurations of dynamic peers, by name."""
        self._peers: dict[bytes, list[Peer]] = {}
        """More than one where peers differ by their port only."""

    def add(self, peer: Peer) -> None:
        """Know a peer by the address that it has now."""
        if peer.address is not None:
            self._peers.setdefault(address_key(peer.address), []).append(peer)

    def discard(self, peer: Peer) -> None:
        """Forget it; before its address changes."""
        if peer.address is None:
            return
        key = address_key(peer.address)
        others = [other for other in self._peers.get(key, ()) if other is not peer]
        if others:
            self._peers[key] = others
        else:
            self._peers.pop(key, None)

    def peer_at(self, remote: str) -> Peer | None:
        """Return the peer that connects from an address; of several one that is not up yet."""
        known = self._peers.get(address_key(remote))
        return None if known is None else min(known, key=_established)

    def dynamic_at(self, remote: str) -> DynamicPeerConfig | None:
        """Return the configuration with the longest prefix that an address is in."""
        address = ipaddress.ip_address(remote)
        best: DynamicPeerConfig | None = None
        for config in self.dynamic.values():
            network = ipaddress.ip_network(config.prefix)
            if address in network and (
                best is None or network.prefixlen > ipaddress.ip_network(best.prefix).prefixlen
            ):
                best = config
        return best


def _established(peer: Peer) -> bool:
    return peer.state is State.ESTABLISHED
