"""Network layer reachability information: families, prefixes as text and wire, and cutting fields.

Only IPv4 and IPv6 unicast (and multicast, which is framed alike) are taken apart; the NLRI of other
families are left as they are.
"""

from speaker.iana import IPV4_UNICAST, IPV6_UNICAST, Family
from speaker.nlri.field import NlriField
from speaker.nlri.prefix import BITS, prefix_to_text, prefix_to_wire
from speaker.nlri.split import (
    OCTETS,
    PathNlri,
    has_prefixes,
    join_add_path,
    split,
    split_add_path,
)

__all__ = [
    "BITS",
    "IPV4_UNICAST",
    "IPV6_UNICAST",
    "OCTETS",
    "Family",
    "NlriField",
    "PathNlri",
    "has_prefixes",
    "join_add_path",
    "prefix_to_text",
    "prefix_to_wire",
    "split",
    "split_add_path",
]
