"""Network layer reachability information: families, prefixes as text and wire, and cutting fields.

Only IPv4 and IPv6 unicast (and multicast, which is framed alike) are taken apart; the NLRI of other
families are left as they are.
"""

from speaker.iana import IPV4_UNICAST, IPV6_UNICAST, Family
from speaker.nlri.decode import (
    ENCODED_SIZE,
    PathNlri,
    decode_add_path,
    decode_prefixes,
    encode_add_path,
    has_prefixes,
)
from speaker.nlri.lazy_field import LazyNlriField
from speaker.nlri.text import ADDRESS_BITS, prefix_to_text, prefix_to_wire

__all__ = [
    "ADDRESS_BITS",
    "ENCODED_SIZE",
    "IPV4_UNICAST",
    "IPV6_UNICAST",
    "Family",
    "LazyNlriField",
    "PathNlri",
    "decode_add_path",
    "decode_prefixes",
    "encode_add_path",
    "has_prefixes",
    "prefix_to_text",
    "prefix_to_wire",
]
