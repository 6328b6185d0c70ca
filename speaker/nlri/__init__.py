"""Network layer reachability information (NLRI): address families, and prefixes as text and octets.

* `text`: one prefix between its text form and its wire form
* `fast_path`: `decode_prefixes`, the decoder of NLRI fields; falls back to `decode`
* `decode`: the complete decoder, prefix by prefix
* `add_path`: NLRI with path identifiers (RFC 7911)
* `covering`: the prefixes that contain a prefix
* `parsed`: prefixes of configurations that were parsed before
* `lazy_field`: an NLRI field that is decoded on first access
* `fields`: the NLRI fields of a run of messages

Only the NLRI of IPv4 and IPv6 unicast and multicast are decoded (RFC 4271 section 4.3, RFC 4760
section 5). NLRI of other families stay opaque octets.
"""

from speaker.iana import IPV4_UNICAST, IPV6_UNICAST, Family
from speaker.nlri.add_path import PathNlri, decode_add_path, encode_add_path
from speaker.nlri.covering import aggregate, covering_prefixes
from speaker.nlri.decode import ENCODED_SIZE, has_prefixes
from speaker.nlri.fast_path import decode_prefixes
from speaker.nlri.fields import NlriFields
from speaker.nlri.lazy_field import LazyNlriField
from speaker.nlri.parsed import (
    bound_prefixes,
    parse_prefixes,
    parsed_prefix,
    remembered_prefixes,
)
from speaker.nlri.text import ADDRESS_BITS, prefix_to_text, prefix_to_wire

__all__ = [
    "ADDRESS_BITS",
    "ENCODED_SIZE",
    "IPV4_UNICAST",
    "IPV6_UNICAST",
    "Family",
    "LazyNlriField",
    "NlriFields",
    "PathNlri",
    "aggregate",
    "bound_prefixes",
    "covering_prefixes",
    "decode_add_path",
    "decode_prefixes",
    "encode_add_path",
    "has_prefixes",
    "parse_prefixes",
    "parsed_prefix",
    "prefix_to_text",
    "prefix_to_wire",
    "remembered_prefixes",
]
