"""The routes of peers without a session: kept as stale (RFC 4724, RFC 9494), or being removed.

Here are the last sessions of these peers. How long a stale route is kept, and what it is preferred to,
are decided in `speaker.engine.stale_routes`.
"""

from __future__ import annotations

from typing import final

from speaker.engine.established_peer import EstablishedPeer
from speaker.engine.sliced_work import SlicedWork, emptied
from speaker.peer.peer import Peer
from speaker.rib.path import SourceSession


@final
class KeptRoutes:
    """The last sessions of one instance's peers, as long as they have routes."""

    __slots__ = ("_work", "departed", "peers")

    def __init__(self, work: SlicedWork) -> None:
        """``work`` takes what is done in slices."""
        self._work = work
        self.peers: dict[Peer, EstablishedPeer] = {}
        """The peers without a session whose routes are kept as stale."""
        self.departed: dict[Peer, EstablishedPeer] = {}
        """The last session of each peer, while its routes are being removed."""

    def session_lost(self, established: EstablishedPeer, *, restart: bool) -> None:
        """Keep the routes as stale if the peer may ``restart`` and wants them kept, or remove them."""
        if restart and established.stale.session_lost(established.negotiated):
            self.peers[established.peer] = established
        else:
            self._remove(established)

    def resume(self, peer: Peer) -> tuple[EstablishedPeer | None, SourceSession | None]:
        """Return the last session if its routes are stale, and the source of routes being removed.

        For a new session of the peer, which has the stale routes from now on.
        """
        departed = self.departed.get(peer)
        return self.peers.pop(peer, None), None if departed is None else departed.source.session

    def remove(self, peer: Peer) -> bool:
        """Remove the stale routes of a peer; False if it has none."""
        kept = self.peers.pop(peer, None)
        if kept is None:
            return False
        self._remove(kept)
        return True

    def remove_all(self) -> None:
        """Remove the stale routes of all peers."""
        for kept in self.peers.values():
            self._remove(kept)
        self.peers.clear()

    def release(self) -> None:
        """Release the sessions whose routes are all removed."""
        for peer, established in list(self.departed.items()):
            if not established.stale.departed:
                del self.departed[peer]

    def _remove(self, established: EstablishedPeer) -> None:
        """Remove all routes of a peer, whose session has ended."""
        stale = established.stale
        stale.clear()
        if stale.departed:
            self.departed[established.peer] = established
        self._work.add(emptied(established.inbound.cached()))
