"""Who is at the other end of a link: IPv6 neighbours of unnumbered peers, by router advertisements.

* `messages`: router solicitations and advertisements as octets (RFC 4861), pure
* `interface`: one interface's socket: asks, says, listens
* `neighbors`: which interfaces are watched, for the speaker

The kernel's own handling of router advertisements is not touched. Needs CAP_NET_RAW.
"""

from speaker.server.discovery.neighbors import Neighbors

__all__ = ["Neighbors"]
