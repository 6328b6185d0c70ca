"""NLRI with path identifiers, as ADD-PATH sends them (RFC 7911 section 3)."""

from __future__ import annotations

from speaker.errors import Truncated
from speaker.nlri.decode import ENCODED_SIZE, MAX_LENGTH, TRAILING_BITS

PathNlri = tuple[int, bytes]
"""A path identifier and a prefix in wire form."""


def decode_add_path(data: bytes, afi: int) -> list[PathNlri]:
    """Decode an NLRI field in which each prefix follows a path identifier of four octets.

    Raises `Truncated` as `speaker.nlri.decode_prefixes` does.
    """
    prefixes: list[PathNlri] = []
    limit = MAX_LENGTH[afi]
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
        prefixes.append((identifier, nlri))
        position = after
    if position != end:
        raise Truncated(f"the last prefix needs {position - end} more octets")
    return prefixes


def encode_add_path(nlris: list[PathNlri]) -> list[bytes]:
    """Return each prefix in wire form behind its path identifier."""
    return [identifier.to_bytes(4, "big") + nlri for identifier, nlri in nlris]
