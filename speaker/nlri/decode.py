"""Cutting an NLRI field into prefixes: the hot path of receiving.

The slices are the keys of the RIBs. A field of equal lengths is cut by the interpreter's own C, a plain
loop does what is left; it clears bits behind a prefix's length.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from typing import Any, Final

from speaker.errors import Truncated
from speaker.iana import Family
from speaker.nlri.text import ADDRESS_BITS

ENCODED_SIZE: Final = tuple(1 + ((bits + 7) >> 3) for bits in range(256))
"""How many octets a prefix of each length takes on the wire, its length octet included."""
TRAILING_BITS: Final = tuple((1 << (-bits & 7)) - 1 for bits in range(256))
"""The bits of the last octet that are behind the length."""

PathNlri = tuple[int, bytes]
"""A path identifier and a prefix (RFC 7911)."""


def has_prefixes(family: Family) -> bool:
    """Tell whether a family's NLRI are plain prefixes."""
    return family.afi in ADDRESS_BITS and family.safi in (1, 2)


_UNIFORM_MIN_OCTETS: Final = 400
"""From how many octets on it is worth while to look whether all lengths are equal."""


@functools.lru_cache(maxsize=32)
def _uniform_unpacker(size: int, count: int) -> Callable[[bytes], tuple[Any, ...]]:
    """Return what cuts ``count`` prefixes of ``size`` octets each."""
    return struct.Struct(f"{size}s" * count).unpack


_MAX_LENGTH: Final[dict[int, int]] = {int(afi): bits for afi, bits in ADDRESS_BITS.items()}
_PAST_END: Final = 1 << 30
"""A step behind the end of every field."""
_STEPS: Final[dict[int, tuple[int, ...]]] = {
    afi: tuple(octets if bits <= limit else _PAST_END for bits, octets in enumerate(ENCODED_SIZE))
    for afi, limit in _MAX_LENGTH.items()
}


def decode_prefixes(data: bytes, afi: int) -> list[bytes]:
    """Cut an NLRI field. Raises `Truncated` for an impossible length or a cut prefix."""
    if not data:
        return []
    length = data[0]
    if len(data) == ENCODED_SIZE[length]:
        # One prefix: what changes one at a time is mostly so.
        if length <= _MAX_LENGTH[afi] and not (length & 7 and data[-1] & TRAILING_BITS[length]):
            return [data]
    elif len(data) > _UNIFORM_MIN_OCTETS and not length & 7 and length <= _MAX_LENGTH[afi]:
        count, rest = divmod(len(data), size := ENCODED_SIZE[length])
        if not rest and data[::size] == data[:1] * count:
            return list(_uniform_unpacker(size, count)(data))
    found: list[bytes] = []
    steps, spares = _STEPS[afi], TRAILING_BITS
    position, end = 0, len(data)
    while position < end:
        length = data[position]
        after = position + steps[length]
        nlri = data[position:after]
        spare = spares[length]
        if spare and nlri[-1] & spare:
            nlri = nlri[:-1] + bytes((nlri[-1] & ~spare & 0xFF,))
        found.append(nlri)
        position = after
    if position != end:
        if length > _MAX_LENGTH[afi]:
            raise Truncated(f"a prefix of {length} bits in a family of {_MAX_LENGTH[afi]}")
        raise Truncated(f"the last prefix needs {position - end} more octets")
    return found


def decode_add_path(data: bytes, afi: int) -> list[PathNlri]:
    """Cut an NLRI field in which each prefix has a path identifier (RFC 7911 section 3)."""
    found: list[PathNlri] = []
    limit = _MAX_LENGTH[afi]
    position, end = 0, len(data)
    while position < end:
        if position + 5 > end:
            raise Truncated("a path identifier without a prefix")
        identifier = int.from_bytes(data[position : position + 4], "big")
        length = data[position + 4]
        if length > limit:
            raise Truncated(f"a prefix of {length} bits in a family of {limit}")
        after = position + 4 + ENCODED_SIZE[length]
        nlri = data[position + 4 : after]
        if length & 7 and nlri[-1] & TRAILING_BITS[length]:
            nlri = nlri[:-1] + bytes((nlri[-1] & ~TRAILING_BITS[length] & 0xFF,))
        found.append((identifier, nlri))
        position = after
    if position != end:
        raise Truncated(f"the last prefix needs {position - end} more octets")
    return found


def encode_add_path(nlris: list[PathNlri]) -> list[bytes]:
    """Put each path identifier before its prefix, as the wire has it."""
    return [identifier.to_bytes(4, "big") + nlri for identifier, nlri in nlris]
