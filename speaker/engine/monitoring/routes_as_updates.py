"""Routes as a RIB holds them, encoded as UPDATEs.

For routes that cannot be forwarded with the octets of a received UPDATE: whole tables, best routes,
routes behind a policy, and the remainder of a malformed UPDATE. Pure functions; work is per
attribute set.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from speaker.attribute import PathAttributes, encode_attribute, encode_attributes
from speaker.errors import EncodingError
from speaker.iana import IPV4_UNICAST, Afi, AttributeType, Family
from speaker.negotiated import MAX_EXTENDED_MESSAGE, MAX_MESSAGE
from speaker.rib import pack
from speaker.rib.path import Path

_WELL_KNOWN: Final = 0x40
_MAPPED: Final = b"\0" * 10 + b"\xff\xff"


def announced(family: Family, path: Path, keys: Sequence[bytes], *, as4: bool) -> list[bytes]:
    """Return UPDATEs that announce routes; ``keys`` are as on the wire, with path identifiers.

    ``as4``: AS numbers have four octets, as in the received UPDATEs. The UPDATEs have the standard
    maximum size, or the extended one where the attributes alone are longer (RFC 8654). A local route
    without a next hop gets the unspecified address.
    """
    for limit in (MAX_MESSAGE, MAX_EXTENDED_MESSAGE):
        try:
            if path.encoded and family == IPV4_UNICAST:
                # The received attributes can be copied without decoding them.
                return pack.announce(path.encoded, keys, limit)
            return _encoded(family, path.attributes, keys, limit, as4=as4)
        except (pack.AttributesTooLong, EncodingError):
            continue
    # Attributes of 64 KiB, after a policy: no message can hold them.
    return []


def _encoded(
    family: Family, attributes: PathAttributes, keys: Sequence[bytes], limit: int, *, as4: bool
) -> list[bytes]:
    before, behind = encode_attributes(attributes, as4=as4)
    next_hop = attributes.next_hop or bytes(4 if family.afi == Afi.IPV4 else 16)
    if family == IPV4_UNICAST and len(next_hop) == 4:
        field = encode_attribute(_WELL_KNOWN, AttributeType.NEXT_HOP, next_hop)
        return pack.announce(before + field + behind, keys, limit)
    if family.afi == Afi.IPV6 and len(next_hop) == 4:
        next_hop = _MAPPED + next_hop
    return pack.announce_mp(family, next_hop, before + behind, keys, limit)


def withdrawn(family: Family, keys: Sequence[bytes]) -> list[bytes]:
    """Return UPDATEs that withdraw routes."""
    if not keys:
        return []
    if family == IPV4_UNICAST:
        return pack.withdraw(keys, MAX_MESSAGE)
    return pack.withdraw_mp(family, keys, MAX_MESSAGE)


def cut(octets: bytes) -> list[bytes]:
    """Split octets that this speaker encoded into messages."""
    parts = []
    position = 0
    while position < len(octets):
        end = position + int.from_bytes(octets[position + 16 : position + 18], "big")
        parts.append(octets[position:end])
        position = end
    return parts
