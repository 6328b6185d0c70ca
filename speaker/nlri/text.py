"""Prefixes between text and wire form; the wire form is a prefix's key in every RIB.

The wire form is that of RFC 4271 section 4.3: one octet with the length in bits, then the fewest
octets that hold so many bits. The trailing bits are zero: equal prefixes are equal octets.
"""

from __future__ import annotations

import ipaddress
from socket import AF_INET, AF_INET6, inet_ntop, inet_pton
from typing import Final

from speaker.iana import IPV4_UNICAST, IPV6_UNICAST, Afi, Family

ADDRESS_BITS: Final = {Afi.IPV4: 32, Afi.IPV6: 128}
"""Bits of an address, for the AFIs whose NLRI are plain prefixes."""


def prefix_to_wire(text: str) -> tuple[Family, bytes]:
    """Parse ``10.0.0.0/24`` or ``fd00::/64`` into the unicast family and the wire form.

    Raises ValueError, also for host bits.
    """
    host, _, bits = text.partition("/")
    if bits.isascii() and bits.isdigit():
        # inet_pton takes a tenth of the time of ipaddress, which parses what is left and raises the
        # errors. Both accept the same prefixes (tests/speaker/nlri/test_nlri.py).
        family, kind = (IPV6_UNICAST, AF_INET6) if ":" in host else (IPV4_UNICAST, AF_INET)
        try:
            octets, length = inet_pton(kind, host), int(bits)
        except (OSError, ValueError):
            octets, length = b"", 1
        wire = octets[: (length + 7) >> 3]
        host_bits = wire[-1] & ((1 << (-length & 7)) - 1) if wire else 0
        if length <= 8 * len(octets) and not host_bits and not octets[len(wire) :].strip(b"\0"):
            return family, bytes((length,)) + wire
    if "/" not in text or "%" in text:
        raise ValueError(f"{text!r} is not a prefix such as 10.0.0.0/24")
    try:
        network = ipaddress.ip_network(text)
    except ValueError as error:
        if "host bits" in str(error):
            network = ipaddress.ip_network(text, strict=False)
            raise ValueError(f"{text} has host bits set; the prefix is {network}") from None
        raise ValueError(f"{text!r} is not a prefix such as 10.0.0.0/24") from None
    family = IPV4_UNICAST if network.version == 4 else IPV6_UNICAST
    length = network.prefixlen
    octets = network.network_address.packed[: (length + 7) >> 3]
    return family, bytes((length,)) + octets


def prefix_to_text(family: Family, nlri: bytes) -> str:
    """Format a prefix in wire form; IPv6 as in RFC 5952, IPv4-mapped ones as in its section 5."""
    # inet_ntop takes a tenth of the time of ipaddress, and writes IPv6 as RFC 5952 says except for
    # addresses that it takes for embedded IPv4 ones (tests/speaker/nlri/test_nlri.py).
    kind, size = (AF_INET, 4) if family.afi == Afi.IPV4 else (AF_INET6, 16)
    octets = nlri[1:].ljust(size, b"\0")
    text = inet_ntop(kind, octets)
    if size == 4 or "." not in text:
        return f"{text}/{nlri[0]}"
    address = ipaddress.ip_address(octets)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return f"::ffff:{address.ipv4_mapped}/{nlri[0]}"
    return f"{address}/{nlri[0]}"
