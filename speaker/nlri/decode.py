"""The complete decoder of NLRI fields (RFC 4271 section 4.3): one prefix after the other.

This is the slow path of `speaker.nlri.fast_path.decode_prefixes`, which handles the common shapes of
a field. The prefixes that it returns are the keys of the RIBs, so their trailing bits are cleared:
equal prefixes are equal octets.
"""

from __future__ import annotations

from typing import Final

from speaker.errors import Truncated
from speaker.iana import Family
from speaker.nlri.text import ADDRESS_BITS

ENCODED_SIZE: Final = tuple(1 + ((bits + 7) >> 3) for bits in range(256))
"""Octets of an encoded prefix by its length in bits, the length octet included."""
TRAILING_BITS: Final = tuple((1 << (-bits & 7)) - 1 for bits in range(256))
"""Mask of the bits of the last octet that lie beyond a length in bits."""
MAX_LENGTH: Final[dict[int, int]] = {int(afi): bits for afi, bits in ADDRESS_BITS.items()}
"""The largest prefix length by AFI, in bits."""

_PAST_END: Final = 1 << 30
"""A step beyond the end of every field: ends the decoder's loop at an impossible length."""
_STEPS: Final[dict[int, tuple[int, ...]]] = {
    afi: tuple(size if bits <= limit else _PAST_END for bits, size in enumerate(ENCODED_SIZE))
    for afi, limit in MAX_LENGTH.items()
}


def has_prefixes(family: Family) -> bool:
    """Return whether a family's NLRI are plain prefixes: IPv4 or IPv6, unicast or multicast."""
    return family.afi in ADDRESS_BITS and family.safi in (1, 2)


def decode_one_by_one(data: bytes, afi: int) -> list[bytes]:
    """Decode an NLRI field into prefixes in wire form, trailing bits cleared.

    Raises `Truncated` for a length beyond the family's addresses, and for a prefix that is cut off.
    """
    prefixes: list[bytes] = []
    steps, trailing = _STEPS[afi], TRAILING_BITS
    position, end = 0, len(data)
    length = 0
    while position < end:
        length = data[position]
        after = position + steps[length]
        nlri = data[position:after]
        mask = trailing[length]
        if mask and nlri[-1] & mask:
            nlri = nlri[:-1] + bytes((nlri[-1] & ~mask & 0xFF,))
        prefixes.append(nlri)
        position = after
    if position != end:
        if length > MAX_LENGTH[afi]:
            raise Truncated(f"a prefix of {length} bits in a family of {MAX_LENGTH[afi]}")
        raise Truncated(f"the last prefix needs {position - end} more octets")
    return prefixes
