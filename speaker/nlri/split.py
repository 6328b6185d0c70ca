"""Cutting an NLRI field into prefixes: the hot path of receiving.

The slices are the keys of the RIBs. A field of equal lengths, and one without mistakes, is cut by the
interpreter's own C; a plain loop does what is left: bits behind a prefix's length, which have to be
cleared, and fields that cannot be, of which it says why.
"""

from __future__ import annotations

import functools
import re
import struct
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, Final

from speaker.errors import Truncated
from speaker.iana import Afi, Family
from speaker.nlri.prefix import BITS

OCTETS: Final = tuple(1 + ((bits + 7) >> 3) for bits in range(256))
"""How many octets a prefix of each length takes on the wire, its length octet included."""
SPARE: Final = tuple((1 << (-bits & 7)) - 1 for bits in range(256))
"""The bits of the last octet that are behind the length."""

PathNlri = tuple[int, bytes]
"""A path identifier and a prefix (RFC 7911)."""


def has_prefixes(family: Family) -> bool:
    """Tell whether a family's NLRI are plain prefixes."""
    return family.afi in BITS and family.safi in (1, 2)


_LONGEST: Final = 17
"""The octets of the longest prefix."""
_MANY: Final = 100
"""From how many octets on it is worth while to look whether all lengths are equal."""


@functools.lru_cache(maxsize=32)
def _cutter(size: int, count: int) -> Callable[[bytes], tuple[Any, ...]]:
    """Return what cuts ``count`` prefixes of ``size`` octets each."""
    return struct.Struct(f"{size}s" * count).unpack


def _pattern(afi: Afi, usual: tuple[int, ...]) -> re.Pattern[bytes]:
    """Return what matches one prefix without bits behind its length, usual lengths tried first."""
    lengths = dict.fromkeys((*usual, *range(BITS[afi] + 1)))
    return re.compile(b"|".join(_one(length) for length in lengths), re.DOTALL)


def _one(length: int) -> bytes:
    found = re.escape(bytes((length,))) + b"." * (length >> 3)
    if length & 7:
        step = SPARE[length] + 1
        found += b"[%s]" % b"".join(rb"\x%02x" % octet for octet in range(0, 256, step))
    return found


_LIMIT: Final[dict[int, int]] = {int(afi): bits for afi, bits in BITS.items()}
_PREFIXES: Final[dict[int, Callable[[bytes], list[bytes]]]] = {
    Afi.IPV4: _pattern(Afi.IPV4, (24, 22, 23, 21, 20, 19, 16, 18, 17, 32)).findall,
    Afi.IPV6: _pattern(Afi.IPV6, (48, 32, 44, 40, 36, 46, 47, 64, 128)).findall,
}


def split(data: bytes, afi: int) -> list[bytes]:
    """Cut an NLRI field. Raises `Truncated` for an impossible length or a cut prefix."""
    if len(data) <= _LONGEST:
        if _is_prefix(data, afi):
            # What changes one at a time is mostly so.
            return [data]
    elif len(data) > _MANY:
        length = data[0]
        if not length & 7 and length <= _LIMIT[afi]:
            count, rest = divmod(len(data), size := OCTETS[length])
            if not rest and data[::size] == data[:1] * count:
                return list(_cutter(size, count)(data))
    found = _PREFIXES[afi](data)
    # What does not match is passed over: only the whole field in its order is without mistakes.
    return found if b"".join(found) == data else _split_slowly(data, afi)


def _is_prefix(data: bytes, afi: int) -> bool:
    """Tell whether a field is one prefix without mistakes."""
    if not data:
        return False
    length = data[0]
    return (
        length <= _LIMIT[afi]
        and len(data) == OCTETS[length]
        and not (length & 7 and data[-1] & SPARE[length])
    )


def split_fields(fields: Sequence[bytes], afi: int) -> tuple[list[list[bytes]], int] | None:
    """Cut NLRI fields: the prefixes of each, and how many. None if one is not without mistakes."""
    if len(fields) == 1:
        try:
            prefixes = split(fields[0], afi)
        except Truncated:
            return None
        return [prefixes], len(prefixes)
    parts = list(map(_PREFIXES[afi], fields))
    prefixes = list(chain.from_iterable(parts))
    # Nothing was passed over, or it would be less.
    return (parts, len(prefixes)) if b"".join(prefixes) == b"".join(fields) else None


def _split_slowly(data: bytes, afi: int) -> list[bytes]:
    found: list[bytes] = []
    limit = _LIMIT[afi]
    position, end = 0, len(data)
    while position < end:
        length = data[position]
        if length > limit:
            raise Truncated(f"a prefix of {length} bits in a family of {limit}")
        after = position + OCTETS[length]
        nlri = data[position:after]
        if length & 7 and nlri[-1] & SPARE[length]:
            nlri = nlri[:-1] + bytes((nlri[-1] & ~SPARE[length] & 0xFF,))
        found.append(nlri)
        position = after
    if position != end:
        raise Truncated(f"the last prefix needs {position - end} more octets")
    return found


def split_add_path(data: bytes, afi: int) -> list[PathNlri]:
    """Cut an NLRI field in which each prefix has a path identifier (RFC 7911 section 3)."""
    found: list[PathNlri] = []
    limit = _LIMIT[afi]
    position, end = 0, len(data)
    while position < end:
        if position + 5 > end:
            raise Truncated("a path identifier without a prefix")
        identifier = int.from_bytes(data[position : position + 4], "big")
        length = data[position + 4]
        if length > limit:
            raise Truncated(f"a prefix of {length} bits in a family of {limit}")
        after = position + 4 + OCTETS[length]
        nlri = data[position + 4 : after]
        if length & 7 and nlri[-1] & SPARE[length]:
            nlri = nlri[:-1] + bytes((nlri[-1] & ~SPARE[length] & 0xFF,))
        found.append((identifier, nlri))
        position = after
    if position != end:
        raise Truncated(f"the last prefix needs {position - end} more octets")
    return found


def join_add_path(nlris: list[PathNlri]) -> list[bytes]:
    """Put each path identifier before its prefix, as the wire has it."""
    return [identifier.to_bytes(4, "big") + nlri for identifier, nlri in nlris]
