"""IPv6 neighbour discovery for unnumbered peers, by router advertisements (RFC 4861).

* `messages`: router solicitations and advertisements as octets, pure
* `interface`: one interface's socket: solicits, advertises, receives
* `neighbors`: the watched interfaces of a speaker

The kernel's own handling of router advertisements is not touched. Needs CAP_NET_RAW.
"""

from speaker.server.discovery.neighbors import Neighbors

__all__ = ["Neighbors"]
