"""One peer, by concern: its connections, how its sessions ended, and when it is tried again."""

from speaker.peer.peer.peer import SHOWN, SHUTDOWN, Peer
from speaker.peer.peer.peer_context import PeerContext

__all__ = ["SHOWN", "SHUTDOWN", "Peer", "PeerContext"]
