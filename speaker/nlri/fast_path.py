"""Fast path for decoding NLRI fields: a single prefix, and well-formed fields without trailing bits.

The slow path is `speaker.nlri.decode.decode_one_by_one`, with equal results and equal errors for
every field (tests/speaker/nlri/test_nlri.py). A field of one prefix is returned as it is. A long
field whose prefixes have equal lengths is cut by `struct` in one call, any other field of IPv4 by a
regular expression that matches one prefix, in two thirds of the slow path's time (with the 129
lengths of IPv6 it takes as long).
"""

from __future__ import annotations

import functools
import re
import struct
from collections.abc import Callable
from typing import Any, Final

from speaker.iana import Afi
from speaker.nlri.decode import ENCODED_SIZE, MAX_LENGTH, TRAILING_BITS, decode_one_by_one

_IPV4: Final = int(Afi.IPV4)
_UNIFORM_MIN_OCTETS: Final = 400
"""The smallest field for which the check for equal lengths pays off."""


@functools.lru_cache(maxsize=32)
def _uniform_unpacker(size: int, count: int) -> Callable[[bytes], tuple[Any, ...]]:
    """Return a function that cuts a field into ``count`` prefixes of ``size`` octets each."""
    return struct.Struct(f"{size}s" * count).unpack


def _prefix_pattern(bits: int) -> bytes:
    """Return the pattern of a prefix of some bits, whose trailing bits are zero."""
    length = b"\\x%02x" % bits
    octets, trailing = ENCODED_SIZE[bits] - 1, TRAILING_BITS[bits]
    if not trailing:
        return length + b"." * octets
    last = b"".join(b"\\x%02x" % octet for octet in range(256) if not octet & trailing)
    return length + b"." * (octets - 1) + b"[" + last + b"]"


@functools.cache
def _ipv4_splitter() -> Callable[[bytes], list[bytes]]:
    """Return a function that finds the prefixes of a field, and skips other octets."""
    # Tried in turn: the usual lengths first.
    lengths = (*range(24, -1, -1), *range(25, 33))
    return re.compile(b"|".join(map(_prefix_pattern, lengths)), re.DOTALL).findall


def decode_prefixes(data: bytes, afi: int) -> list[bytes]:
    """Decode an NLRI field into prefixes in wire form, trailing bits cleared.

    Raises `Truncated` for a length beyond the family's addresses, and for a prefix that is cut off.
    """
    if not data:
        return []
    length = data[0]
    if len(data) == ENCODED_SIZE[length]:
        if length <= MAX_LENGTH[afi] and not (length & 7 and data[-1] & TRAILING_BITS[length]):
            return [data]
    elif len(data) > _UNIFORM_MIN_OCTETS and not length & 7 and length <= MAX_LENGTH[afi]:
        count, rest = divmod(len(data), size := ENCODED_SIZE[length])
        if not rest and data[::size] == data[:1] * count:
            return list(_uniform_unpacker(size, count)(data))
    if afi == _IPV4:
        prefixes = _ipv4_splitter()(data)
        # Nothing was skipped: each prefix begins where its predecessor ends.
        if len(b"".join(prefixes)) == len(data):
            return prefixes
    return decode_one_by_one(data, afi)
