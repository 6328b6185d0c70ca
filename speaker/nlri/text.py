"""Prefixes between text and wire; a prefix's wire octets are its key everywhere else.

The wire form is RFC 4271 section 4.3: one octet of length in bits, then as many octets as hold it.
The bits behind the length are always zero here, so that equal prefixes are equal octets.
"""

from __future__ import annotations

import ipaddress
from socket import AF_INET, AF_INET6, inet_pton
from typing import Final

from speaker.iana import IPV4_UNICAST, IPV6_UNICAST, Afi, Family

ADDRESS_BITS: Final = {Afi.IPV4: 32, Afi.IPV6: 128}
"""How long an address of a family is, for the families with plain prefixes."""


def prefix_to_wire(text: str) -> tuple[Family, bytes]:
    """Read ``10.0.0.0/24`` or ``fd00::/64``. Raises ValueError, also for host bits."""
    host, _, bits = text.partition("/")
    if bits.isascii() and bits.isdigit():
        # What most prefixes are, at a tenth of the cost; who can say what is wrong has the rest.
        family, kind = (IPV6_UNICAST, AF_INET6) if ":" in host else (IPV4_UNICAST, AF_INET)
        try:
            octets, length = inet_pton(kind, host), int(bits)
        except (OSError, ValueError):
            octets, length = b"", 1
        wire = octets[: (length + 7) >> 3]
        spare = wire[-1] & ((1 << (-length & 7)) - 1) if wire else 0
        if length <= 8 * len(octets) and not spare and not octets[len(wire) :].strip(b"\0"):
            return family, bytes((length,)) + wire
    if "/" not in text or "%" in text:
        raise ValueError(f"{text!r} is not a prefix such as 10.0.0.0/24")
    network = ipaddress.ip_network(text)
    family = IPV4_UNICAST if network.version == 4 else IPV6_UNICAST
    length = network.prefixlen
    octets = network.network_address.packed[: (length + 7) >> 3]
    return family, bytes((length,)) + octets


def prefix_to_text(family: Family, nlri: bytes) -> str:
    """Spell a prefix, IPv6 as RFC 5952 has it (section 5 for mapped ones)."""
    size = ADDRESS_BITS[Afi(family.afi)] // 8
    address = ipaddress.ip_address(nlri[1:].ljust(size, b"\0"))
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return f"::ffff:{address.ipv4_mapped}/{nlri[0]}"
    return f"{address}/{nlri[0]}"
