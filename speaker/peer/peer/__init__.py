"""One peer, by concern: its connections, how its sessions ended, and when it is tried again."""

from speaker.peer.peer.host import Host
from speaker.peer.peer.peer import SHOWN, SHUTDOWN, Peer

__all__ = ["SHOWN", "SHUTDOWN", "Host", "Peer"]
