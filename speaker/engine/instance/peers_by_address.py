"""The peers of an instance by address.

Looks up only: `speaker.engine.instance.instance` accepts or rejects the connection.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from speaker.fsm import State
from speaker.peer.addresses import address_key
from speaker.peer.peer import Peer


@final
class PeersByAddress:
    """The addresses of one instance's peers."""

    def __init__(self) -> None:
        self._peers: dict[bytes, list[Peer]] = {}
        """More than one where peers differ in their port only."""

    def add(self, peer: Peer) -> None:
        """Add a peer with its present address."""
        if peer.address is not None:
            self._peers.setdefault(address_key(peer.address), []).append(peer)

    def discard(self, peer: Peer) -> None:
        """Remove a peer; to be called before its address changes."""
        if peer.address is None:
            return
        key = address_key(peer.address)
        others = [other for other in self._peers.get(key, ()) if other is not peer]
        if others:
            self._peers[key] = others
        else:
            self._peers.pop(key, None)

    def peer_at(self, remote: str) -> Peer | None:
        """Return the peer with an address; of several a peer that is not Established."""
        known = self._peers.get(address_key(remote))
        return None if known is None else min(known, key=_established)

    def peers_at(self, remote: str) -> Sequence[Peer]:
        """Return the peers with an address."""
        return list(self._peers.get(address_key(remote), ()))


def _established(peer: Peer) -> bool:
    return peer.state is State.ESTABLISHED
