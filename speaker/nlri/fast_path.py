"""Fast path for decoding NLRI fields: a single prefix, and many prefixes of one length.

The slow path is `speaker.nlri.decode.decode_one_by_one`, with equal results and equal errors for
every field (tests/speaker/nlri/test_nlri.py). A field of one prefix is returned as it is. A long
field whose prefixes have equal lengths, as in a full table sorted by attributes, is cut by `struct`
in one call.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from typing import Any, Final

from speaker.nlri.decode import ENCODED_SIZE, MAX_LENGTH, TRAILING_BITS, decode_one_by_one

_UNIFORM_MIN_OCTETS: Final = 400
"""The smallest field for which the check for equal lengths pays off."""


@functools.lru_cache(maxsize=32)
def _uniform_unpacker(size: int, count: int) -> Callable[[bytes], tuple[Any, ...]]:
    """Return a function that cuts a field into ``count`` prefixes of ``size`` octets each."""
    return struct.Struct(f"{size}s" * count).unpack


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
    return decode_one_by_one(data, afi)
