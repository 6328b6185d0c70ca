"""The loops that cut an NLRI field into prefixes: the hot path of receiving.

Plain ``while`` loops over ``bytes`` with an index and tables, nothing else per prefix than one
slice; the slices are the keys of the RIBs. A mask clears what stands behind a prefix's length only
where that is not zero already.
"""

from __future__ import annotations

from typing import Final

from speaker.errors import Truncated
from speaker.iana import Afi, Family
from speaker.nlri.prefix import BITS

_OCTETS: Final = tuple(1 + ((bits + 7) >> 3) for bits in range(256))
"""How many octets a prefix of each length takes on the wire, its length octet included."""
_SPARE: Final = tuple((1 << (-bits & 7)) - 1 for bits in range(256))
"""The bits of the last octet that are behind the length."""

PathNlri = tuple[int, bytes]
"""A path identifier and a prefix (RFC 7911)."""


def has_prefixes(family: Family) -> bool:
    """Tell whether a family's NLRI are plain prefixes."""
    return family.afi in BITS and family.safi in (1, 2)


def split(data: bytes, afi: int) -> list[bytes]:
    """Cut an NLRI field. Raises `Truncated` for an impossible length or a cut prefix."""
    found: list[bytes] = []
    append = found.append
    octets = _OCTETS
    spare = _SPARE
    limit = BITS[Afi(afi)]
    position, end = 0, len(data)
    while position < end:
        length = data[position]
        after = position + octets[length]
        nlri = data[position:after]
        if length & 7 and nlri[-1] & spare[length]:
            nlri = nlri[:-1] + bytes((nlri[-1] & ~spare[length] & 0xFF,))
        if length > limit:
            raise Truncated(f"a prefix of {length} bits in a family of {limit}")
        append(nlri)
        position = after
    if position != end:
        raise Truncated(f"the last prefix needs {position - end} more octets")
    return found


def split_add_path(data: bytes, afi: int) -> list[PathNlri]:
    """Cut an NLRI field in which each prefix has a path identifier (RFC 7911 section 3)."""
    found: list[PathNlri] = []
    limit = BITS[Afi(afi)]
    position, end = 0, len(data)
    while position < end:
        if position + 5 > end:
            raise Truncated("a path identifier without a prefix")
        identifier = int.from_bytes(data[position : position + 4], "big")
        length = data[position + 4]
        if length > limit:
            raise Truncated(f"a prefix of {length} bits in a family of {limit}")
        after = position + 4 + _OCTETS[length]
        nlri = data[position + 4 : after]
        if length & 7 and nlri[-1] & _SPARE[length]:
            nlri = nlri[:-1] + bytes((nlri[-1] & ~_SPARE[length] & 0xFF,))
        found.append((identifier, nlri))
        position = after
    if position != end:
        raise Truncated(f"the last prefix needs {position - end} more octets")
    return found


def join_add_path(nlris: list[PathNlri]) -> list[bytes]:
    """Put each path identifier before its prefix, as the wire has it."""
    return [identifier.to_bytes(4, "big") + nlri for identifier, nlri in nlris]
